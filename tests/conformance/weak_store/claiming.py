"""Claims on the weak store: listings nominate, the worker's row counts, each job's row decides."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from sendonce.adapters.stores.memory.arrows import move
from sendonce.adapters.stores.memory.dispatches import charge, in_turn
from sendonce.adapters.stores.memory.state import DispatchRow, JobRow, State
from sendonce.domain.engine.claim_counts import refuse_if_halted, was_committed
from sendonce.domain.engine.dispatches import CANCELLED, DispatchPhase
from sendonce.domain.engine.fingerprints import refuse_another_database
from sendonce.domain.engine.jobs import ClaimRequest, JobState, Move
from sendonce.ports.engine import JobRef
from tests.conformance.weak_store.dispatches import reopen
from tests.conformance.weak_store.items import Items
from tests.conformance.weak_store.workers import WorkerItem, still_sending


@dataclass
class FairShare:
    """The rows that tell whose turn it is, to be changed here first and then written one by one."""

    dispatches: dict[str, DispatchRow]
    tenant_turns: dict[tuple[str, str], float]
    tenant_weights: dict[str, int]


class Claims:
    def __init__(
        self,
        state: State,
        items: Items,
        listed: Callable[[], dict[str, JobRow]],
        workers: dict[str, WorkerItem],
    ) -> None:
        self._state = state
        self._items = items
        self._listed = listed
        self._workers = workers

    def was_committed(self, claim: ClaimRequest) -> bool:
        refuse_if_halted(self._state.halted)
        refuse_another_database(self._state.fingerprint, self._state.place)
        item = self._items.get(self._workers, claim.worker_id)
        return was_committed(claim, item.as_row() if item else None, self._state.adoptions)

    def count_of(self, worker_id: str) -> int:
        item = self._items.get(self._workers, worker_id)
        return item.claims if item else 0

    def found_again(self, claim: ClaimRequest) -> list[JobRow]:
        """What a claim that was cut off has got."""
        item = self._items.get(self._workers, claim.worker_id)
        refs = still_sending(self._items, self._state.jobs, claim.worker_id, item) if item else []
        rows = [self._items.get(self._state.jobs, job_id) for job_id, _ in refs]
        return [row for row in rows if row is not None and row.claim_token == claim.token]

    def claim(self, claim: ClaimRequest, now: datetime) -> tuple[list[JobRow], int]:
        """What was claimed, and how many were skipped."""
        picked = self._pick(claim, now)
        if not picked:
            return [], 0
        self._count(claim, [(row.id, row.attempt + 1) for row in picked])
        moved = [self._claim_one(row, claim, now) for row in picked]
        claimed = [row for row in moved if row is not None and row.state == JobState.SENDING]
        skipped = [row for row in moved if row is not None and row.state == JobState.SKIPPED]
        self._give_back_if_buried(claim, claimed, now)
        return claimed, len(skipped)

    def _pick(self, claim: ClaimRequest, now: datetime) -> list[JobRow]:
        due = self._due(claim.sender_id, now)
        share = FairShare(
            {key: copy(entry) for key, entry in self._state.dispatches.items()},
            dict(self._state.tenant_turns),
            self._state.tenant_weights,
        )
        tenants = {share.dispatches[key].dispatch.tenant_id for key in due}
        picked: list[JobRow] = []
        for dispatch_id in in_turn(cast(State, share), due, claim.sender_id):
            waiting = sorted(due[dispatch_id], key=lambda row: (row.due_at, row.priority, row.id))
            group = self._fresh(waiting, claim.limit - len(picked), now)
            if group and len(due) > 1:
                charge(cast(State, share), dispatch_id, tenant=len(tenants) > 1)
            picked += group
        self._write(share)
        return picked

    def _due(self, sender_id: str, now: datetime) -> dict[str, list[JobRow]]:
        due: dict[str, list[JobRow]] = {}
        for row in self._listed().values():
            if row.state == JobState.SCHEDULED and row.due_at <= now:
                due.setdefault(row.dispatch_id, []).append(row)
        return {key: rows for key, rows in due.items() if self._may_be_claimed(key, sender_id, rows, now)}

    def _may_be_claimed(self, key: str, sender_id: str, rows: list[JobRow], now: datetime) -> bool:
        """A dispatch that is over and has a job scheduled ended too early: its end did not see the job."""
        entry = self._items.get(self._state.dispatches, key)
        if entry is None or entry.dispatch.sender_id != sender_id:
            return False
        if entry.dispatch.phase == DispatchPhase.OVER:
            left = self._fresh(rows, len(rows), now)
            if not left:
                return False
            if entry.dispatch.cancelled:
                for row in left:
                    self._items.change(self._state.jobs, row.id, lambda seen: _skipped(seen, CANCELLED, now))
                return False
            reopen(self._items, self._state, key)
            entry = self._items.get(self._state.dispatches, key) or entry
        return entry.dispatch.claimable

    def _fresh(self, rows: list[JobRow], limit: int, now: datetime) -> list[JobRow]:
        """Of what a listing nominates, the first that are due indeed."""
        found: list[JobRow] = []
        for row in rows:
            if len(found) >= limit:
                break
            seen = self._items.get(self._state.jobs, row.id)
            if seen is not None and seen.state == JobState.SCHEDULED and seen.due_at <= now:
                found.append(seen)
        return found

    def _write(self, share: FairShare) -> None:
        """Whose turn it is next; the tenants first, for whoever is awake is looked up there. Where two write
        at once, one of them is a group ahead for a while."""
        for place, served in share.tenant_turns.items():
            known = self._items.get(self._state.tenant_turns, place)
            if known != served:
                self._items.put(self._state.tenant_turns, place, known, served)
        for key, wanted in share.dispatches.items():
            seen = self._items.get(self._state.dispatches, key)
            if seen is not None and (seen.awake, seen.served) != (wanted.awake, wanted.served):
                new = replace(seen, awake=wanted.awake, served=wanted.served)
                self._items.put(self._state.dispatches, key, seen, new)

    def _count(self, claim: ClaimRequest, refs: list[JobRef]) -> None:
        """Before the first job is taken. Raises WorkerBuried or LedgerRolledBack."""
        while True:
            self.was_committed(claim)
            item = self._items.get(self._workers, claim.worker_id)
            assert item is not None
            held = still_sending(self._items, self._state.jobs, claim.worker_id, item)
            counted = replace(item, claims=claim.claims + 1, token=claim.token, held=(*held, *refs))
            if self._items.put(self._workers, claim.worker_id, item, counted):
                return

    def _claim_one(self, row: JobRow, claim: ClaimRequest, now: datetime) -> JobRow | None:
        """None where somebody else was faster."""
        new = copy(row)
        new.code = new.message_id = new.death_proof = new.death_proof_at = new.absence_proof = None
        if self._state.denied(row):
            new = _skipped(new, "suppressed", now) or new
        else:
            move(new, Move.CLAIM, reason=None, settled_at=None, attempt=row.attempt + 1)
            new.worker_id, new.claim_token, new.claimed_at = claim.worker_id, claim.token, now
        return new if self._items.put(self._state.jobs, row.id, row, new) else None

    def _give_back_if_buried(self, claim: ClaimRequest, claimed: list[JobRow], now: datetime) -> None:
        """Whoever was buried between its count and its last job finds it out here, with nothing sent."""
        item = self._items.get(self._workers, claim.worker_id)
        if item is not None and item.end is None:
            return
        for row in claimed:
            released = copy(row)
            move(released, Move.DEFER, due_at=now)
            self._items.put(self._state.jobs, row.id, row, released)
        self.was_committed(claim)


def _skipped(row: JobRow, why: str, now: datetime) -> JobRow | None:
    return row if move(row, Move.SKIP, reason=why, settled_at=now) else None
