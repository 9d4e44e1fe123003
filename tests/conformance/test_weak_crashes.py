"""A store that writes one row at a time, and a process that dies between any two of its writes.

The provider's log is the judge: nobody is written to twice, and nobody is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import uuid4

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sendonce.adapters.wire_journal import WireLog
from sendonce.domain.engine.dispatches import DispatchPhase, NewDispatch, NewJob
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, JobState, Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.errors import RefusedByRule, Unavailable, WorkerBuried
from sendonce.flows.engine.bury import bury_the_dead
from tests.conformance.stage import LETTER, Stage, address, event_of, worker_record
from tests.conformance.weak_store import WeakStore

PEOPLE = 5
GROUP = 2
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LONG = 10_000
"""More steps than any life takes."""


class Killed(BaseException):
    """The process is gone, in the middle of whatever it did."""


@dataclass
class Provider:
    """Takes every letter once it can be sure of its signature; answers are lost for those who say so."""

    taken: Counter[str] = field(default_factory=Counter)
    refuses_until: datetime = BEGIN
    says: dict[str, list[str]] = field(default_factory=dict)

    def submit(self, job: ClaimedJob) -> Outcome:
        if job.claimed_at < self.refuses_until:
            return Deferred("expired", "the signature is too old", throttle=True)
        says = self.says.get(job.recipient, [])
        word = says.pop(0) if says else "taken"
        if word == "not now":
            return Deferred("421", word)
        self.taken[job.recipient] += 1
        return InDoubt(word) if word == "reply lost" else Accepted(f"for {job.recipient}")


@dataclass
class Journal:
    """What a worker's file says, which outlives it."""

    records: dict[tuple[str, int], Outcome | None] = field(default_factory=dict)
    claims: int = 0


@dataclass
class World:
    """Many processes, one after the other or one within the other's step, over one store."""

    lag: int = 0
    journals_are_kept: bool = True
    provider: Provider = field(default_factory=Provider)
    journals: dict[str, Journal] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    planned: bool = False

    def __post_init__(self) -> None:
        ticks = count()
        self.store = WeakStore(lambda: BEGIN + timedelta(milliseconds=next(ticks)), lag=self.lag)
        self.store.items.before_write = self._step
        self._steps_left, self._then = LONG, _nothing
        letter = self.store.letters.put(DEFAULT_TENANT, LETTER)
        self.dispatch = self.store.dispatches.open(DEFAULT_TENANT, NewDispatch("batch", "owner", letter)).id

    # -- steps ---------------------------------------------------------------------------------

    def _step(self) -> None:
        """Between any two of these something may happen: they are writes of rows, and what leaves."""
        self._steps_left -= 1
        if self._steps_left == 0:
            self._then()

    @contextmanager
    def after(self, steps: int, happens: Callable[[], None]) -> Iterator[None]:
        before = self._steps_left, self._then
        self._steps_left, self._then = steps, happens
        try:
            yield
        finally:
            self._steps_left, self._then = before

    # -- a process -----------------------------------------------------------------------------

    def live(self) -> None:
        """Bury the dead, plan what is not planned, send until nothing shows up, and leave."""
        worker = worker_record(str(uuid4()))
        try:
            self._see_to_the_dead()
            self._plan()
            self.store.workers.register(worker)
            self._send_all(worker)
            self.store.workers.end(worker.id, "left")
            self.store.dispatches.complete(self.dispatch)
        except Killed:
            self.dead.add(worker.id)
        except Unavailable:  # its supervisor ends it and starts another
            self.dead.add(worker.id)

    def _plan(self) -> None:
        if not self.planned:
            people = [NewJob(address(number)) for number in range(PEOPLE)]
            self.store.dispatches.plan(self.dispatch, people)
            self.store.dispatches.run(self.dispatch)
            self.planned = True

    def _send_all(self, worker: WorkerRecord) -> None:
        journal = self.journals.setdefault(worker.id, Journal())
        outcomes: list[Settlement] = []
        while True:
            turn = self._turn(worker.id, journal.claims, outcomes)
            journal.claims = turn.claims
            if not turn.claimed and not outcomes:
                return
            outcomes = [self._send(job, journal) for job in turn.claimed]

    def _turn(self, worker_id: str, claims: int, outcomes: list[Settlement]) -> Turn:
        """The settle is tried again for ever, the send never."""
        claim = ClaimRequest(worker_id, str(uuid4()), GROUP, claims)
        while True:
            try:
                return self.store.ledger.turn(outcomes, claim)
            except Unavailable:
                claim = replace(claim, retry=True)

    def _send(self, job: ClaimedJob, journal: Journal) -> Settlement:
        self._step()
        journal.records[job.id, job.attempt] = None
        self._step()
        outcome = self.provider.submit(job)
        self._step()
        journal.records[job.id, job.attempt] = outcome
        proof = "its own word" if isinstance(outcome, InDoubt) else None
        return Settlement(job.id, job.attempt, outcome, death_proof=proof)

    # -- the dead ------------------------------------------------------------------------------

    lock_domain = "domain"

    def _see_to_the_dead(self) -> None:
        if self.journals_are_kept:
            bury_the_dead(self.store, self, retry_after=0.0)
        elif self.dead:
            self.fence()

    def fence(self) -> None:
        """No lock can be seen; but the provider takes nothing that was signed before now."""
        now = self.provider.refuses_until = self.store.ledger.now()
        self.store.ledger.fence("ses", now, "the signature expired")
        for worker in self.store.workers.open():
            with suppress(RefusedByRule):
                self.store.workers.end(worker.id, "the signature expired")

    @contextmanager
    def open_if_dead(self, worker: WorkerRecord) -> Iterator[WireLog | None]:
        journal = self.journals.get(worker.id, Journal())
        said = WireLog(dict(journal.records), True, "its lock is free", journal.claims)
        yield said if worker.id in self.dead else None

    def sees_alive(self, worker: WorkerRecord) -> bool:
        return worker.id not in self.dead

    # -- the judge -----------------------------------------------------------------------------

    def come_to_an_end(self) -> None:
        """Processes that nothing happens to; an operator who settles doubt by the provider's own log."""
        for _ in range(8):
            self.store.items.catch_up()
            self.live()
            self.store.items.catch_up()
            for doubt in self.store.ledger.doubts(100):
                sent = bool(self.provider.taken[self._recipient(doubt.job_id)])
                assert self.store.ledger.resolve([doubt.job_id], sent=sent, actor="jane", note="looked")

    def _recipient(self, job_id: str) -> str:
        job = self.store.jobs.get(job_id)
        assert job is not None
        return job.recipient

    def judge(self) -> None:
        self.come_to_an_end()
        assert self.provider.taken == {address(number).text: 1 for number in range(PEOPLE)}
        states = Counter(row.state for row in self.store.state.jobs.values())
        assert states == {JobState.SENT: PEOPLE}
        dispatch = self.store.dispatches.get(self.dispatch)
        assert dispatch is not None
        assert dispatch.phase == DispatchPhase.OVER


