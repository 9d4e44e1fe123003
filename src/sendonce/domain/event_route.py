"""How long the provider's events have been received without a break, and what breaks may have lost.

A missing event proves nothing about a time in which nobody could have received it. Whoever receives
events says so every few seconds; from these notes follow the stretches in which somebody received.

    receiver 1   ├──────────┤                      seen last at the end of its line
    receiver 2                   ├────────────┤
    receiver 3                           ├─────────► now
    stretches    ├──────────┤break├────────────────►
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

ATTEND_EVERY = 5.0
"""Seconds between two notes of a receiver."""
SILENT_AFTER = timedelta(seconds=150)
"""A receiver that has not been heard of for so long does not receive. A queue is asked every 20 s, and a
platform that sleeps between requests is woken once a minute."""
QUEUE_PATIENCE = timedelta(days=3)
"""How long an unread queue is trusted to keep events: SQS does so for four days by default."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """From when until when somebody received. ``durable``: events wait in a queue while nobody does."""

    since: datetime
    seen: datetime
    durable: bool


@dataclass(frozen=True, slots=True)
class RouteWatch:
    """The stretches in which events were received, the oldest first; the last one lasts till now."""

    stretches: tuple[Receiver, ...]

    @property
    def since(self) -> datetime:
        return self.stretches[-1].since

    def may_have_missed(self, moment: datetime, push_patience: timedelta) -> bool:
        """Whether an event of ``moment`` or later can have been given up before anybody received it.

        ``push_patience`` is for how long the provider keeps trying. All breaks since count together: an
        event that is tried now and then may meet each of them. A queue helps if it was there before.
        """
        if moment < self.stretches[0].since:
            return True  # nobody had ever received
        pushed = queued = timedelta()
        for before, after in zip(self.stretches, self.stretches[1:], strict=False):
            if after.since <= moment:
                continue
            if before.durable and after.durable:
                queued += after.since - before.seen
            else:
                pushed += after.since - before.seen
        return pushed > push_patience or queued > QUEUE_PATIENCE


def watch(receivers: Iterable[Receiver], now: datetime) -> RouteWatch | None:
    """What the notes tell; None if nobody receives now.

    Two receivers make one stretch only where the earlier was seen after the later had begun: a service
    that is started again was down in between, however short. A stretch with a receiver that is not
    durable is not durable.
    """
    stretches: list[Receiver] = []
    for receiver in sorted(receivers, key=lambda each: each.since):
        last = stretches[-1] if stretches else None
        if last is not None and receiver.since <= last.seen:
            seen, durable = max(last.seen, receiver.seen), last.durable and receiver.durable
            stretches[-1] = Receiver(last.since, seen, durable)
        else:
            stretches.append(receiver)
    if not stretches or now - stretches[-1].seen > SILENT_AFTER:
        return None
    return RouteWatch(tuple(stretches))
