"""The hot path: one group of letters settled and the next one claimed, in one transaction.

This happens many times a second beside a busy event loop, so each database gets its group in the way
that is cheapest for its driver. Everything rare is in ``ledger``, in SQLAlchemy.

* SQLite: ``sqlite3`` lets go of the interpreter at every row, and the event loop is slow to give it back.
  A group goes in and comes out as one JSON text, on the driver's own connection.
* PostgreSQL: a round trip costs more than the work at its end. The claim's count in its worker's
  row, the clock, the dispatches in turn and the durability of the transaction come with one statement, the
  claim's number with the claim.

Dispatches with due jobs are awake and have their order. Those that wait are asleep under the time when they
come due, so a turn costs the same however many they are: it looks at the first of each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine import Connection

from sendonce.adapters.stores.sql.arrays import plain_array, text_array
from sendonce.adapters.stores.sql.books import SLOTS, WHOLE_LEDGER, Tally
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.places import Place, Places, as_values
from sendonce.domain.engine.claim_counts import refuse_if_halted, was_committed
from sendonce.domain.engine.fingerprints import refuse_another_database
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, JobState
from sendonce.domain.engine.tenants import DispatchId
from sendonce.domain.engine.workers import WorkerRow
from sendonce.ports.engine import JobRef

AcceptedLetter = tuple[str, int, str | None]
"""Job, attempt, the provider's message id."""


_first = itemgetter(0)


class InTurn(NamedTuple):
    """A dispatch whose jobs may be claimed."""

    id: DispatchId
    tenant_id: str
    letter_id: str | None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn has to know first: the store's time, and for a claim its worker's count.

    ``awake`` are the first dispatches in the order of fair share; there are none where nothing is due.
    ``held`` tells that the sender is.
    """

    now: datetime
    held: bool = False
    awake: list[InTurn] = field(default_factory=list)
    claims: int = 0
    committed: bool = False
    """This very claim was committed before: its reply was lost."""

    @property
    def tenants(self) -> int:
        return len({dispatch.tenant_id for dispatch in self.awake})


@dataclass(frozen=True, slots=True)
class ClaimedGroup:
    """Jobs of one dispatch, in the order of their ids; ``seq`` is the claim's number, 0 without jobs."""

    jobs: list[ClaimedJob]
    skipped: int
    seq: int


