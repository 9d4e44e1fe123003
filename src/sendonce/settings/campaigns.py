"""Settings of door C: campaigns to people who did not subscribe."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.settings import kinds
from sendonce.settings.kinds import setting, whole


# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class CampaignSettings:
    # Campaigns
    contacts_per_company: int = setting("campaigns", whole(1), 2,
        "People of one company that a campaign writes to at a time; an answer of one stops it for all.")
    receiver_limits: str = setting("campaigns", kinds.text, "",
        "Letters a minute of a tenant to each of google, microsoft, yahoo, mailru, yandex and other, where "
        "the usual ones do not do.", "google=10, other=60",
        otherwise="google=20, microsoft=20, yahoo=10, mailru=20, yandex=20, other=100")
    account_limits: str = setting("campaigns", kinds.text, "",
        "Letters of campaigns in any 24 hours from all senders of an account together: of SES in a region, "
        "or an SMTP host with its port. Tenants share them by their weights.",
        "ses/eu-west-1=50000, smtp/smtp.example.com:587=2000", otherwise="no limit")
    clock_speed: int = setting("campaigns", whole(1, 100_000), 1,
        "For rehearsals: how many times faster the campaigns' clock runs; 1440 makes a day a minute. Only "
        "where every letter stays on this machine.")
    # fmt: on
