"""The ledger on SQL: every arrow of the state machine is a conditional update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import dispatches, job_states, ledger, planned_jobs, workers
from sendonce.adapters.stores.sql.adoption import doubt_all
from sendonce.adapters.stores.sql.arrows import (
    DOUBTED,
    accept,
    archive_attempt,
    back_to_schedule,
    fall_back_on_evidence,
    lock_dispatches,
    lock_job,
    move,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.books import Tally, counted
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.groups import AcceptedLetter, Opening, groups_of
from sendonce.adapters.stores.sql.neighbours import look_around
from sendonce.adapters.stores.sql.rows import in_state
from sendonce.adapters.stores.sql.sender_holds import lock_hold, put_off_probes
from sendonce.adapters.stores.sql.workers import lock_worker, sign_off
from sendonce.domain.engine.doubts import Doubt, Surroundings
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import (
    ADOPTED_CLAIMS,
    BEFORE_ALL,
    MOVES,
    ClaimedJob,
    ClaimRequest,
    JobState,
    Move,
    Settlement,
    Turn,
    ended_before_adoption,
)
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from sendonce.domain.engine.senders import SenderHold
from sendonce.domain.engine.workers import ADOPTED, VOUCHED, LedgerIdentity
from sendonce.errors import LedgerRolledBack, RefusedByRule
from sendonce.ports.engine import JobRef

JOBS = job_states.c


class SqlLedger:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._groups = groups_of(database)

    # -- what the engine does, many times a second ---------------------------------------------

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        with self.halting(), self._db.writing(made_durable=False) as tx:
            return self.settle_and_claim(tx, settlements, claim)

    def settle_and_claim(
        self, tx: Connection, settlements: Sequence[Settlement], claim: ClaimRequest | None
    ) -> Turn:
        with counted(self._db, tx) as tally:
            return self._take_turn(tx, tally, settlements, claim)

    def _take_turn(
        self, tx: Connection, tally: Tally, settlements: Sequence[Settlement], claim: ClaimRequest | None
    ) -> Turn:
        puts_off = any(isinstance(s.outcome, Deferred) for s in settlements)
        # What this very turn puts off may be claimed in it; and a second try waits for the first in any case.
        anyway = puts_off or (claim is not None and claim.retry)
        opening = self._groups.open(tx, claim, count_anyway=anyway)
        settled = self._settle(tx, tally, settlements, opening.now)
        if claim is None:
            return Turn((), 0, settled, 0)
        if puts_off:
            opening = replace(opening, awake=self._groups.wake(tx, opening.now, claim))
        hold = lock_hold(tx, claim.sender) if opening.held else None
        if opening.committed:
            claimed = self._claimed_already(tx, claim)
            seq = self._groups.next_claim_seq(tx) if claimed else 0
            turn = Turn(tuple(claimed), seq, settled, 0, hold, opening.claims, opening.now)
        elif claim.jumped(opening.now):
            turn = Turn((), 0, settled, 0, hold, opening.claims, opening.now)
        elif hold is not None:
            turn = self._claim_probe(tx, tally, claim, opening, settled, hold)
        else:
            turn = self._claim(tx, tally, claim, opening, settled)
        failpoint("claim-before-commit")
        return turn

    @contextmanager
    def halting(self) -> Iterator[None]:
        """The transaction that notices a database gone back is undone; the halt is kept in one of its own."""
        try:
            yield
        except LedgerRolledBack as exc:
            self.halt(str(exc))
            raise

    def _claim(
        self, tx: Connection, tally: Tally, claim: ClaimRequest, opening: Opening, settled: int
    ) -> Turn:
        """Fill the group from one dispatch after the other, in the order of fair share."""
        claimed: list[ClaimedJob] = []
        skipped = seq = 0
        for turn_of in opening.awake:
            wanted = claim.limit - len(claimed)
            if wanted <= 0:
                break
            group = self._groups.claim(tx, tally, claim, turn_of, wanted, opening.now)
            claimed += group.jobs
            skipped += group.skipped
            seq = max(seq, group.seq)
            served = len(group.jobs) + group.skipped
            if served and len(opening.awake) > 1:
                self._groups.charge(tx, claim, turn_of, tenant=opening.tenants > 1)
            if served < wanted:
                self._groups.lull(tx, turn_of, opening.now)
        return Turn(tuple(claimed), seq, settled, skipped, None, opening.claims, opening.now)

    def _claim_probe(
        self,
        tx: Connection,
        tally: Tally,
        claim: ClaimRequest,
        opening: Opening,
        settled: int,
        hold: SenderHold,
    ) -> Turn:
        """One job, once the hold's time has come; the next probe waits for its answer."""
        if hold.lets_nobody_try(opening.now):
            return Turn((), 0, settled, 0, hold, opening.claims, opening.now)
        turn = self._claim(tx, tally, replace(claim, limit=min(claim.limit, 1)), opening, settled)
        if turn.claimed:
            put_off_probes(tx, hold, opening.now)
        return replace(turn, hold=hold)

    def _claimed_already(self, tx: Connection, claim: ClaimRequest) -> list[ClaimedJob]:
        """The jobs of a claim whose COMMIT reply was lost."""
        planned = planned_jobs.c
        letter = sa.func.coalesce(planned.letter_id, dispatches.c.letter_id, type_=planned.letter_id.type)
        columns = (JOBS.id, JOBS.dispatch_id, letter, JOBS.attempt, JOBS.tries, planned.recipient)
        query = (
            sa.select(*columns, planned.fields, JOBS.claimed_at, planned.thread)
            .join_from(job_states, planned_jobs, planned.id == JOBS.id)
            .join(dispatches, dispatches.c.id == JOBS.dispatch_id)
            .where(in_state(JobState.SENDING), JOBS.worker_id == claim.worker_id)
            .where(JOBS.claim_token == claim.token)
        )
        return sorted((ClaimedJob(*row) for row in tx.execute(query)), key=itemgetter(0))

    # -- settling ------------------------------------------------------------------------------

    def _settle(self, tx: Connection, tally: Tally, settlements: Sequence[Settlement], now: datetime) -> int:
        accepted = [
            (s.job_id, s.attempt, s.outcome.message_id)
            for s in settlements
            if isinstance(s.outcome, Accepted)
        ]
        if len(accepted) < len(settlements):
            lock_dispatches(tx, [s.job_id for s in settlements if not isinstance(s.outcome, Accepted)])
        done = self._settle_accepted(tx, tally, settlements, accepted, now) if accepted else set()
        if len(done) == len(settlements):
            return len(done)
        rest = [s for s in settlements if (s.job_id, s.attempt) not in done]
        return len(done) + sum(self._settle_one(tx, tally, s, now) for s in rest)

    def _settle_accepted(
        self,
        tx: Connection,
        tally: Tally,
        settlements: Sequence[Settlement],
        accepted: Sequence[AcceptedLetter],
        now: datetime,
    ) -> set[JobRef]:
        """The usual outcome, a whole group at once; which of them that did."""
        moved, heard = self._groups.settle(tx, accepted, now)
        known = {(s.job_id, s.attempt): s.dispatch_id for s in settlements}
        counts = Counter(map(known.__getitem__, moved))
        if counts.pop(None, 0):
            unknown = [ref[0] for ref in moved if known[ref] is None]
            counts += Counter(tx.execute(sa.select(JOBS.dispatch_id).where(JOBS.id.in_(unknown))).scalars())
        for dispatch_id, count in counts.items():
            assert dispatch_id is not None
            tally.move(dispatch_id, JobState.SENDING, JobState.SENT, count)
        return moved | heard if heard else moved

    def _settle_one(self, tx: Connection, tally: Tally, settlement: Settlement, now: datetime) -> int:
        """Everything but the usual: a deferral, a refusal, a doubt, or an outcome that comes late."""
        row = lock_job(tx, settlement.job_id)
        if row is None or row.attempt < settlement.attempt:
            raise LedgerRolledBack(
                f"Attempt {settlement.attempt} of job {settlement.job_id} was claimed, but this database "
                "does not know of it: it was restored from an older copy. Run 'sendonce db adopt'."
            )
        if isinstance(settlement.outcome, Accepted):
            evidence = accept(tx, tally, row, settlement.attempt, settlement.outcome.message_id, now)
            return int(evidence.ends_the_job)
        if row.attempt > settlement.attempt:
            return 0
        if row.accepted_attempt is not None:
            return fall_back_on_evidence(tx, tally, row, now)
        match settlement.outcome:
            case Deferred():
                return self._defer(tx, tally, row, settlement, now)
            case Refused(code, reason):
                changes = {"code": code, "reason": reason, "settled_at": now}
                return move(tx, tally, row, Move.REFUSE, JobState.FAILED, changes)
            case InDoubt(reason):
                proof = {"death_proof": settlement.death_proof, "death_proof_at": now}
                changes = {"code": None, "reason": reason, **(proof if settlement.death_proof else {})}
                return move(tx, tally, row, Move.DOUBT, JobState.IN_DOUBT, changes)

    def _defer(
        self, tx: Connection, tally: Tally, row: Row[Any], settlement: Settlement, now: datetime
    ) -> int:
        outcome = settlement.outcome
        assert isinstance(outcome, Deferred)
        if row.state not in MOVES[Move.DEFER][0]:
            return 0
        archive_attempt(tx, row, now, "deferred", outcome.code, outcome.reason)
        changes: dict[str, Any] = {
            "tries": row.tries + (0 if outcome.throttle else 1),
            "code": outcome.code,
            "reason": outcome.reason,
        }
        if settlement.exhausted:
            return move(tx, tally, row, Move.EXHAUST, JobState.DEAD, {**changes, "settled_at": now})
        changes["due_at"] = now + timedelta(seconds=settlement.retry_after)
        return back_to_schedule(tx, tally, row, Move.DEFER, changes, now)

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        with self._db.reading() as tx:
            return tx.exec_driver_sql(self._db.statement("reaffirm"), (job_id, attempt)).first() is not None

    # -- the dead and the doubted --------------------------------------------------------------

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        query = sa.select(JOBS.id, JOBS.attempt).where(in_state(JobState.SENDING))
        query = query.where(JOBS.worker_id == worker_id)
        with self._db.reading() as tx:
            return sorted((row.id, row.attempt) for row in tx.execute(query))

    def oldest_claim(self) -> datetime | None:
        oldest = sa.select(sa.func.min(JOBS.claimed_at, type_=JOBS.claimed_at.type)).where(
            in_state(JobState.SENDING)
        )
        with self._db.reading() as tx:
            return tx.execute(oldest).scalar_one_or_none()

    def fence(self, transport: str, claimed_before: datetime, proof: str) -> int:
        of_transport = sa.select(workers.c.id).where(workers.c.transport == transport)
        with self._db.writing() as tx:
            now = self._db.now(tx)
            signed_by_then = sa.and_(JOBS.claimed_at < claimed_before, JOBS.worker_id.in_(of_transport))
            return self._doubt_sending(tx, signed_by_then, proof, now)

    def _doubt_sending(self, tx: Connection, which: sa.ColumnElement[bool], proof: str, now: datetime) -> int:
        """sending → in_doubt with a death proof; how many."""
        changes = {"state": DOUBTED, "reason": proof, "death_proof": proof, "death_proof_at": now}
        update = job_states.update().where(in_state(JobState.SENDING), which).values(changes)
        with counted(self._db, tx) as tally:
            doubted = tx.execute(update.returning(JOBS.dispatch_id, JOBS.state)).all()
            for dispatch_id, state in doubted:
                tally.move(dispatch_id, JobState.SENDING, state)
        return len(doubted)

    def doubts(
        self,
        limit: int,
        *,
        after: str = BEFORE_ALL,
        transport: str | None = None,
        dispatch_id: str | None = None,
    ) -> Sequence[Doubt]:
        columns = (JOBS.id, JOBS.attempt, JOBS.dispatch_id, workers.c.transport, workers.c.route)
        query = (
            sa.select(*columns, JOBS.claimed_at, JOBS.death_proof_at)
            .select_from(job_states.outerjoin(workers, workers.c.id == JOBS.worker_id))
            .where(in_state(JobState.IN_DOUBT), JOBS.id > after)
        )
        if transport is not None:
            query = query.where(JOBS.death_proof.is_not(None), workers.c.transport == transport)
        if dispatch_id is not None:
            query = query.where(JOBS.dispatch_id == dispatch_id)
        with self._db.reading() as tx:
            return [Doubt(*row) for row in tx.execute(query.order_by(JOBS.id).limit(limit))]

    def surroundings(self, doubt: Doubt) -> Surroundings:
        with self._db.reading() as tx:
            return look_around(tx, doubt)

    def prove_absence(self, refs: Sequence[JobRef], proof: str) -> int:
        moved = 0
        with self._db.writing() as tx, counted(self._db, tx) as tally:
            now = self._db.now(tx)
            lock_dispatches(tx, [job_id for job_id, _ in refs])
            for job_id, attempt in refs:
                row = lock_job(tx, job_id)
                if row is None or row.attempt != attempt or row.death_proof is None:
                    continue
                if row.state != JobState.IN_DOUBT:
                    continue
                archive_attempt(tx, row, now, "absent", None, proof, absence_proof=proof)
                changes = {"due_at": now, "reason": proof, "absence_proof": proof}
                moved += back_to_schedule(tx, tally, row, Move.ABSENCE, changes, now)
        return moved

    # -- an operator's word --------------------------------------------------------------------

    def resolve(self, job_ids: Sequence[str], *, sent: bool, actor: str, note: str) -> int:
        moved = 0
        word = f"the word of {actor}"
        with self._db.writing() as tx, counted(self._db, tx) as tally:
            now = self._db.now(tx)
            lock_dispatches(tx, job_ids)
            for job_id in job_ids:
                row = lock_job(tx, job_id)
                if row is None or row.state != JobState.IN_DOUBT:
                    continue
                if sent:
                    ended = {"settled_at": now, "code": None, "reason": word}
                    moved += move(tx, tally, row, Move.ACCEPT, JobState.SENT, ended)
                else:
                    archive_attempt(tx, row, now, "absent", None, word, absence_proof=word)
                    proofs = {"death_proof": word, "death_proof_at": now, "absence_proof": word}
                    changes = {"due_at": now, "reason": word, **proofs}
                    moved += back_to_schedule(tx, tally, row, Move.ABSENCE, changes, now)
                verdict = "sent" if sent else "not sent"
                insert_audit(tx, now, actor, "resolve", job_id, {"verdict": verdict, "note": note})
        return moved

    def retry(self, job_ids: Sequence[str], actor: str, *, not_sent_elsewhere: bool = False) -> int:
        moved = 0
        with self._db.writing() as tx, counted(self._db, tx) as tally:
            now = self._db.now(tx)
            lock_dispatches(tx, job_ids)
            for job_id in job_ids:
                row = lock_job(tx, job_id)
                if row is None or row.state not in MOVES[Move.RETRY][0]:
                    continue
                details = {"from": row.state, "reason": row.reason}
                if ended_before_adoption(row.state, row.worker_id):
                    if not not_sent_elsewhere:
                        continue
                    details["word"] = "not sent elsewhere"
                if row.state == JobState.FAILED:  # a dead job's last attempt is archived already
                    archive_attempt(tx, row, now, "failed", row.code, row.reason)
                moved += back_to_schedule(tx, tally, row, Move.RETRY, {"due_at": now, "tries": 0}, now)
                insert_audit(tx, now, actor, "retry", job_id, details)
        return moved

    def bury(self, worker_id: str, actor: str) -> int:
        word = f"the word of {actor}: the worker is dead"
        with self._db.writing() as tx:
            now = self._db.now(tx)
            if not lock_worker(tx, worker_id):
                raise RefusedByRule(f"Worker {worker_id} is over already.")
            doubted = self._doubt_sending(tx, JOBS.worker_id == worker_id, word, now)
            sign_off(tx, worker_id, word, now)
            insert_audit(tx, now, actor, "bury", worker_id, {"in_doubt": doubted})
        return doubted

    # -- which ledger this is, and a database that went back in time ----------------------------

    def identity(self) -> LedgerIdentity:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(ledger)).one()
            seq = row.claim_seq
            if not self._db.is_sqlite:
                seq = tx.exec_driver_sql("SELECT last_value FROM claim_seq").scalar_one()
            known = (row.ledger_id, bytes(row.pepper), row.fingerprint, int(seq), row.halted, row.adoptions)
            return LedgerIdentity(*known, row.adopted_at or row.created_at)

    def now(self) -> datetime:
        with self._db.reading() as tx:
            return self._db.now(tx)

    def halt(self, reason: str) -> None:
        with self._db.writing() as tx:
            tx.execute(ledger.update().where(ledger.c.halted.is_(None)).values(halted=reason))

    def adopt(self, fingerprint: str | None, claim_seq: int, actor: str) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            doubted = doubt_all(self._db, tx)
            once_more = {"adoptions": ledger.c.adoptions + 1, "adopted_at": now}
            tx.execute(ledger.update().values(halted=None, fingerprint=fingerprint, **once_more))
            # Their counts may be of the forgotten time: who lives comes again as a new one.
            tx.execute(workers.update().where(workers.c.ended_at.is_(None)).values(ended_at=now, end=ADOPTED))
            if self._db.is_sqlite:
                higher = sa.case((ledger.c.claim_seq < claim_seq, claim_seq), else_=ledger.c.claim_seq)
                tx.execute(ledger.update().values(claim_seq=higher + ADOPTED_CLAIMS))
            else:
                tx.exec_driver_sql(
                    "SELECT setval('claim_seq', greatest(last_value, %(seq)s) + %(more)s) FROM claim_seq",
                    {"seq": claim_seq, "more": ADOPTED_CLAIMS},
                )
            insert_audit(tx, now, actor, "adopt", "ledger", {"in_doubt": doubted})
        return doubted

    def vouch(self, fingerprint: str | None, actor: str) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            before = tx.execute(sa.select(ledger.c.fingerprint, ledger.c.halted).with_for_update()).one()
            tx.execute(ledger.update().values(halted=None, fingerprint=fingerprint, adopted_at=now))
            details = {"from": before.fingerprint, "to": fingerprint, "halted": before.halted}
            insert_audit(tx, now, actor, VOUCHED, "ledger", details)
