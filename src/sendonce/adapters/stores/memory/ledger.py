"""The ledger in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.arrows import accept, archive, fall_back_on_evidence, move, reschedule
from sendonce.adapters.stores.memory.dispatches import charge, in_turn
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.adapters.stores.memory.workers import sign_off
from sendonce.domain.engine.claim_counts import refuse_if_halted, was_committed
from sendonce.domain.engine.dispatches import RESTORED, DispatchPhase
from sendonce.domain.engine.doubts import NEAR, Doubt, Surroundings
from sendonce.domain.engine.fingerprints import refuse_another_database
from sendonce.domain.engine.jobs import (
    ADOPTED_ATTEMPTS,
    ADOPTED_CLAIMS,
    BEFORE_ALL,
    ClaimedJob,
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
from sendonce.domain.engine.workers import ADOPTED, VOUCHED, LedgerIdentity, WorkerRecord, WorkerRow
from sendonce.errors import LedgerRolledBack, RefusedByRule
from sendonce.ports.engine import JobRef


class MemoryLedger:
    def __init__(self, state: State) -> None:
        self._state = state

    def identity(self) -> LedgerIdentity:
        s = self._state
        with s.transaction():
            known = (s.ledger_id, s.pepper, s.fingerprint, s.claim_seq, s.halted, s.adoptions)
            return LedgerIdentity(*known, s.since)

    def now(self) -> datetime:
        return self._state.clock()

    # -- settling and claiming -----------------------------------------------------------------

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        with self._state.transaction() as now:
            try:
                self._refuse_if_rolled_back(settlements)
                committed = claim is not None and self._was_committed(claim)
            except LedgerRolledBack as exc:
                self.halt(str(exc))
                raise
            settled = sum(self._settle(s, now) for s in settlements)
            if claim is None:
                return Turn((), 0, settled, 0)
            hold = self._state.sender_holds.get(claim.sender)
            claimed, skipped = [], 0
            if committed:
                claimed = self._claimed_already(claim)
            elif not claim.jumped(now):
                claimed, skipped = self._claim_unless_held(claim, hold, now)
            if claimed:
                self._state.claim_seq += 1
            seq = self._state.claim_seq if claimed else 0
            claims, _ = self._state.claim_counts.get(claim.worker_id, (0, ""))
            jobs = tuple(map(self._claimed_job, claimed))
            return Turn(jobs, seq, settled, skipped, hold, claims, now)

    def _claim_unless_held(
        self, claim: ClaimRequest, hold: SenderHold | None, now: datetime
    ) -> tuple[list[JobRow], int]:
        """A held sender gets nothing until its next try is due, and then one job."""
        if hold is None:
            return self._claim(claim, now)
        if hold.lets_nobody_try(now):
            return [], 0
        claimed, skipped = self._claim(replace(claim, limit=min(claim.limit, 1)), now)
        if claimed:
            later = now + timedelta(seconds=PROBE_WITHIN)
            self._state.sender_holds[claim.sender] = replace(hold, next_try_at=later)
        return claimed, skipped

    def _refuse_if_rolled_back(self, settlements: Sequence[Settlement]) -> None:
        for s in settlements:
            row = self._state.jobs.get(s.job_id)
            if row is None or row.attempt < s.attempt:
                raise LedgerRolledBack(
                    f"Attempt {s.attempt} of job {s.job_id} was claimed, but this store does not know of it."
                )

    def _was_committed(self, claim: ClaimRequest) -> bool:
        refuse_if_halted(self._state.halted)
        refuse_another_database(self._state.fingerprint, self._state.place)
        row = None
        if claim.worker_id in self._state.workers:
            _, end = self._state.workers[claim.worker_id]
            claims, token = self._state.claim_counts.get(claim.worker_id, (0, ""))
            row = WorkerRow(claims, token, end)
        return was_committed(claim, row, self._state.adoptions)

    def _claimed_already(self, claim: ClaimRequest) -> list[JobRow]:
        return [
            row
            for row in self._state.jobs.values()
            if (row.state, row.worker_id, row.claim_token) == (JobState.SENDING, claim.worker_id, claim.token)
        ]

    def _claim(self, claim: ClaimRequest, now: datetime) -> tuple[list[JobRow], int]:
        due: dict[str, list[JobRow]] = {}
        for row in self._state.jobs.values():
            waits = row.state == JobState.SCHEDULED and row.due_at <= now
            if waits and self._state.claimable(row) and self._sender_of(row) == claim.sender_id:
                due.setdefault(row.dispatch_id, []).append(row)
        picked: list[JobRow] = []
        tenants = {self._state.dispatches[key].dispatch.tenant_id for key in due}
        for dispatch_id in in_turn(self._state, due, claim.sender_id):
            waiting = sorted(due[dispatch_id], key=lambda row: (row.due_at, row.priority, row.id))
            group = waiting[: claim.limit - len(picked)]
            if group and len(due) > 1:
                charge(self._state, dispatch_id, tenant=len(tenants) > 1)
            picked += group
        if picked:
            self._state.claim_counts[claim.worker_id] = (claim.claims + 1, claim.token)
        claimed = [row for row in picked if self._claim_one(row, claim, now)]
        return claimed, len(picked) - len(claimed)

    def _sender_of(self, row: JobRow) -> str:
        return self._state.dispatches[row.dispatch_id].dispatch.sender_id

    def _claim_one(self, row: JobRow, claim: ClaimRequest, now: datetime) -> bool:
        row.code = row.message_id = row.death_proof = row.death_proof_at = row.absence_proof = None
        if self._state.denied(row):
            move(row, Move.SKIP, reason="suppressed", settled_at=now)
            return False
        move(row, Move.CLAIM, reason=None, settled_at=None, attempt=row.attempt + 1)
        row.worker_id, row.claim_token, row.claimed_at = claim.worker_id, claim.token, now
        return True

    def _settle(self, settlement: Settlement, now: datetime) -> int:
        row = self._state.jobs[settlement.job_id]
        outcome = settlement.outcome
        if isinstance(outcome, Accepted):
            return int(accept(row, settlement.attempt, outcome.message_id, now).ends_the_job)
        if row.attempt > settlement.attempt:
            return 0
        if row.accepted_attempt is not None:
            return fall_back_on_evidence(row, now)
        match outcome:
            case Deferred():
                return self._defer(row, settlement, outcome, now)
            case Refused(code, reason):
                return move(row, Move.REFUSE, code=code, reason=reason, settled_at=now)
            case InDoubt(reason):
                moved = move(row, Move.DOUBT, code=None, reason=reason)
                if moved and settlement.death_proof:
                    row.death_proof, row.death_proof_at = settlement.death_proof, now
                return moved

    def _defer(self, row: JobRow, settlement: Settlement, outcome: Deferred, now: datetime) -> int:
        if after(row.state, Move.DEFER) is None:
            return 0
        archive(self._state, row, "deferred")
        row.tries += 0 if outcome.throttle else 1
        row.code, row.reason = outcome.code, outcome.reason
        if settlement.exhausted:
            return move(row, Move.EXHAUST, settled_at=now)
        due = now + timedelta(seconds=settlement.retry_after)
        return reschedule(self._state, row, Move.DEFER, now, due_at=due)

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        with self._state.transaction():
            row = self._state.jobs.get(job_id)
            if row is None or (row.attempt, row.state) != (attempt, JobState.SENDING):
                return False
            wanted = (
                self._state.dispatches[row.dispatch_id].dispatch.claimable and row.accepted_attempt is None
            )
            suppressed = self._state.denied(row)
            return wanted and not suppressed and self._state.halted is None

    # -- the dead and the doubted --------------------------------------------------------------

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        with self._state.transaction():
            rows = self._state.jobs.values()
            own = [r for r in rows if r.state == JobState.SENDING and r.worker_id == worker_id]
            return sorted((row.id, row.attempt) for row in own)

    def oldest_claim(self) -> datetime | None:
        with self._state.transaction():
            rows = self._state.jobs.values()
            claimed = [r.claimed_at for r in rows if r.state == JobState.SENDING and r.claimed_at]
            return min(claimed, default=None)

    def fence(self, transport: str, claimed_before: datetime, proof: str) -> int:
        with self._state.transaction() as now:
            fenced = 0
            for row in self._state.jobs.values():
                late = row.claimed_at is not None and row.claimed_at < claimed_before
                if row.state == JobState.SENDING and late and self._transport_of(row) == transport:
                    fenced += self._doubt(row, proof, now)
                    row.death_proof, row.death_proof_at = proof, now
            return fenced

    def bury(self, worker_id: str, actor: str) -> int:
        word = f"the word of {actor}: the worker is dead"
        with self._state.transaction() as now:
            _, end = self._state.workers.get(worker_id, (None, "unknown"))
            if end is not None:
                raise RefusedByRule(f"Worker {worker_id} is over already.")
            own = [r for r in self._state.jobs.values() if r.worker_id == worker_id]
            doubted = [row for row in own if row.state == JobState.SENDING]
            for row in doubted:
                self._doubt(row, word, now)
                row.death_proof, row.death_proof_at = word, now
            sign_off(self._state, worker_id, word, now)
            self._state.audit.append((actor, "bury", worker_id))
            return len(doubted)

    def _doubt(self, row: JobRow, reason: str, now: datetime) -> int:
        if row.accepted_attempt is not None:
            return fall_back_on_evidence(row, now)
        return move(row, Move.DOUBT, reason=reason)

    def _transport_of(self, row: JobRow) -> str | None:
        worker = self._worker_of(row)
        return worker.transport if worker else None

    def _worker_of(self, row: JobRow) -> WorkerRecord | None:
        worker = self._state.workers.get(row.worker_id or "")
        return worker[0] if worker else None

    def doubts(
        self,
        limit: int,
        *,
        after: str = BEFORE_ALL,
        transport: str | None = None,
        dispatch_id: str | None = None,
    ) -> Sequence[Doubt]:
        with self._state.transaction():
            doubted = [
                row
                for row in sorted(self._state.jobs.values(), key=lambda row: row.id)
                if row.state == JobState.IN_DOUBT
                and row.id > after
                and dispatch_id in (None, row.dispatch_id)
                if transport is None or (row.death_proof and self._transport_of(row) == transport)
            ]
            return [self._describe(row) for row in doubted[:limit]]

    def _describe(self, row: JobRow) -> Doubt:
        worker = self._worker_of(row)
        return Doubt(
            row.id,
            row.attempt,
            row.dispatch_id,
            worker.transport if worker else None,
            worker.route if worker else None,
            row.claimed_at,
            row.death_proof_at,
        )

    def surroundings(self, doubt: Doubt) -> Surroundings:
        assert doubt.claimed_at is not None
        assert doubt.death_proof_at is not None
        with self._state.transaction():
            accepted = list(self._accepted_on(doubt.route))
        near = [(at, heard) for at, heard in accepted if abs(at - doubt.claimed_at) <= NEAR]
        return Surroundings(
            silent=sum(not heard for _, heard in near),
            heard_before=any(heard and at <= doubt.claimed_at for at, heard in near),
            heard_after=any(heard and at > doubt.claimed_at for at, heard in near),
            heard_since_death=any(heard and at > doubt.death_proof_at for at, heard in accepted),
        )

    def _accepted_on(self, route: str | None) -> Iterator[tuple[datetime, bool]]:
        """When each letter and canary of a route was claimed, and whether its Send event came."""
        for row in self._state.jobs.values():
            worker = self._worker_of(row)
            proven = row.state == JobState.SENT and row.accepted_attempt is not None
            if proven and row.claimed_at is not None and worker is not None and worker.route == route:
                yield row.claimed_at, row.send_event_at is not None
        for canary in self._state.canaries.values():
            if canary.route == route and canary.message_id is not None:
                yield canary.sent_at, canary.event_at is not None

    def prove_absence(self, refs: Sequence[JobRef], proof: str) -> int:
        moved = 0
        with self._state.transaction() as now:
            for job_id, attempt in refs:
                row = self._state.jobs.get(job_id)
                if row is None or (row.attempt, row.state) != (attempt, JobState.IN_DOUBT):
                    continue
                if row.death_proof is not None:
                    moved += self._absent(row, proof, now)
        return moved

    def _absent(self, row: JobRow, proof: str, now: datetime) -> int:
        archive(self._state, row, "absent", proof)
        changes = {"due_at": now, "reason": proof, "absence_proof": proof}
        return reschedule(self._state, row, Move.ABSENCE, now, **changes)

    # -- an operator's word --------------------------------------------------------------------

    def resolve(self, job_ids: Sequence[str], *, sent: bool, actor: str, note: str) -> int:  # noqa: ARG002 (the audit log here is short)
        moved = 0
        word = f"the word of {actor}"
        with self._state.transaction() as now:
            for row in self._in_states(job_ids, {JobState.IN_DOUBT}):
                if sent:
                    moved += move(row, Move.ACCEPT, settled_at=now, code=None, reason=word)
                else:
                    row.death_proof, row.death_proof_at = word, now
                    moved += self._absent(row, word, now)
                self._state.audit.append((actor, "resolve", row.id))
        return moved

    def retry(self, job_ids: Sequence[str], actor: str, *, not_sent_elsewhere: bool = False) -> int:
        moved = 0
        with self._state.transaction() as now:
            for row in self._in_states(job_ids, {JobState.DEAD, JobState.FAILED}):
                if ended_before_adoption(row.state, row.worker_id) and not not_sent_elsewhere:
                    continue
                if row.state == JobState.FAILED:
                    archive(self._state, row, "failed")
                moved += reschedule(self._state, row, Move.RETRY, now, due_at=now, tries=0)
                self._state.audit.append((actor, "retry", row.id))
        return moved

    def _in_states(self, job_ids: Sequence[str], states: set[JobState]) -> list[JobRow]:
        known = [self._state.jobs[i] for i in dict.fromkeys(job_ids) if i in self._state.jobs]
        return [row for row in known if row.state in states]

    # -- a store that went back in time ----------------------------------------------------------

    def halt(self, reason: str) -> None:
        with self._state.transaction():
            self._state.halted = self._state.halted or reason

    def adopt(self, fingerprint: str | None, claim_seq: int, actor: str) -> int:
        why = RESTORED
        s = self._state
        with s.transaction() as now:
            for entry in s.dispatches.values():
                if entry.dispatch.phase in (DispatchPhase.PREPARING, DispatchPhase.PLANNING):
                    entry.dispatch = replace(entry.dispatch, paused=True, reason=why)
            doubted = sum(self._adopt_job(row, why, now) for row in s.jobs.values())
            s.halted, s.fingerprint = None, fingerprint
            s.adoptions += 1
            s.since = now
            for worker_id, (worker, end) in s.workers.items():
                s.workers[worker_id] = (worker, end or ADOPTED)
            s.claim_seq = max(s.claim_seq, claim_seq) + ADOPTED_CLAIMS
            s.audit.append((actor, "adopt", "ledger"))
            return doubted

    def vouch(self, fingerprint: str | None, actor: str) -> None:
        with self._state.transaction() as now:
            self._state.halted, self._state.fingerprint, self._state.since = None, fingerprint, now
            self._state.audit.append((actor, VOUCHED, "ledger"))

    def _adopt_job(self, row: JobRow, why: str, now: datetime) -> int:
        if row.state in (JobState.SENT, JobState.SKIPPED):
            return 0
        row.worker_id = None
        row.attempt += ADOPTED_ATTEMPTS
        if row.state in (JobState.FAILED, JobState.DEAD):
            return 0
        row.death_proof = row.death_proof_at = None
        new_doubt = row.state != JobState.IN_DOUBT
        if row.accepted_attempt is not None:
            fall_back_on_evidence(row, now)
            return 0
        row.state, row.reason = JobState.IN_DOUBT, why
        return int(new_doubt)

    def _claimed_job(self, row: JobRow) -> ClaimedJob:
        assert row.claimed_at is not None
        return ClaimedJob(
            row.id,
            row.dispatch_id,
            row.letter_id or self._state.dispatches[row.dispatch_id].dispatch.letter_id,
            row.attempt,
            row.tries,
            row.recipient,
            dict(row.fields),
            row.claimed_at,
            row.thread,
        )
