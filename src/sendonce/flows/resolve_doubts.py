"""Settle doubt by evidence, never by age.

A job in doubt goes back to the schedule only with two proofs: that nobody can still be sending this
attempt, and that the provider did not take it. The provider's events prove the second: a quiet time
has passed since the death in which somebody received events without a break, no event can have been
lost in a break before, all accepted letters near it have their Send event, and a letter sent after the
death (a canary, if need be) has come back by the same route.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sendonce.domain.event_route import RouteWatch
from sendonce.domain.jobs import BEFORE_ALL, Doubt
from sendonce.domain.outcomes import Accepted, Outcome
from sendonce.errors import Unavailable
from sendonce.ports import Store

log = logging.getLogger(__name__)

MOST_AT_ONCE = 200


class Witness(Protocol):
    """A provider whose clock fences off zombies and whose events tell what it took."""

    name: str

    async def server_time(self) -> datetime: ...

    async def send_canary(self, canary_id: str, sender: str) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class DoubtPolicy:
    quiet: timedelta
    push_patience: timedelta
    signature_window: timedelta
    canary_sender: str | None


class DoubtResolver:
    def __init__(
        self, store: Store, witness: Witness, policy: DoubtPolicy, new_id: Callable[[], str]
    ) -> None:
        self._store = store
        self._witness = witness
        self._policy = policy
        self._new_id = new_id

    async def run(self) -> int:
        """One round; how many jobs were proven absent and scheduled again."""
        await self._fence()
        doubts, absent = await asyncio.to_thread(self._look)
        if await asyncio.to_thread(self._canary_needed, doubts):
            await self._launch_canary()
        if not absent:
            return 0
        proof = f"no event within {self._policy.quiet} of the death, and the event route works"
        refs = [(d.job_id, d.attempt) for d in absent]
        moved = await asyncio.to_thread(self._store.ledger.prove_absence, refs, proof)
        log.warning("not taken by the provider, scheduled again", extra={"fields": {"jobs": moved}})
        return moved

    async def _fence(self) -> None:
        """Requests signed longer ago than the window are refused by the provider: their senders are dead."""
        if not await asyncio.to_thread(self._has_old_claims):
            return
        server_time = await self._witness.server_time()
        proof = f"the signature expired at the provider by {server_time:%Y-%m-%d %H:%M:%S}Z"
        signed_before = server_time - self._policy.signature_window
        fenced = await asyncio.to_thread(self._store.ledger.fence, self._witness.name, signed_before, proof)
        if fenced:
            log.warning("fenced off by the signature window", extra={"fields": {"jobs": fenced}})

    def _has_old_claims(self) -> bool:
        oldest = self._store.ledger.oldest_claim()
        return oldest is not None and self._store.ledger.now() - oldest >= self._policy.signature_window

    def _look(self) -> tuple[Sequence[Doubt], list[Doubt]]:
        """The doubts, and those among them that are proven absent."""
        doubts = self._all_doubts()
        route, now = self._store.event_route.watch(), self._store.ledger.now()
        if route is None:
            return doubts, []
        return doubts, [doubt for doubt in doubts if self._is_absent(doubt, route, now)]

    def _all_doubts(self) -> list[Doubt]:
        """All of them: some wait for a person, and must not hide those behind them."""
        doubts: list[Doubt] = []
        last = BEFORE_ALL
        while page := self._store.ledger.doubts(self._witness.name, MOST_AT_ONCE, after=last):
            doubts += page
            last = page[-1].job_id
        return doubts

    def _is_absent(self, doubt: Doubt, route: RouteWatch, now: datetime) -> bool:
        if route.may_have_missed(doubt.claimed_at, self._policy.push_patience) or doubt.neighbours_silent:
            return False
        # While nobody received, the provider kept trying: its next try may be the one that tells.
        if now - max(doubt.death_proof_at, route.since) < self._policy.quiet:
            return False
        return doubt.later_event or self._store.canaries.returned_since(doubt.death_proof_at)

    def _canary_needed(self, doubts: Sequence[Doubt]) -> bool:
        """Whether no letter since the death can show that events come through."""
        waiting = [d.death_proof_at for d in doubts if not d.later_event]
        if self._policy.canary_sender is None or not waiting:
            return False
        last = self._store.canaries.last()
        if last is None or last[0] <= max(waiting):
            return True
        launched, returned = last
        return not returned and self._store.ledger.now() - launched >= self._policy.quiet

    async def _launch_canary(self) -> None:
        assert self._policy.canary_sender is not None
        canary_id = self._new_id()
        await asyncio.to_thread(self._store.canaries.launch, canary_id)
        outcome = await self._witness.send_canary(canary_id, self._policy.canary_sender)
        if not isinstance(outcome, Accepted):
            raise Unavailable(f"The canary was not accepted: {outcome}.")
        await asyncio.to_thread(self._store.canaries.accepted, canary_id, outcome.message_id)
