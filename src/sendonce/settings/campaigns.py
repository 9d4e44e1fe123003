"""Settings of door C, which is being built: they are read and checked, and nothing uses them yet."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.settings.kinds import setting, whole


# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class CampaignSettings:
    # Campaigns
    daily_send_limit: int = setting("campaigns", whole(0), 100,
        "Letters a day to people who did not subscribe.")
    # fmt: on
