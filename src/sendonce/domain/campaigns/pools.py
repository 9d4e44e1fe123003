"""Pools: the senders of a direction, what each may do, and how it does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime

from sendonce.domain.campaigns.rotation import Record
from sendonce.domain.campaigns.warm_up import allowed_today
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import MOST_DAILY
from sendonce.errors import BadInput


@dataclass(frozen=True, slots=True)
class SenderLimits:
    """``pace`` is the share of its rate that deferrals have left it, since ``paced_at``; ``credit`` is its
    standing in the rotation. ``days_used`` are the days on which it sent, up to ``last_day``. ``judged_from``
    is when complaints blocked it last: once a person releases it, only later letters count."""

    sender_id: str
    tenant_id: TenantId
    direction_id: str
    daily: int
    per_hour: int | None = None
    ramp: tuple[int, ...] = ()
    pace: float = 1.0
    paced_at: datetime | None = None
    credit: float = 0.0
    days_used: int = 0
    last_day: str = ""
    judged_from: datetime | None = None

    def check(self) -> None:
        if self.daily < 1:
            raise BadInput(f"--daily: {self.daily} is too few. Write how many letters a day it may send.")
        if self.per_hour is not None and self.per_hour < 1:
            raise BadInput(f"--per-hour: {self.per_hour} is too few. Leave it out for no limit an hour.")
        for option, most in (
            ("daily", self.daily),
            ("per-hour", self.per_hour or 0),
            ("ramp", max(self.ramp, default=0)),
        ):
            if most > MOST_DAILY:
                raise BadInput(f"--{option}: {most} is too many. The most is {MOST_DAILY}.")

    def allowed_on(self, day: date) -> int:
        """How many letters it may send on a day."""
        before = self.days_used - 1 if self.last_day == day.isoformat() else self.days_used
        return allowed_today(self.daily, self.ramp, before)

    def used_on(self, day: date) -> SenderLimits:
        """After a letter of that day."""
        if self.last_day >= day.isoformat():
            return self
        return replace(self, days_used=self.days_used + 1, last_day=day.isoformat())


@dataclass(frozen=True, slots=True)
class SenderStanding:
    """A sender of a pool with what became of its newest letters."""

    limits: SenderLimits
    address: str
    record: Record
    sent_24h: int
