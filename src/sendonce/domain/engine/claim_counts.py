"""Every claim counts in its worker's row, so a buried worker and a database that went back both show.

A claim transaction first does ``claims = claims + 1`` where the row is open and holds the number that the
worker expects. The row's lock also makes a second try wait for a COMMIT that is still under way, so the look
by token that follows sees it.

    the row                              the claim
    is open, has the expected count      may be made
    is open, one more, with this token   was committed before: its reply was lost
    is open, has fewer                   the database went back
    is missing                           the database went back (unless it was adopted since)
    has ended, or counts for others      this worker is buried: it leaves and comes again as a new one
"""

from __future__ import annotations

from sendonce.domain.engine.jobs import ClaimRequest
from sendonce.domain.engine.workers import WorkerRow
from sendonce.errors import LedgerRolledBack, WorkerBuried

HOW_TO_GO_ON = (
    "Nothing is sent from it until you run 'sendonce db adopt', "
    "which marks what may have gone out as in doubt."
)


def refuse_if_halted(reason: str | None) -> None:
    if reason is not None:
        raise LedgerRolledBack(reason)


def was_committed(claim: ClaimRequest, row: WorkerRow | None, adoptions: int) -> bool:
    """Whether this very claim was made before. Raises LedgerRolledBack or WorkerBuried."""
    if row is None and adoptions > claim.adoption:
        raise WorkerBuried(_left_behind(claim, "the database was adopted after it had started"))
    if row is None:
        raise LedgerRolledBack(
            f"The database does not know worker {claim.worker_id}, which had registered there: it was "
            f"restored from an older copy. {HOW_TO_GO_ON}"
        )
    if row.end is not None:
        raise WorkerBuried(_left_behind(claim, row.end))
    if row.claims < claim.claims:
        raise LedgerRolledBack(
            f"The database knows of {row.claims} claims by worker {claim.worker_id}, which made "
            f"{claim.claims}: it was restored from an older copy. {HOW_TO_GO_ON}"
        )
    if row.claims > claim.claims and (row.claims, row.token) != (claim.claims + 1, claim.token):
        raise WorkerBuried(_left_behind(claim, "another process claims in its name"))
    return row.claims > claim.claims


def _left_behind(claim: ClaimRequest, why: str) -> str:
    return (
        f"Worker {claim.worker_id} may claim nothing more ({why}): it leaves. "
        "Start it again, and it registers as a new one."
    )