class Groups(Protocol):
    def open(self, tx: Connection, claim: ClaimRequest | None, *, count_anyway: bool) -> Opening:
        """Begin a turn; a claim is counted first, where anything is due or ``count_anyway`` says so.

        Raises LedgerRolledBack and WorkerBuried where the claim may not be made.
        """

    def wake(self, tx: Connection, now: datetime, claim: ClaimRequest) -> list[InTurn]:
        """Wake the dispatches whose time has come; the sender's first that are awake, as in ``Opening``."""

    def settle(
        self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime
    ) -> tuple[set[JobRef], set[JobRef]]:
        """Accepted letters: those that it made sent, and those that an event of theirs has before.

        All others are left as they are: in doubt, or with another attempt that is proven to be accepted.
        """

    def claim(
        self, tx: Connection, tally: Tally, claim: ClaimRequest, dispatch: InTurn, limit: int, now: datetime
    ) -> ClaimedGroup:
        """Due jobs of one dispatch → sending; a suppressed one → skipped. Both are counted."""

    def charge(self, tx: Connection, claim: ClaimRequest, dispatch: InTurn, *, tenant: bool) -> None:
        """The dispatch gave a group, and its tenant did, if others wait: see domain/engine/dispatches."""

    def lull(self, tx: Connection, dispatch: InTurn, now: datetime) -> None:
        """The dispatch has given all that was due: it sleeps until its next job is."""

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
        moment = self._db.moment(now)
        rows = self._execute(tx, "open_claim", claim.sender, moment, claim.sender_id).fetchall()
        *_, halted, adoptions, held, recorded, sleepers = rows[0]
        refuse_if_halted(halted)
        refuse_another_database(recorded, self._db.fingerprint())
        awake = [InTurn(*row[:3]) for row in rows if row[0] is not None]
        if sleepers:
            awake = self.wake(tx, now, claim)
        elif len(awake) > 1:
            awake = self._in_turn(tx, claim)
        expected = (claim.worker_id, claim.token, claim.claims)
        when = (count_anyway, json.dumps([dispatch.id for dispatch in awake]), moment, claim.sender)
        counted = self._execute(tx, "count_claim", *expected, *when).fetchone()
        if counted is not None:
            return Opening(now, bool(held), awake, counted[0])
        if not held:  # or else they are awake and wait for their sender
            for dispatch in awake:
                self.lull(tx, dispatch, now)
        worker = self._execute(tx, "worker_row", claim.worker_id).fetchone()
        return _uncounted(Opening(now, bool(held)), claim, worker, adoptions)

    def wake(self, tx: Connection, now: datetime, claim: ClaimRequest) -> list[InTurn]:
        moment = self._db.moment(now)
        self._execute(tx, "wake_tenants", moment)
        self._execute(tx, "wake", moment)
        return self._in_turn(tx, claim)

    def _in_turn(self, tx: Connection, claim: ClaimRequest) -> list[InTurn]:
        rows = self._execute(tx, "in_turn", _enough(claim.limit), claim.sender_id)
        return [InTurn(*row) for row in rows]

    def settle(
        self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime
    ) -> tuple[set[JobRef], set[JobRef]]:
        driver, statement = self._db.driver(tx), self._db.statement("settle_accepted")
        values = (self._db.moment(now), json.dumps(accepted))
        driver.execute("SAVEPOINT settling")
        if driver.execute(statement, values).rowcount == len(accepted):
            return {(job_id, attempt) for job_id, attempt, _ in accepted}, set()
        # Once more, asking which: that costs too much where all is as usual.
        driver.execute("ROLLBACK TO settling")
        moved = set(driver.execute(f"{statement} RETURNING id, attempt", values).fetchall())
        return moved, set(self._execute(tx, "settle_heard", *values).fetchall())

    def claim(
        self, tx: Connection, tally: Tally, claim: ClaimRequest, dispatch: InTurn, limit: int, now: datetime
    ) -> ClaimedGroup:
        moment = self._db.moment(now)
        picked = json.loads(self._execute(tx, "claim_pick", limit, moment, dispatch.id).fetchone()[0])
        picked.sort(key=_first)
        own, _, usual = dispatch
        jobs = [
            ClaimedJob(job_id, own, letter or usual, attempt + 1, tries, recipient, fields, now, thread)
            for job_id, suppressed, letter, thread, attempt, tries, recipient, fields in picked
            if not suppressed
        ]
        suppressed_ids = [row[0] for row in picked if row[1]]
        tally.move(own, JobState.SCHEDULED, JobState.SENDING, len(jobs))
        tally.move(own, JobState.SCHEDULED, JobState.SKIPPED, len(suppressed_ids))
        if suppressed_ids:
            self._execute(tx, "claim_skip", moment, json.dumps(suppressed_ids))
        if not jobs:
            return ClaimedGroup([], len(suppressed_ids), 0)
        ids = json.dumps([job.id for job in jobs])
        self._execute(tx, "claim_take", moment, claim.worker_id, claim.token, ids)
        return ClaimedGroup(jobs, len(suppressed_ids), self.next_claim_seq(tx))

    def charge(self, tx: Connection, claim: ClaimRequest, dispatch: InTurn, *, tenant: bool) -> None:
        self._execute(tx, "charge", dispatch.id)
        if tenant:
            self._execute(tx, "charge_tenant", claim.sender_id, dispatch.tenant_id)

    def lull(self, tx: Connection, dispatch: InTurn, now: datetime) -> None:
        self._execute(tx, "lull", dispatch.id, self._db.moment(now))

    def next_claim_seq(self, tx: Connection) -> int:
        return int(self._execute(tx, "next_claim").fetchone()[0])

    def _execute(self, tx: Connection, statement: str, *values: Any) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)


