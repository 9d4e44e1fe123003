"""sendonce with one rule broken, to see whether the judge sees it: ``python -m tests.crash.broken RULE …``.

Each patch is what a reasonable person might have written instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import dispatches, job_states, message_jobs
from sendonce.adapters.stores.sql import groups
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.ledger import SqlLedger
from sendonce.adapters.stores.sql.quick_turns import SqliteLedger
from sendonce.adapters.transports.ses_lane import SesLane
from sendonce.adapters.wire_journal import StateDirectory, WireLog
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.entrypoints.cli.app import main
from sendonce.flows.engine import check_ledger

JOBS = message_jobs.c
LEASE = 1.0


def claims_are_not_durable() -> None:
    """Send, then mark: a claim is only in memory, and the row is written when the reply is there."""
    taken: set[str] = set()
    engine = sa.create_engine(os.environ["DATABASE_URL"])

    def turn(self: Any, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        with engine.begin() as tx:
            for settlement in settlements:
                taken.discard(settlement.job_id)
                if isinstance(settlement.outcome, Accepted):
                    sent = job_states.update().where(job_states.c.id == settlement.job_id)
                    tx.execute(sent.values(state="sent", attempt=settlement.attempt, accepted_attempt=1))
            due = sa.select(message_jobs, dispatches.c.letter_id.label("letter"))
            due = due.join(dispatches, dispatches.c.id == JOBS.dispatch_id)
            due = due.where(JOBS.state == "scheduled", JOBS.id.not_in(taken))
            rows = tx.execute(due.order_by(JOBS.id).limit(claim.limit)).all() if claim else []
            number = tx.execute(sa.text("UPDATE ledger SET claim_seq = claim_seq + 1 RETURNING claim_seq"))
            claim_seq = number.scalar_one()
        taken.update(row.id for row in rows)
        now = datetime.now(UTC)
        jobs = [
            ClaimedJob(r.id, r.dispatch_id, r.letter, r.attempt + 1, 0, r.recipient, r.fields, now)
            for r in rows
        ]
        return Turn(tuple(jobs), claim_seq, len(settlements), 0)

    SqlLedger.turn = turn  # type: ignore[method-assign]
    SqliteLedger.begin_turn = lambda *_: None  # type: ignore[method-assign]


def a_lease_proves_death() -> None:
    """Whoever has been at it for longer than the lease is taken for dead, and its letters go to others."""
    seen: dict[str, float] = {}

    @contextmanager
    def open_if_dead(self: StateDirectory, worker: WorkerRecord) -> Iterator[WireLog | None]:
        expired = time.monotonic() - seen.setdefault(worker.id, time.monotonic()) > LEASE
        yield WireLog({}, True, "its lease ran out", claims=sys.maxsize) if expired else None

    StateDirectory.open_if_dead = open_if_dead  # type: ignore[method-assign]


def lost_replies_are_retried() -> None:
    """No answer is taken for a no."""
    judge = SesLane._judge

    def retry(self: SesLane, answer: Any) -> Any:
        outcome = judge(self, answer)
        return Deferred("no_answer", outcome.reason, 0.1) if isinstance(outcome, InDoubt) else outcome

    SesLane._judge = retry  # type: ignore[method-assign]


def any_database_is_the_same() -> None:
    """A server that answers at the address is taken for the one that was there before."""
    for module in (groups, check_ledger):
        module.refuse_another_database = lambda *_: None  # type: ignore[attr-defined]
    statement = Database.statement

    def uncounted(self: Database, name: str) -> str:
        return statement(self, name).replace("AND claims = %(claims)s", "")

    Database.statement = uncounted  # type: ignore[method-assign]


RULES: dict[str, Callable[[], None]] = {
    "claims-are-not-durable": claims_are_not_durable,
    "a-lease-proves-death": a_lease_proves_death,
    "lost-replies-are-retried": lost_replies_are_retried,
    "any-database-is-the-same": any_database_is_the_same,
}

if __name__ == "__main__":
    RULES[sys.argv.pop(1)]()
    main()
