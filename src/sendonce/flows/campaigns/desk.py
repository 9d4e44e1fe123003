"""What every verb of campaigns works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import SenderHold, SenderKeys, hold_in_force, is_away
from sendonce.ports.campaigns import CampaignStore

BRAKES = "the brakes"
"""Who pauses campaigns and blocks senders where no person does, in the audit log."""

USUAL_ROUND = timedelta(seconds=2)

Alert = Callable[[str, str], None]
"""Tell the people in charge: what about, and what happened."""


@dataclass(frozen=True, slots=True)
class CampaignDesk:
    """``keys_of`` is whom a sender's provider judges. ``message_id_of`` is the Message-ID of a sender's
    letter, from its job's id and the name that the provider gave it. ``account_of`` names the account that a
    sender shares with others, and ``account_limits`` are the letters a day of accounts.

    ``round`` is the real time between two looks: as far ahead, and a little more, letters are planned.
    """

    store: CampaignStore
    clock: CampaignClock
    zone: ZoneInfo
    keys_of: Callable[[SenderIdentity], SenderKeys]
    message_id_of: Callable[[SenderIdentity, str, str | None], str]
    receiver_limits: Mapping[Receiver, int]
    alert: Alert
    round: timedelta = USUAL_ROUND
    per_company: int = 2
    account_of: Callable[[SenderIdentity], str] = lambda _identity: ""
    account_limits: Mapping[str, int] = field(default_factory=dict)

    def hold_of(self, identity: SenderIdentity) -> SenderHold | None:
        """What keeps a sender from sending, whichever region it is in."""
        return hold_in_force(self.keys_of(identity), self.store.sender_holds.get)

    def may_try(self, identity: SenderIdentity) -> bool:
        """Whether it is not held, or its next try has come: that takes a letter, and it may have none."""
        hold = self.hold_of(identity)
        return hold is None or not hold.lets_nobody_try(self.store.ledger.now())

    def away_of(self, identity: SenderIdentity) -> SenderHold | None:
        return is_away(self.keys_of(identity), self.store.sender_holds.get)

    def now(self) -> datetime:
        """By the campaigns' clock."""
        return self.clock.at(self.store.ledger.now())

    @property
    def horizon(self) -> timedelta:
        return self.clock.passed(self.round * 2)
