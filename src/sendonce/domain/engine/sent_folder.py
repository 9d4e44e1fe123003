"""May a letter in doubt be called "not taken", by the provider's folder of sent letters?

    claimed              death proven            death + quiet time
       ├──────────────────────┼──────────────────────────┤
    ├─ 5 min ─┼─ 5 min ─┤
       the letters of the same sender that were accepted nearest to it, before and after: all are there

A letter that is in the folder was taken. One that is not may be on its way, or the server files no copies: so
its neighbours have to be there, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sendonce.domain.engine.doubts import Doubt

NEIGHBOURS = 3
"""How many are looked for on each side."""


@dataclass(frozen=True, slots=True)
class AcceptedNear:
    """The ids of jobs that were accepted near another, the nearest first."""

    before: Sequence[str]
    after: Sequence[str]


def is_absent(
    doubt: Doubt,
    now: datetime,
    quiet: timedelta,
    near: Callable[[], AcceptedNear],
    holds: Callable[[str], bool],
) -> bool:
    """For a letter that is not in the folder. ``holds`` asks the server; the cheap questions come first."""
    if doubt.death_proof_at is None or doubt.claimed_at is None or now < doubt.death_proof_at + quiet:
        return False
    neighbours = near()
    if not neighbours.before or not neighbours.after:
        return False
    return all(holds(job_id) for job_id in (*neighbours.before, *neighbours.after))
