"""The hot path: one group of letters settled and the next one claimed, in one transaction.

This happens many times a second beside a busy event loop, so each database gets its group in the way
that is cheapest for its driver. Everything rare is in ``ledger``, in SQLAlchemy.

* SQLite: ``sqlite3`` lets go of the interpreter at every row, and the event loop is slow to give it back.
  A group goes in and comes out as one JSON text, on the driver's own connection.
* PostgreSQL: a round trip costs more than the work at its end. The claim's count in its worker's
  row, the clock, the open mailouts and the durability of the transaction come with one statement, the claim's
  number with the claim.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.claim_counts import refuse_if_halted, was_committed
from sendonce.domain.engine.fingerprints import refuse_another_database
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, JobState
from sendonce.domain.engine.workers import WorkerRow
from sendonce.ports.engine import JobRef

AcceptedLetter = tuple[str, int, str | None]
"""Job, attempt, the provider's message id."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn has to know first: the store's time, and for a claim its worker's count.

    ``mailouts`` may be claimed from; there are none where nothing is due. ``held`` tells that the sender is.
    """

    now: datetime
    held: bool = False
    mailouts: list[str] = field(default_factory=list)
    claims: int = 0
    committed: bool = False
    """This very claim was committed before: its reply was lost."""


@dataclass(frozen=True, slots=True)
class ClaimedGroup:
    """Jobs of one mailout, in the order of their ids; ``seq`` is the claim's number, 0 without jobs."""

    jobs: list[ClaimedJob]
    skipped: int
    seq: int


class Groups(Protocol):
    def open(self, tx: Connection, claim: ClaimRequest | None, *, count_anyway: bool) -> Opening:
        """Begin a turn; a claim is counted first, where anything is due or ``count_anyway`` says so.

        Raises LedgerRolledBack and WorkerBuried where the claim may not be made.
        """

    def settle(self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime) -> set[JobRef]:
        """Accepted letters → sent; those that were where they should be."""

    def claim(
        self, tx: Connection, claim: ClaimRequest, mailout_id: str, limit: int, now: datetime
    ) -> ClaimedGroup:
        """Due jobs of one mailout → sending; a suppressed one → skipped."""

    def next_claim_seq(self, tx: Connection) -> int:
        """A number that only rises. A database in which it is lower than outside was rolled back."""


def groups_of(database: Database) -> Groups:
    return SqliteGroups(database) if database.is_sqlite else PostgresGroups(database)