class PostgresGroups:
    """Other workers write at the same time: a claim picks and takes in one statement, with SKIP LOCKED."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._places = Places()

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
            "sender_id": claim.sender_id,
            "known_start": known.started,
            **self._places.last(claim.sender_id),
        }
        statement = self._db.statement("open_claim").replace("{fingerprint}", server.columns(tx))
        statement = statement.replace("{limit}", str(_enough(claim.limit)))
        rows = self._db.driver(tx).execute(statement, values).fetchall()
        _, _, _, moment, halted, adoptions, held, counted, sleepers, _, _, _, _, recorded, *seen = rows[0]
        now = moment.astimezone(UTC)
        refuse_if_halted(halted)
        refuse_another_database(recorded, server.read(seen, known))
        awake = [InTurn(*row[:3]) for row in rows if row[0] is not None]
        if counted is not None:
            return Opening(now, held, self.wake(tx, now, claim) if sleepers else awake, counted)
        if not held:  # or else they are awake and wait for their sender
            for dispatch in awake:
                self.lull(tx, dispatch, now)
        # A statement of its own: the first may have waited for a COMMIT that it does not see.
        worker = self._execute(tx, "worker_row", {"worker": claim.worker_id}).fetchone()
        return _uncounted(Opening(now, held), claim, worker, adoptions)

    def wake(self, tx: Connection, now: datetime, claim: ClaimRequest) -> list[InTurn]:
        self._execute(tx, "wake_tenants", {"now": now})
        self._execute(tx, "wake", {"now": now})
        values = {"limit": _enough(claim.limit), "sender_id": claim.sender_id}
        return [InTurn(*row) for row in self._execute(tx, "in_turn", values).fetchall()]

    def settle(
        self, tx: Connection, accepted: Sequence[AcceptedLetter], now: datetime
    ) -> tuple[set[JobRef], set[JobRef]]:
        jobs, attempts, message_ids = zip(*accepted, strict=True)
        refs = {"jobs": plain_array(jobs), "attempts": plain_array(attempts)}
        values = {"now": now, "message_ids": text_array(message_ids), "expected": len(accepted), **refs}
        (found,) = self._execute(tx, "settle_accepted", values).fetchone()
        if found is None:
            return set(zip(jobs, attempts, strict=True)), set()
        moved = {(job_id, attempt) for job_id, attempt in found}
        return moved, set(self._execute(tx, "settle_heard", values).fetchall())

    def claim(
        self, tx: Connection, tally: Tally, claim: ClaimRequest, dispatch: InTurn, limit: int, now: datetime
    ) -> ClaimedGroup:
        place = self._places.of(dispatch.id, now)
        group = self._claim_after(tx, tally, claim, dispatch, limit, now, place)
        found = len(group.jobs) + group.skipped
        if place is None or found == limit:
            return group
        rest = self._claim_after(tx, tally, claim, dispatch, limit - found, now, None)
        jobs = sorted([*group.jobs, *rest.jobs], key=_first)
        return ClaimedGroup(jobs, group.skipped + rest.skipped, max(group.seq, rest.seq))

    def _claim_after(
        self,
        tx: Connection,
        tally: Tally,
        claim: ClaimRequest,
        dispatch: InTurn,
        limit: int,
        now: datetime,
        place: Place | None,
    ) -> ClaimedGroup:
        values = {"now": now, "dispatch": dispatch.id, "worker": claim.worker_id, "token": claim.token}
        values |= {"sent": tally.withdraw_sent(dispatch.id), "ledger": WHOLE_LEDGER}
        statement = self._db.statement("claim").replace("{limit}", str(int(limit)))
        statement = statement.replace("{slots}", str(SLOTS))
        statement = statement.replace("{after}", _AFTER if place else "")
        rows = self._db.driver(tx).execute(statement, {**values, **as_values(place)}).fetchall()
        if not rows:
            return ClaimedGroup([], 0, 0)
        rows.sort(key=_first)
        *_, seq, last_due, last_priority, last_id = rows[0]
        reached = Place(last_due, last_priority, last_id)
        self._places.remember(claim.sender_id, dispatch.id, reached, now, after=place)
        # One document in place of many: the parser's start costs more than its work.
        every_fields = json.loads(f"[{','.join([row[7] for row in rows])}]")
        own, _, usual = dispatch
        jobs = [
            ClaimedJob(job_id, own, letter or usual, attempt, tries, recipient, fields, now, thread)
            for (job_id, state, letter, thread, attempt, tries, recipient, *_), fields in zip(
                rows, every_fields, strict=True
            )
            if state == JobState.SENDING
        ]
        return ClaimedGroup(jobs, len(rows) - len(jobs), seq if jobs else 0)

    def charge(self, tx: Connection, claim: ClaimRequest, dispatch: InTurn, *, tenant: bool) -> None:
        self._execute(tx, "charge", {"dispatch": dispatch.id})
        if tenant:
            turn = {"sender_id": claim.sender_id, "tenant": dispatch.tenant_id}
            self._execute(tx, "charge_tenant", turn)

    def lull(self, tx: Connection, dispatch: InTurn, now: datetime) -> None:
        # Lock first and look afterwards: whoever makes a job scheduled holds the lock until it can be seen.
        # Who holds it now may be doing so: then the next claim asks again.
        if self._execute(tx, "lock_idle", {"dispatch": dispatch.id}).fetchone() is not None:
            self._execute(tx, "lull", {"dispatch": dispatch.id, "now": now})

    def next_claim_seq(self, tx: Connection) -> int:
        return int(self._execute(tx, "next_claim").fetchone()[0])

    def _execute(self, tx: Connection, statement: str, values: dict[str, Any] | None = None) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)


_AFTER = """AND (j.due_at, j.priority, j.id)
        > (%(after_due)s::timestamptz, %(after_priority)s::smallint, %(after_id)s::uuid)"""


def _uncounted(opening: Opening, claim: ClaimRequest, row: Sequence[Any] | None, adoptions: int) -> Opening:
    """Nothing is due, or the claim was committed before, or it may not be made."""
    worker = WorkerRow(*row) if row is not None else None
    committed = was_committed(claim, worker, adoptions)
    return replace(opening, claims=claim.claims + committed, committed=committed)


def _enough(limit: int) -> int:
    """How many dispatches to look at for a group. The last one served may have had no more than it gave."""
    return limit + 1