def _nothing() -> None:
    """Nobody is in the way."""


def die() -> None:
    raise Killed


def be_cut_off() -> None:
    raise Unavailable("The store does not answer.")


WORDS = st.dictionaries(
    st.sampled_from([address(number).text for number in range(PEOPLE)]),
    st.lists(st.sampled_from(["not now", "reply lost", "taken"]), max_size=3),
)
EVENTS = st.lists(st.tuples(st.integers(1, 70), st.sampled_from([die, be_cut_off])), max_size=6)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(events=EVENTS, says=WORDS, lag=st.integers(0, 30), kept=st.booleans())
def test_whoever_dies_between_two_writes_loses_nobody_and_repeats_nothing(
    events: list[tuple[int, Callable[[], None]]], says: dict[str, list[str]], lag: int, kept: bool
) -> None:
    """Deaths at any step, and a store that is away for a moment; with journals, and without a disk."""
    world = World(lag, kept, Provider(says=says))
    for steps, happens in events:
        with world.after(steps, happens):
            world.live()
    world.judge()


@pytest.mark.parametrize("kept", [True, False], ids=["with journals", "without a disk"])
def test_a_death_at_every_single_step(kept: bool) -> None:
    """One process after the other, each of which gets a step further than the one before."""
    for steps in range(1, 60):
        world = World(lag=9, journals_are_kept=kept)
        with world.after(steps, die):
            world.live()
        world.judge()


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(steps=st.integers(1, 60), lag=st.integers(0, 30), says=WORDS)
@example(steps=12, lag=0, says={})
def test_another_worker_between_any_two_writes(steps: int, lag: int, says: dict[str, list[str]]) -> None:
    """A worker is stopped in the middle of a step, and another sends everything that it can get."""
    world = World(lag, provider=Provider(says=says))
    with world.after(steps, world.live):
        world.live()
    world.judge()


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(steps=st.integers(1, 60), lag=st.integers(0, 30), others=st.booleans())
def test_a_zombie_is_fenced_off_wherever_it_was_stopped(steps: int, lag: int, others: bool) -> None:
    """It was stopped for longer than its signatures are good for, and taken for dead; others may have gone on
    without it."""
    world = World(lag, journals_are_kept=False)

    def go_on_without_it() -> None:
        world.store.items.catch_up()
        world.fence()
        if others:
            world.live()

    with world.after(steps, go_on_without_it), suppress(WorkerBuried):
        world.live()
    world.judge()


@pytest.mark.parametrize("steps", range(1, 5))
def test_an_event_that_was_cut_off_is_taken_in_when_it_comes_again(steps: int) -> None:
    """Wherever it was cut off: the provider was not answered, so it tells the event once more."""
    store = WeakStore()
    stage = Stage(store)
    stage.running()
    store.items.catch_up()
    bounce = event_of(stage.claim_one(), EventKind.BOUNCE)
    left = count(steps, -1)

    def step() -> None:
        if next(left) == 1:
            raise Killed

    store.items.before_write = step
    with suppress(Killed):
        store.events.record(bounce)
    store.items.before_write = _nothing
    store.events.record(bounce)
    assert store.events.record(bounce) == EventVerdict.DUPLICATE_EVENT
    (row,) = store.state.jobs.values()
    assert (row.state, row.bounced_at is not None) == (JobState.SENT, True)
    assert stage.subscriber().status == SubscriberStatus.BOUNCED
    assert len(store.events.all()) == 1
