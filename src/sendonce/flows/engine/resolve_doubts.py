"""Settle doubt by evidence, never by age.

A job in doubt goes back to the schedule only with two proofs: that nobody can still be sending this
attempt, and that the provider did not take it. What proves the second is weighed in domain/doubts.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.doubts import NEAR, Doubt, Standing, Surroundings, Weighed, weigh
from sendonce.domain.engine.event_route import Listening
from sendonce.domain.engine.jobs import BEFORE_ALL
from sendonce.domain.engine.outcomes import Accepted, Outcome
from sendonce.errors import Unavailable
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.ports.engine import Ledger, SendingStore

log = logging.getLogger(__name__)

MOST_AT_ONCE = 200


class Witness(Protocol):
    """A provider that has a clock of its own, and whose events tell what it took."""

    name: str

    async def server_time(self) -> datetime: ...

    async def send_canary(self, canary_id: str, sender: str) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class DoubtPolicy:
    quiet: timedelta
    canary_sender: str | None


class Scales:
    """Weighs the doubts of one moment. Those of one group share their surroundings: asked for once."""

    def __init__(
        self, ledger: Ledger, listening: Listening, quiet: timedelta, *, sent_folder: bool = False
    ) -> None:
        self._ledger = ledger
        self._listening = listening
        self._quiet = quiet
        self._sent_folder = sent_folder
        self._known: dict[object, Surroundings] = {}

    def weigh(self, doubt: Doubt) -> Weighed:
        return weigh(
            doubt,
            self._listening,
            lambda: self.surroundings(doubt),
            self._quiet,
            sent_folder=self._sent_folder,
        )

    def surroundings(self, doubt: Doubt) -> Surroundings:
        place = (doubt.route, doubt.claimed_at, doubt.death_proof_at)
        if place not in self._known:
            self._known[place] = self._ledger.surroundings(doubt)
        return self._known[place]


def weigh_doubts(
    store: SendingStore,
    quiet: timedelta,
    *,
    dispatch_id: str | None = None,
    limit: int,
    sent_folder: bool = False,
) -> list[tuple[Doubt, Weighed]]:
    """For people: the first doubts, and what each of them waits for."""
    scales = Scales(store.ledger, store.event_route.listening(), quiet, sent_folder=sent_folder)
    return [(doubt, scales.weigh(doubt)) for doubt in store.ledger.doubts(limit, dispatch_id=dispatch_id)]


def summarise_doubts(
    store: SendingStore, quiet: timedelta, dispatch_id: str, limit: int = 1000, *, sent_folder: bool = False
) -> list[tuple[Weighed, int]]:
    """What the doubts of a dispatch wait for, and how many for each."""
    found = weigh_doubts(store, quiet, dispatch_id=dispatch_id, limit=limit, sent_folder=sent_folder)
    return Counter(weighed for _, weighed in found).most_common()


class DoubtResolver:
    """``route`` is the way that this worker's letters go; a canary of its own shows that this one works."""

    def __init__(
        self,
        store: SendingStore,
        witness: Witness,
        policy: DoubtPolicy,
        route: str,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._witness = witness
        self._policy = policy
        self._route = route
        self._new_id = new_id

    async def run(self) -> int:
        """One round; how many jobs were proven absent and scheduled again."""
        absent, canary_needed = await to_daemon_thread(self._look)
        if canary_needed:
            await self._launch_canary()
        if not absent:
            return 0
        proof = f"no event within {self._policy.quiet} of the death, and the event route works"
        refs = [(d.job_id, d.attempt) for d in absent]
        moved = await to_daemon_thread(self._store.ledger.prove_absence, refs, proof)
        log.warning("not taken by the provider, scheduled again", extra={"fields": {"jobs": moved}})
        return moved

    def _look(self) -> tuple[list[Doubt], bool]:
        """The doubts that are proven absent, and whether others wait for a canary."""
        doubts = list(self._all_doubts())
        if not doubts:
            return [], False
        listening = self._store.event_route.listening()
        scales = Scales(self._store.ledger, listening, self._policy.quiet)
        absent, waiting = [], []
        for doubt in doubts:
            standing = scales.weigh(doubt).standing
            if standing == Standing.ABSENT:
                absent.append(doubt)
            elif standing == Standing.WAITING and doubt.route == self._route:
                waiting.append((doubt, scales.surroundings(doubt)))
        return absent, self._canary_needed(waiting, listening.now)

    def _all_doubts(self) -> Iterator[Doubt]:
        """All of them: some wait for a person, and must not hide those behind them."""
        last = BEFORE_ALL
        while page := self._store.ledger.doubts(MOST_AT_ONCE, after=last, transport=self._witness.name):
            yield from page
            last = page[-1].job_id

    def _canary_needed(self, waiting: list[tuple[Doubt, Surroundings]], now: datetime) -> bool:
        """Whether no letter after a doubt, or after its death, shows that events come through."""
        deaths = [
            doubt.death_proof_at
            for doubt, near in waiting
            if doubt.death_proof_at is not None and _lacks_a_follower(doubt, near, now)
        ]
        if self._policy.canary_sender is None or not deaths:
            return False
        last = self._store.canaries.last(self._route)
        if last is None or last[0] <= max(deaths):
            return True
        launched, returned = last
        return not returned and now - launched >= self._policy.quiet

    async def _launch_canary(self) -> None:
        assert self._policy.canary_sender is not None
        canary_id = self._new_id()
        await to_daemon_thread(self._store.canaries.launch, canary_id, self._route)
        outcome = await self._witness.send_canary(canary_id, self._policy.canary_sender)
        if not isinstance(outcome, Accepted):
            raise Unavailable(f"The canary was not accepted: {outcome}.")
        await to_daemon_thread(self._store.canaries.accepted, canary_id, outcome.message_id)


def _lacks_a_follower(doubt: Doubt, near: Surroundings, now: datetime) -> bool:
    assert doubt.claimed_at is not None
    may_be_near = now <= doubt.claimed_at + NEAR
    return not near.heard_since_death or (may_be_near and not near.heard_after)
