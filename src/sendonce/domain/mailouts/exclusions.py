"""Who is left out of a mailout because an earlier one went to them, or may have.

People are compared by their suppression key: it folds the spellings of one mailbox and outlives an erasure.
"""

from __future__ import annotations

from sendonce.domain.engine.jobs import JobState, ended_before_adoption

NOT_REACHED = frozenset({JobState.FAILED, JobState.SKIPPED, JobState.DEAD})
"""What became of an earlier letter that never arrived anywhere. These people may be written to again;
a letter that is in doubt may have arrived, and one that is scheduled still will."""


def was_reached(state: JobState, worker_id: str | None) -> bool:
    """Whether an earlier letter arrived, may have arrived or still may."""
    return state not in NOT_REACHED or ended_before_adoption(state, worker_id)


def got_already(mailout_id: str | None) -> str | None:
    """Why such a person's job is skipped; None for everybody else."""
    return f"got mailout {mailout_id}" if mailout_id else None
