"""What a worker shows of itself every few seconds: how fast it is, and why it rests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sendonce.domain.engine.workers import Pulse, Rest
from sendonce.flows.engine.keep_rate import RateKeeper
from sendonce.flows.engine.keep_time import TimeKeeper


def feel_pulse(rates: RateKeeper, throttled: tuple[str, float] | None, clock: TimeKeeper) -> Pulse:
    """``throttled`` is why the provider asked for a rest, and for how many seconds more."""
    pulse = Pulse(round(rates.measured(), 2))
    account = rates.rest()
    if account is not None:
        return pulse._replace(rests=account[0], rest_reason=account[1])
    if throttled is not None:
        until = datetime.now(UTC) + timedelta(seconds=throttled[1])
        return pulse._replace(rests=Rest.THROTTLED, rest_reason=throttled[0], rests_until=until)
    if not clock.may_claim():
        return pulse._replace(rests=Rest.CLOCK, rest_reason="The clock jumped, and no other clock agrees.")
    return pulse
