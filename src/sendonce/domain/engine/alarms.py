"""Alarms: what is wrong now, for as long as it is so.

wrong ──► alarm ──► its people are told, once an hour at the most ──► right again: «it is over»
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sendonce.domain.engine.gauges import Gauges
from sendonce.domain.engine.sender_identities import SenderState, state_of
from sendonce.domain.engine.senders import BY_HAND, SenderHold, read_key
from sendonce.domain.engine.workers import WorkerRecord


class Trouble(NamedTuple):
    """``about`` tells troubles apart; ``text`` is for people."""

    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """A trouble that stands. ``told``: its people know of it."""

    about: str
    text: str
    began_at: datetime
    told: bool


@dataclass(frozen=True, slots=True)
class AlarmLimits:
    """What is still no trouble. None or 0 switches an alarm off."""

    dead_letters: int = 10
    queue_age: timedelta | None = timedelta(hours=2)
    event_silence: timedelta | None = timedelta(hours=1)


def of_dead_letters(now: Gauges, day_ago: Gauges | None, limits: AlarmLimits) -> Trouble | None:
    died = now.books.dead - (day_ago or now).books.dead
    if not limits.dead_letters or died < limits.dead_letters:
        return None
    text = f"{died} letters are dead since yesterday: 'sendonce jobs dead' groups them by cause."
    return Trouble("dead letters", text)


def of_queue(now: Gauges, before: Gauges | None, limits: AlarmLimits) -> Trouble | None:
    """A long mailout is no trouble while it moves: while letters ended since ``before``, some minutes ago."""
    if not is_old(now, limits) or (before is not None and now.books.ended > before.books.ended):
        return None
    age = in_words(timedelta(seconds=now.queue_age))
    text = (
        f"A letter has been due for {age}, and none has left lately; {now.books.scheduled} wait, "
        f"{now.books.sending} are being sent. "
        "'sendonce status' and 'sendonce workers list' show why."
    )
    return Trouble("queue age", text)


def is_old(now: Gauges, limits: AlarmLimits) -> bool:
    return limits.queue_age is not None and now.queue_age > limits.queue_age.total_seconds()


def of_event_silence(unheard: int, silence: timedelta) -> Trouble | None:
    """``unheard`` letters were accepted by SES before the silence, and no event has come in it."""
    if not unheard:
        return None
    text = (
        f"{unheard} or more letters left through SES, and no event has come for {in_words(silence)}: bounces "
        "and complaints may go unnoticed. 'sendonce doctor' looks at the topic and its subscription."
    )
    return Trouble("event silence", text)


def of_hold(hold: SenderHold) -> Trouble | None:
    """Whoever held it by hand knows of it, and the brakes tell by themselves."""
    if hold.code == BY_HAND:
        return None
    address = read_key(hold.key).address
    if hold.elsewhere:
        text = f"Letters of {address} leave through its second region: {hold.reason}"
        return Trouble(f"sender {hold.key}", text)
    state = state_of(None, hold)
    how = "blocked" if state is SenderState.BLOCKED else "held"
    return Trouble(f"sender {hold.key}", f"The sender {address} is {how}: {hold.reason}")


def of_worker(worker: WorkerRecord, now: datetime) -> Trouble | None:
    if not worker.is_missing(now):
        return None
    heard = worker.seen_at or worker.started_at
    since = f" since {heard:%Y-%m-%d %H:%M} UTC" if heard else ""
    text = (
        f"The worker {worker.name} on {worker.host} has not been heard of{since}. Start it again, or if you "
        f"know that it is dead: sendonce workers bury {worker.id} --i-know-it-is-dead"
    )
    return Trouble(f"worker {worker.id}", text)


def in_words(time: timedelta) -> str:
    """ "45 min", "2 h 5 min", "3 d 4 h"."""
    minutes = int(time.total_seconds() // 60)
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
