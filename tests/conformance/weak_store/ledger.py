"""The ledger of the weak store: every arrow is one conditional write of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.arrows import accept, fall_back_on_evidence, move
from sendonce.adapters.stores.memory.ledger import MemoryLedger
from sendonce.adapters.stores.memory.state import EndedAttempt, JobRow, State
from sendonce.adapters.stores.memory.workers import sign_off
from sendonce.domain.engine.dispatches import CANCELLED, RESTORED, DispatchPhase
from sendonce.domain.engine.jobs import (
    ADOPTED_CLAIMS,
    ClaimRequest,
    JobState,
    Move,
    Settlement,
    Turn,
    after,
    ended_before_adoption,
)
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from sendonce.domain.engine.senders import PROBE_WITHIN, SenderHold
from sendonce.domain.engine.workers import ADOPTED, VOUCHED, WorkerRecord
from sendonce.errors import LedgerRolledBack, RefusedByRule
from sendonce.ports.engine import JobRef
from tests.conformance.weak_store.claiming import Claims
from tests.conformance.weak_store.dispatches import reopen
from tests.conformance.weak_store.items import Items
from tests.conformance.weak_store.workers import WorkerItem, still_sending

UNPLANNED = (DispatchPhase.PREPARING, DispatchPhase.PLANNING)


class WeakLedger(MemoryLedger):
    """What only reads is the memory ledger's, over listings that lag."""

    def __init__(self, state: State, items: Items, lagging: State, workers: dict[str, WorkerItem]) -> None:
        super().__init__(lagging)
        self._rows = state
        self._items = items
        self._workers = workers
        self._claims = Claims(state, items, lambda: lagging.jobs, workers)

    # -- settling and claiming -----------------------------------------------------------------

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        now = self._rows.clock()
        try:
            self._refuse_if_rolled_back(settlements)
            committed = claim is not None and self._claims.was_committed(claim)
        except LedgerRolledBack as exc:
            self.halt(str(exc))
            raise
        settled = sum(self._settle(s, now) for s in settlements)
        if claim is None:
            return Turn((), 0, settled, 0)
        hold = self._items.get(self._rows.sender_holds, claim.sender)
        claimed, skipped = [], 0
        if committed:
            claimed = self._claims.found_again(claim)
        elif not claim.jumped(now):
            claimed, skipped = self._claim_unless_held(claim, hold, now)
        seq = self._next_claim_seq() if claimed else 0
        jobs = tuple(map(self._claimed_job, claimed))
        return Turn(jobs, seq, settled, skipped, hold, self._claims.count_of(claim.worker_id), now)

    def _refuse_if_rolled_back(self, settlements: Sequence[Settlement]) -> None:
        for s in settlements:
            row = self._items.get(self._rows.jobs, s.job_id)
            if row is None or row.attempt < s.attempt:
                raise LedgerRolledBack(
                    f"Attempt {s.attempt} of job {s.job_id} was claimed, but this store does not know of it."
                )

    def _next_claim_seq(self) -> int:
        self._items.before_write()
        with self._rows.transaction():
            self._rows.claim_seq += 1
            return self._rows.claim_seq

    def _claim_unless_held(
        self, claim: ClaimRequest, hold: SenderHold | None, now: datetime
    ) -> tuple[list[JobRow], int]:
        """The right to the probe is taken before the job: of two workers one has it."""
        if hold is None:
            return self._claims.claim(claim, now)
        if hold.lets_nobody_try(now):
            return [], 0
        later = replace(hold, next_try_at=now + timedelta(seconds=PROBE_WITHIN))
        if not self._items.put(self._rows.sender_holds, claim.sender, hold, later):
            return [], 0
        claimed, skipped = self._claims.claim(replace(claim, limit=min(claim.limit, 1)), now)
        if not claimed:
            self._items.put(self._rows.sender_holds, claim.sender, later, hold)
        return claimed, skipped

    def _settle(self, settlement: Settlement, now: datetime) -> int:
        counted = 0

        def apply(row: JobRow) -> JobRow | None:
            nonlocal counted
            counted = self._apply(row, settlement, now)
            return row

        settled = self._items.change(self._rows.jobs, settlement.job_id, apply)
        self._let_in(settled)
        return counted

    def _apply(self, row: JobRow, settlement: Settlement, now: datetime) -> int:
        outcome = settlement.outcome
        if isinstance(outcome, Accepted):
            return int(accept(row, settlement.attempt, outcome.message_id, now).ends_the_job)
        if row.attempt > settlement.attempt:
            return 0
        if row.accepted_attempt is not None:
            return fall_back_on_evidence(row, now)
        match outcome:
            case Deferred():
                return self._put_off(row, settlement, outcome, now)
            case Refused(code, reason):
                return move(row, Move.REFUSE, code=code, reason=reason, settled_at=now)
            case InDoubt(reason):
                moved = move(row, Move.DOUBT, code=None, reason=reason)
                if moved and settlement.death_proof:
                    row.death_proof, row.death_proof_at = settlement.death_proof, now
                return moved

    def _put_off(self, row: JobRow, settlement: Settlement, outcome: Deferred, now: datetime) -> int:
        if after(row.state, Move.DEFER) is None:
            return 0
        self._archive(row, "deferred")
        row.tries += 0 if outcome.throttle else 1
        row.code, row.reason = outcome.code, outcome.reason
        if settlement.exhausted:
            return move(row, Move.EXHAUST, settled_at=now)
        due = now + timedelta(seconds=settlement.retry_after)
        return self._back_to_schedule(row, Move.DEFER, now, due_at=due)

    def _back_to_schedule(self, row: JobRow, why: Move, now: datetime, **changes: object) -> int:
        if not move(row, why, **changes):
            return 0
        entry = self._items.get(self._rows.dispatches, row.dispatch_id)
        if entry is not None and entry.dispatch.cancelled:
            return move(row, Move.SKIP, reason=CANCELLED, settled_at=now)
        return 1

    def _let_in(self, row: JobRow | None) -> None:
        """Should this be cut off, the claim that finds the job opens its dispatch."""
        if row is not None and row.state == JobState.SCHEDULED:
            reopen(self._items, self._rows, row.dispatch_id)

    def _archive(self, row: JobRow, outcome: str, absence_proof: str | None = None) -> None:
        """Before the row moves on: an attempt that ended is not forgotten, but may be noted for nothing."""
        ended = EndedAttempt(row.id, row.attempt, outcome, row.death_proof, absence_proof)
        self._items.append(self._rows.attempts, ended)

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        row = self._items.get(self._rows.jobs, job_id)
        if row is None or (row.attempt, row.state) != (attempt, JobState.SENDING):
            return False
        entry = self._items.get(self._rows.dispatches, row.dispatch_id)
        wanted = entry is not None and entry.dispatch.claimable and row.accepted_attempt is None
        return wanted and not self._rows.denied(row) and self._rows.halted is None

    # -- the dead and the doubted --------------------------------------------------------------

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        item = self._items.get(self._workers, worker_id)
        return still_sending(self._items, self._rows.jobs, worker_id, item) if item else []

    def fence(self, transport: str, claimed_before: datetime, proof: str) -> int:
        now = self._rows.clock()
        listed = [
            (row.id, row.attempt)
            for row in self._state.jobs.values()
            if row.state == JobState.SENDING and self._transport_of(row) == transport
        ]
        return sum(self._doubt_one(ref, proof, now, claimed_before) for ref in listed)

    def bury(self, worker_id: str, actor: str) -> int:
        """The worker ends only if it has claimed nothing since its letters were put in doubt."""
        word = f"the word of {actor}: the worker is dead"
        doubted = 0
        while True:
            now = self._rows.clock()
            item = self._items.get(self._workers, worker_id)
            if item is None or item.end is not None:
                raise RefusedByRule(f"Worker {worker_id} is over already.")
            self._items.append(self._rows.audit, (actor, "bury", worker_id))
            held = still_sending(self._items, self._rows.jobs, worker_id, item)
            doubted += sum(self._doubt_one(ref, word, now) for ref in held)
            if self._items.put(self._workers, worker_id, item, replace(item, end=word)):
                sign_off(self._rows, worker_id, word, now)
                return doubted

    def _doubt_one(self, ref: JobRef, proof: str, now: datetime, before: datetime | None = None) -> int:
        def doubt(row: JobRow) -> JobRow | None:
            late = before is None or (row.claimed_at is not None and row.claimed_at < before)
            if not late or (row.attempt, row.state) != (ref[1], JobState.SENDING):
                return None
            self._doubt(row, proof, now)
            row.death_proof, row.death_proof_at = proof, now
            return row

        return int(self._items.change(self._rows.jobs, ref[0], doubt) is not None)

    def _worker_of(self, row: JobRow) -> WorkerRecord | None:
        item = self._items.get(self._workers, row.worker_id or "")
        return item.record if item else None

    def prove_absence(self, refs: Sequence[JobRef], proof: str) -> int:
        now = self._rows.clock()

        def absent(row: JobRow, attempt: int) -> JobRow | None:
            proven = row.death_proof is not None and (row.attempt, row.state) == (attempt, JobState.IN_DOUBT)
            return self._found_absent(row, proof, now) if proven else None

        return sum(self._move_one(job_id, lambda row, n=n: absent(row, n)) for job_id, n in refs)

    def _found_absent(self, row: JobRow, proof: str, now: datetime) -> JobRow:
        self._archive(row, "absent", proof)
        changes = {"due_at": now, "reason": proof, "absence_proof": proof}
        self._back_to_schedule(row, Move.ABSENCE, now, **changes)
        return row

    def _move_one(self, job_id: str, how: Callable[[JobRow], JobRow | None]) -> int:
        moved = self._items.change(self._rows.jobs, job_id, how)
        self._let_in(moved)
        return int(moved is not None)

    # -- an operator's word --------------------------------------------------------------------

    def resolve(self, job_ids: Sequence[str], *, sent: bool, actor: str, note: str) -> int:
        now = self._rows.clock()
        word = f"the word of {actor}"

        def resolved(row: JobRow) -> JobRow | None:
            if row.state != JobState.IN_DOUBT:
                return None
            self._items.append(self._rows.audit, (actor, "resolve", row.id))
            if sent:
                move(row, Move.ACCEPT, settled_at=now, code=None, reason=word)
                return row
            row.death_proof, row.death_proof_at = word, now
            return self._found_absent(row, word, now)

        return sum(self._move_one(job_id, resolved) for job_id in dict.fromkeys(job_ids))

    def retry(self, job_ids: Sequence[str], actor: str, *, not_sent_elsewhere: bool = False) -> int:
        now = self._rows.clock()

        def retried(row: JobRow) -> JobRow | None:
            if after(row.state, Move.RETRY) is None:
                return None
            if ended_before_adoption(row.state, row.worker_id) and not not_sent_elsewhere:
                return None
            self._items.append(self._rows.audit, (actor, "retry", row.id))
            if row.state == JobState.FAILED:
                self._archive(row, "failed")
            self._back_to_schedule(row, Move.RETRY, now, due_at=now, tries=0)
            return row

        return sum(self._move_one(job_id, retried) for job_id in dict.fromkeys(job_ids))

    # -- a store that went back in time ----------------------------------------------------------

    def halt(self, reason: str) -> None:
        self._items.before_write()
        self._rows.halted = self._rows.halted or reason

    def adopt(self, fingerprint: str | None, claim_seq: int, actor: str) -> int:
        """The halt is lifted in the last write, which is that of the ledger's own row."""
        self.halt("The database is being adopted.")
        s, now = self._rows, self._rows.clock()
        for key in list(s.dispatches):
            entry = self._items.get(s.dispatches, key)
            if entry is not None and entry.dispatch.phase in (
                DispatchPhase.PREPARING,
                DispatchPhase.PLANNING,
            ):
                held_back = replace(entry.dispatch, paused=True, reason=RESTORED)
                self._items.put(s.dispatches, key, entry, replace(entry, dispatch=held_back))
        doubted = 0
        for job_id in list(s.jobs):
            row = self._items.get(s.jobs, job_id)
            if row is not None:
                seen = replace(row)
                doubted += self._adopt_job(row, RESTORED, now)
                self._items.put(s.jobs, job_id, seen, row)
        for worker_id in list(self._workers):
            self._items.change(self._workers, worker_id, lambda item: replace(item, end=item.end or ADOPTED))
        self._items.append(s.audit, (actor, "adopt", "ledger"))
        self._items.before_write()
        s.halted, s.fingerprint, s.since, s.adoptions = None, fingerprint, now, s.adoptions + 1
        s.claim_seq = max(s.claim_seq, claim_seq) + ADOPTED_CLAIMS
        return doubted

    def vouch(self, fingerprint: str | None, actor: str) -> None:
        self._items.append(self._rows.audit, (actor, VOUCHED, "ledger"))
        self._items.before_write()
        self._rows.halted, self._rows.fingerprint = None, fingerprint
        self._rows.since = self._rows.clock()
