"""The campaigns' own clock. It may run fast, to rehearse weeks in minutes.

Slots, windows, delays, quotas and warm-ups go by it. The ledger's clocks, quiet times and pacing never do:
what the engine is given are real moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class CampaignClock:
    """``epoch`` is the moment at which both clocks showed the same: one for all campaigns of a database."""

    epoch: datetime
    speed: int = 1

    def at(self, real: datetime) -> datetime:
        """What this clock shows then."""
        return self.epoch + (real - self.epoch) * self.speed

    def real(self, shown: datetime) -> datetime:
        """The moment at which it shows this."""
        return self.epoch + (shown - self.epoch) / self.speed

    def passed(self, real: timedelta) -> timedelta:
        """How far it moves on in this time."""
        return real * self.speed
