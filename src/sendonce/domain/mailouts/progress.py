"""How a mailout gets on: how fast, until when, and why nothing moves, if nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sendonce.domain.engine.jobs import Books, Job
from sendonce.domain.engine.senders import BY_HAND, NOT_SET_UP, OWN_SENDER, SenderHold
from sendonce.domain.engine.workers import Rest, WorkerRecord
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus, Phase


class Cause(StrEnum):
    """Why no letter leaves. A new cause may be added; none is renamed."""

    HALTED = "halted"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    SCHEDULED = "scheduled"
    NO_WORKER = "no_worker"
    FETCHING = "fetching"
    PLANNING = "planning"
    HELD = "held"
    QUOTA = "quota"
    SENDING_PAUSED = "sending_paused"
    THROTTLED = "throttled"
    CLOCK = "clock"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Standstill:
    """``detail`` says what happened, ``fix`` what to do about it: empty where waiting is enough."""

    cause: Cause
    detail: str
    fix: str = ""
    next_try_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """``rate`` is in letters per second, None where nothing is measured; ``workers`` are those at work."""

    standstill: Standstill | None
    rate: float | None
    estimated_end: datetime | None
    workers: int


@dataclass(frozen=True, slots=True)
class Sight:
    """All that a mailout's progress is judged by. ``sharing`` mailouts are sending at the moment.

    ``lost_sender`` names its sender where that was removed.
    """

    mailout: Mailout
    books: Books
    now: datetime
    halted: str | None
    hold: SenderHold | None
    lost_sender: str | None
    workers: Sequence[WorkerRecord]
    next_due: Job | None
    sharing: int


_ACCOUNT_FIX = "See what your mail provider says about the account. Sending goes on by itself."
_FIXES = {Rest.SENDING_PAUSED: _ACCOUNT_FIX, Rest.CLOCK: "Set the clock of the worker's machine right."}


def explain(seen: Sight) -> Progress:
    """How a mailout gets on, and why it does not."""
    at_work = [worker for worker in seen.workers if worker.is_at_work(seen.now)]
    processes = sum(worker.sender_id == OWN_SENDER for worker in at_work)
    if seen.mailout.status != MailoutStatus.SENDING:
        return Progress(_before_the_start(seen), None, None, processes)
    standstill = _of_the_mailout(seen) or _of_the_workers(seen, at_work) or _of_the_letters(seen)
    rate = _rate(seen, at_work) if standstill is None else None
    end = seen.now + timedelta(seconds=seen.books.open / rate) if rate and seen.books.open else None
    return Progress(standstill, rate, end, processes)


def _before_the_start(seen: Sight) -> Standstill | None:
    mailout = seen.mailout
    if mailout.status == MailoutStatus.READY and mailout.scheduled and mailout.send_at is not None:
        return Standstill(Cause.SCHEDULED, "It is scheduled for later.", next_try_at=mailout.send_at)
    return None


def _of_the_mailout(seen: Sight) -> Standstill | None:
    mailout = seen.mailout
    if seen.halted is not None:
        return Standstill(Cause.HALTED, seen.halted, "Run 'sendonce doctor': it says what to do.")
    if mailout.cancelled:
        return Standstill(Cause.CANCELLED, "It is being cancelled: letters on the wire are waited for.")
    if mailout.paused:
        detail = f"It is paused: {mailout.reason}." if mailout.reason else "It is paused."
        return Standstill(Cause.PAUSED, detail, f"To go on: sendonce mailout resume {mailout.id}")
    return None


def _of_the_workers(seen: Sight, at_work: Sequence[WorkerRecord]) -> Standstill | None:
    if seen.lost_sender is not None and seen.mailout.phase == Phase.RUNNING:
        return _of_lost_sender(seen.lost_sender)
    if seen.hold is not None and seen.mailout.phase == Phase.RUNNING:
        return of_hold(seen.hold)
    if not at_work:
        return Standstill(Cause.NO_WORKER, "No worker is at work.", "Start one: sendonce worker")
    if seen.mailout.phase == Phase.FETCHING:
        return Standstill(Cause.FETCHING, "Its letter is being read from the page it was written on.")
    if seen.mailout.phase == Phase.PLANNING:
        return Standstill(Cause.PLANNING, "Its letters are being planned, one for each recipient.")
    serving = _of_its_sender(seen, at_work)
    if serving and all(worker.rests for worker in serving):
        rest = Rest(serving[0].rests or Rest.THROTTLED)
        reason = serving[0].rest_reason or "The workers rest."
        return Standstill(Cause(rest), reason, _FIXES.get(rest, ""), serving[0].rests_until)
    return None


def _of_its_sender(seen: Sight, workers: Sequence[WorkerRecord]) -> list[WorkerRecord]:
    """None of them where no letter of that sender was due of late."""
    return [worker for worker in workers if worker.sender_id == seen.mailout.sender_id]


def of_hold(hold: SenderHold) -> Standstill:
    if hold.code == BY_HAND:
        fix = f"To go on at once: sendonce sender release {hold.key}"
        next_try = None if hold.until_released else hold.next_try_at
        return Standstill(Cause.HELD, f"A person holds the sender: {hold.reason}", fix, next_try)
    fix = f"Mend the cause. To go on at once then: sendonce sender release {hold.key}"
    if hold.code == NOT_SET_UP:
        detail = f"The sender cannot send from here: {hold.reason}"
        return Standstill(Cause.HELD, detail, fix, hold.next_try_at)
    return Standstill(Cause.HELD, f"The provider refuses the sender: {hold.reason}", fix, hold.next_try_at)


def _of_lost_sender(name: str) -> Standstill:
    detail = f"Its sender {name} was removed, and its letters wait."
    return Standstill(Cause.HELD, detail, f"Add it again: sendonce sender add {name} …")


def _of_the_letters(seen: Sight) -> Standstill | None:
    """Nothing is on the wire, and what is left comes due later."""
    first = seen.next_due
    if seen.books.sending or first is None or first.due_at <= seen.now:
        return None
    why = f": {first.reason}" if first.reason else "."
    count = seen.books.scheduled
    letters = f"{count} letters wait" if count != 1 else "1 letter waits"
    return Standstill(Cause.RETRY, f"{letters} for another try{why}", next_try_at=first.due_at)


def _rate(seen: Sight, at_work: Sequence[WorkerRecord]) -> float | None:
    """This mailout's share of what all workers do together."""
    total = sum(worker.rate or 0.0 for worker in _of_its_sender(seen, at_work))
    return round(total / max(seen.sharing, 1), 2) if total else None