class SqliteGroups:
    """The transaction holds the only write lock, so what a SELECT saw is still so in the UPDATE after it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, tx: Connection, claim: ClaimRequest | None, *, count_anyway: bool) -> Opening:
        now = datetime.now(UTC)
        if claim is None:
            return Opening(now)
        rows = self._execute(tx, "open_mailouts", claim.sender).fetchall()
        _, halted, adoptions, held, recorded = rows[0]
        refuse_if_halted(halted)
        refuse_another_database(recorded, self._db.fingerprint())
        expected = (claim.worker_id, claim.token, claim.claims)
        when = (count_anyway, self._db.moment(now), claim.sender)
        counted = self._execute(tx, "count_claim", *expected, *when).fetchone()
        if counted is not None:
            return Opening(now, bool(held), [row[0] for row in rows if row[0] is not None], counted[0])
        worker = self._execute(tx, "worker_row", claim.worker_id).fetchone()
        return _uncounted(Opening(now, bool(held)), claim, worker, adoptions)

    def settle(self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime) -> set[JobRef]:
        group = json.dumps(accepted)
        updated = self._execute(tx, "settle_accepted", self._db.moment(now), group).rowcount
        if updated == len(accepted):
            return {(job_id, attempt) for job_id, attempt, _ in accepted}
        return {(job_id, attempt) for job_id, attempt in self._execute(tx, "accepted_among", group)}

    def claim(
        self, tx: Connection, claim: ClaimRequest, mailout_id: str, limit: int, now: datetime
    ) -> ClaimedGroup:
        moment = self._db.moment(now)
        picked = json.loads(self._execute(tx, "claim_pick", limit, moment, mailout_id).fetchone()[0])
        jobs = [
            ClaimedJob(job_id, mailout_id, attempt + 1, tries, recipient, fields, now)
            for job_id, attempt, tries, recipient, fields, suppressed in sorted(picked, key=_first)
            if not suppressed
        ]
        suppressed_ids = [row[0] for row in picked if row[5]]
        if suppressed_ids:
            self._execute(tx, "claim_skip", moment, json.dumps(suppressed_ids))
        if not jobs:
            return ClaimedGroup([], len(suppressed_ids), 0)
        ids = json.dumps([job.id for job in jobs])
        self._execute(tx, "claim_take", moment, claim.worker_id, claim.token, ids)
        return ClaimedGroup(jobs, len(suppressed_ids), self.next_claim_seq(tx))

    def next_claim_seq(self, tx: Connection) -> int:
        return int(self._execute(tx, "next_claim").fetchone()[0])

    def _execute(self, tx: Connection, statement: str, *values: Any) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)


class PostgresGroups:
    """Other workers write at the same time: a claim picks and takes in one statement, with SKIP LOCKED."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, tx: Connection, claim: ClaimRequest | None, *, count_anyway: bool) -> Opening:
        if claim is None:
            return Opening(self._execute(tx, "open_settle").fetchone()[0].astimezone(UTC))
        server = self._db.server
        known = server.known
        values = {
            "worker": claim.worker_id,
            "token": claim.token,
            "claims": claim.claims,
            "anyway": count_anyway,
            "sender": claim.sender,
            "known_start": known.started,
        }
        statement = self._db.statement("open_claim").replace("{fingerprint}", server.columns(tx))
        rows = self._db.driver(tx).execute(statement, values).fetchall()
        _, moment, halted, adoptions, held, counted, _, _, recorded, *seen = rows[0]
        now = moment.astimezone(UTC)
        refuse_if_halted(halted)
        refuse_another_database(recorded, server.read(seen, known))
        if counted is not None:
            return Opening(now, held, [row[0] for row in rows if row[0] is not None], counted)
        # A statement of its own: the first may have waited for a COMMIT that it does not see.
        worker = self._execute(tx, "worker_row", {"worker": claim.worker_id}).fetchone()
        return _uncounted(Opening(now, held), claim, worker, adoptions)

    def settle(self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime) -> set[JobRef]:
        jobs, attempts, message_ids = map(list, zip(*accepted, strict=True))
        values = {"now": now, "jobs": jobs, "attempts": attempts, "message_ids": message_ids}
        return {(row[0], row[1]) for row in self._execute(tx, "settle_accepted", values).fetchall()}

    def claim(
        self, tx: Connection, claim: ClaimRequest, mailout_id: str, limit: int, now: datetime
    ) -> ClaimedGroup:
        values = {
            "now": now,
            "mailout": mailout_id,
            "worker": claim.worker_id,
            "token": claim.token,
        }
        statement = self._db.statement("claim").replace("{limit}", str(int(limit)))
        rows = self._db.driver(tx).execute(statement, values).fetchall()
        jobs = [
            ClaimedJob(job_id, mailout_id, attempt, tries, recipient, fields, now)
            for job_id, attempt, tries, recipient, fields, state, _ in sorted(rows, key=_first)
            if state == JobState.SENDING
        ]
        return ClaimedGroup(jobs, len(rows) - len(jobs), rows[0][6] if jobs else 0)

    def next_claim_seq(self, tx: Connection) -> int:
        return int(self._execute(tx, "next_claim").fetchone()[0])

    def _execute(self, tx: Connection, statement: str, values: dict[str, Any] | None = None) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)


def _uncounted(opening: Opening, claim: ClaimRequest, row: Sequence[Any] | None, adoptions: int) -> Opening:
    """Nothing is due, or the claim was committed before, or it may not be made."""
    worker = WorkerRow(*row) if row is not None else None
    committed = was_committed(claim, worker, adoptions)
    return replace(opening, claims=claim.claims + committed, committed=committed)


def _first(row: Sequence[Any]) -> Any:
    return row[0]
