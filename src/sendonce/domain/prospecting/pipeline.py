"""The pipeline: its steps in order, which role does which, and the line that each cycle leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class StepName(StrEnum):
    """In the order in which a company goes through them."""

    SUBMIT = "submit"
    POLL = "poll"
    INGEST = "ingest"
    VISIT = "visit"
    DEDUPE = "dedupe"
    WRITE = "write"
    PLAN = "plan"


class Role(StrEnum):
    """``scheduler`` talks to the search provider, ``worker`` does the rest."""

    SCHEDULER = "scheduler"
    WORKER = "worker"


_SCHEDULER = (StepName.SUBMIT, StepName.POLL, StepName.INGEST)

STEPS_OF = {
    Role.SCHEDULER: _SCHEDULER,
    Role.WORKER: tuple(name for name in StepName if name not in _SCHEDULER),
}


class Manner(StrEnum):
    """How long a run goes on."""

    ONCE = "once"
    UNTIL_IDLE = "until-idle"
    LOOP = "loop"


def steps_wanted(only: Sequence[StepName], role: Role | None) -> list[StepName]:
    """In their order: those that were named, or those of a role, or all."""
    named = only or (STEPS_OF[role] if role else tuple(StepName))
    return [name for name in StepName if name in named]


@dataclass(frozen=True, slots=True)
class StepCount:
    """What one cycle of a step did. ``note`` tells what a person should know, such as why it waits.

    What failed without being taken is the step's own failure: wrong settings, say.
    """

    taken: int = 0
    done: int = 0
    failed: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class JournalLine:
    step: StepName
    worker: str
    taken: int
    done: int
    failed: int
    seconds: float
    note: str
    at: datetime
    id: str = ""


def got_on(line: JournalLine) -> bool:
    """Whether something came of what the step took, so that there may be more to do at once."""
    return bool(line.taken) and bool(line.done or line.failed)


def is_broken(line: JournalLine) -> bool:
    """Whether the step itself failed, not some of what it took."""
    return bool(line.failed) and not line.taken
