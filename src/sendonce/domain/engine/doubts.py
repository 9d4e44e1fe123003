"""May a letter in doubt be called "not taken by the provider"? What is asked, in this order:

    claimed          death proven                         death + quiet time
       ├──────────────────┼──────────────────────────────────────┤
       1. its events can come at all (SES), and nobody can still be sending it
       2. events were received through all of this time, without a break
    ├─ 5 min ─┼─ 5 min ─┤
       3. every letter accepted near it has its Send event, and one on each side was heard
                          ├───────────────────────►
       4. a letter accepted after the death has its Send event: the route works

A doubt for which one of these fails waits, or is parked for a person to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.event_route import Coverage, Listening
from sendonce.domain.engine.tenants import DispatchId

NEAR = timedelta(minutes=5)
"""How far away in time a neighbour may have been claimed."""
TELLING_TRANSPORTS = frozenset({"ses"})
"""Whose provider publishes an event for every letter that it takes."""
SEARCHED_TRANSPORTS = frozenset({"smtp"})
"""Whose provider may keep a copy of every letter that it takes."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A job in doubt. ``route`` is the way that its attempt went and that its events come."""

    job_id: str
    attempt: int
    dispatch_id: DispatchId
    transport: str | None
    route: str | None
    claimed_at: datetime | None
    death_proof_at: datetime | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was accepted on the same route around a doubt; a canary counts as a letter.

    ``silent`` counts those near it without a Send event. The others tell whether one was heard: claimed up
    to five minutes before it (or in the same moment), up to five minutes after it, after the death.
    """

    silent: int
    heard_before: bool
    heard_after: bool
    heard_since_death: bool


class Standing(StrEnum):
    ABSENT = "absent"
    WAITING = "waiting"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class Weighed:
    """What is to become of a doubt, and why, in words for its operator."""

    standing: Standing
    why: str

    @property
    def parked(self) -> bool:
        return self.standing == Standing.PARKED


def weigh(
    doubt: Doubt,
    listening: Listening,
    look_around: Callable[[], Surroundings],
    quiet: timedelta,
    *,
    sent_folder: bool = False,
) -> Weighed:
    """``look_around`` costs some queries and is asked only where the rest speaks for absence.

    With ``sent_folder`` letters over SMTP are looked for among the sent ones: domain/engine/sent_folder.
    """
    if doubt.transport is None:
        return _parked("It was never claimed here, but may have been sent from another copy of the database.")
    if doubt.transport in SEARCHED_TRANSPORTS and sent_folder:
        return _weigh_search(doubt, listening.now, quiet)
    if doubt.transport not in TELLING_TRANSPORTS:
        return _parked(f"{doubt.transport} never tells afterwards which letters it took.")
    if doubt.death_proof_at is None or doubt.claimed_at is None:
        return _parked("Nothing proves that nobody else is sending it, as after a restored database.")
    quiet_until = doubt.death_proof_at + quiet
    coverage = listening.covers(doubt.claimed_at, quiet_until)
    if coverage is Coverage.BROKEN:
        return _parked(
            f"Events were not received without a break from {_time(doubt.claimed_at)}, when it was claimed, "
            f"to {_time(quiet_until)}: its Send event may be lost."
        )
    if coverage is Coverage.SO_FAR:
        return _waiting(f"Its Send event may still come: absence counts from {_time(quiet_until)} on.")
    return _weigh_surroundings(look_around(), doubt.claimed_at + NEAR > listening.now)


def _weigh_search(doubt: Doubt, now: datetime, quiet: timedelta) -> Weighed:
    """What a person is told meanwhile: the search itself settles it as soon as it can."""
    if doubt.death_proof_at is None:
        return _parked("Nothing proves that nobody else is sending it, as after a restored database.")
    if now < doubt.death_proof_at + quiet:
        return _waiting(
            "It is looked for in the folder of sent letters. That it is not there counts from "
            f"{_time(doubt.death_proof_at + quiet)} on."
        )
    return _parked(
        "It was not found in the folder of sent letters, and no letters accepted just before and just after "
        "it were found there, to show that every letter is."
    )


def _weigh_surroundings(near: Surroundings, may_be_followed: bool) -> Weighed:
    if near.silent:
        silent = count_of(near.silent, "letter accepted near it has", "letters accepted near it have")
        return _parked(f"{silent} no Send event: the event route loses some, or is late.")
    if not near.heard_before:
        return _parked(_none_heard("before"))
    if not near.heard_after:
        return _waiting(_none_heard("after")) if may_be_followed else _parked(_none_heard("after"))
    if not near.heard_since_death:
        return _waiting("No letter accepted since its sender died has its Send event yet.")
    return Weighed(Standing.ABSENT, "no event of it came, and the events of its neighbours did")


def _none_heard(side: str) -> str:
    return (
        f"No letter accepted in the 5 minutes {side} it has its Send event: "
        "nothing shows that events came through at that time."
    )


def _parked(why: str) -> Weighed:
    return Weighed(Standing.PARKED, why)


def _waiting(why: str) -> Weighed:
    return Weighed(Standing.WAITING, why)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
