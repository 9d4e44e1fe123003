"""Random lives of a ledger, judged by a provider that keeps its own log of what it accepted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.events import EventVerdict
from sendonce.domain.engine.jobs import ClaimedJob, Job, JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted, Outcome
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.ports.store import Store
from tests.conformance.backdoor import check_counters, let_a_moment_pass, steady_clock
from tests.conformance.stage import DEFERRED, DOUBTED, REFUSED, THROTTLED, Stage, event_of
from tests.conftest import OpenStore

PEOPLE = 6
FATES = ("accepted", "accepted, reply lost", "refused", "deferred", "throttled", "reply lost", "exhausted")
PICK = st.integers(0, 1000)


@dataclass(eq=False)
class InHand:
    """A letter that a worker has claimed; ``fenced`` when its signature is too old for the provider."""

    worker: str
    job: ClaimedJob
    fenced: bool = False


class Life(RuleBasedStateMachine):
    """The provider's log is the judge: nobody may be in it twice for one mailout."""

    def __init__(self, open_store: Callable[[], AbstractContextManager[Store]]) -> None:
        super().__init__()
        self._opened = open_store()
        store = self._opened.__enter__()
        steady_clock(store)
        self.stage = Stage(store)
        self.ledger = self.stage.store.ledger
        self.stage.subscribe(range(PEOPLE))
        self.mailouts: list[str] = []
        self.in_hand: list[InHand] = []
        self.told: list[Settlement] = []  # outcomes on their way to the ledger, or there already
        self.accepted: dict[str, set[int]] = {}
        self.proven: set[str] = set()  # jobs of whose acceptance the ledger has been told
        self.out: set[str] = set()  # recipients who unsubscribed

    # -- the product ----------------------------------------------------------------------------

    @initialize()
    def first_mailout(self) -> None:
        self._start_and_plan()

    @precondition(lambda self: len(self.mailouts) < 2)
    @rule()
    def second_mailout(self) -> None:
        self._start_and_plan()

    def _start_and_plan(self) -> None:
        mailout_id = self.stage.mailout()
        self.mailouts.append(mailout_id)
        assert self.stage.store.mailouts.start(mailout_id)
        self.stage.plan(mailout_id)

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        worker = self.stage.worker()
        for job in self.stage.claim(worker, limit).claimed:
            assert job.recipient not in self.out
            assert not self.accepted.get(job.id), "a letter that was accepted is claimed again"
            self.in_hand.append(InHand(worker, job))

    @precondition(lambda self: self.in_hand)
    @rule(pick=PICK, fate=st.sampled_from(FATES), late=st.booleans())
    def send(self, pick: int, fate: str, late: bool) -> None:
        letter = self.in_hand.pop(pick % len(self.in_hand))
        settlement = self._provider_says(letter, "deferred" if letter.fenced else fate)
        self.told.append(settlement)
        if not late:
            self._tell(settlement)

    def _provider_says(self, letter: InHand, fate: str) -> Settlement:
        job = letter.job
        if fate.startswith("accepted"):
            self.accepted.setdefault(job.id, set()).add(job.attempt)
        if fate == "accepted":
            return Settlement(job.id, job.attempt, Accepted(f"provider-{job.attempt}"))
        if "reply lost" in fate:
            return Settlement(job.id, job.attempt, DOUBTED, death_proof="the worker's own word")
        outcome: Outcome = {"refused": REFUSED, "throttled": THROTTLED}.get(fate, DEFERRED)
        return Settlement(job.id, job.attempt, outcome, exhausted=fate == "exhausted")

    @precondition(lambda self: self.told)
    @rule(pick=PICK)
    def settle_late_or_again(self, pick: int) -> None:
        self._tell(self.told[pick % len(self.told)])

    def _tell(self, settlement: Settlement) -> None:
        self.ledger.turn([settlement], None)
        if isinstance(settlement.outcome, Accepted):
            self.proven.add(settlement.job_id)

    # -- trouble --------------------------------------------------------------------------------

    @precondition(lambda self: self.in_hand)
    @rule(pick=PICK, on_the_wire=st.booleans(), taken=st.booleans())
    def crash(self, pick: int, on_the_wire: bool, taken: bool) -> None:
        """A worker dies. By its journal the letter was on the wire, or had not left."""
        worker = self.in_hand[pick % len(self.in_hand)].worker
        for letter in [i for i in self.in_hand if i.worker == worker]:
            self.in_hand.remove(letter)
            if on_the_wire and taken and not letter.fenced:
                self.accepted.setdefault(letter.job.id, set()).add(letter.job.attempt)
            outcome: Outcome = DOUBTED if on_the_wire else THROTTLED
            proof = "its lock was free" if on_the_wire else None
            self._tell(Settlement(letter.job.id, letter.job.attempt, outcome, death_proof=proof))

    @precondition(lambda self: self.in_hand)
    @rule()
    def fence(self) -> None:
        self.ledger.fence("ses", self.ledger.now(), "the signature expired")
        for letter in self.in_hand:
            letter.fenced = True

    @precondition(lambda self: self.accepted)
    @rule(pick=PICK, copies=st.integers(1, 2))
    def event(self, pick: int, copies: int) -> None:
        job_id = list(self.accepted)[pick % len(self.accepted)]
        (attempt,) = self.accepted[job_id]
        event = event_of(self._job(job_id), attempt=attempt)
        for _ in range(copies):
            assert self.stage.record(event) in (EventVerdict.APPLIED, EventVerdict.DUPLICATE_EVENT)
        self.proven.add(job_id)

    @rule()
    def prove_absence(self) -> None:
        """The events tell the truth: absent is what the provider did not take."""
        doubts = self.ledger.doubts(100, transport="ses")
        absent = [(d.job_id, d.attempt) for d in doubts if not self.accepted.get(d.job_id)]
        self.ledger.prove_absence(absent, "no event came")

    # -- people ---------------------------------------------------------------------------------

    @rule()
    def resolve_truthfully(self) -> None:
        for doubt in self.stage.store.jobs.list(states=[JobState.IN_DOUBT]):
            sent = bool(self.accepted.get(doubt.id))
            assert self.ledger.resolve([doubt.id], sent=sent, actor="jane", note="looked") == 1

    @rule()
    def retry(self) -> None:
        ended = self.stage.store.jobs.list(states=[JobState.DEAD, JobState.FAILED])
        assert self.ledger.retry([job.id for job in ended], "jane") == len(ended)

    @precondition(lambda self: self.mailouts)
    @rule(pick=PICK)
    def unsubscribe(self, pick: int) -> None:
        jobs = self.stage.store.jobs.list()
        if jobs:
            recipient = self.stage.store.suppressions.unsubscribe(jobs[pick % len(jobs)].id)
            assert recipient is not None
            self.out.add(recipient)
            assert self.stage.store.suppressions.covers(DEFAULT_TENANT, parse_address(recipient))

    @precondition(lambda self: self.mailouts)
    @rule(pick=PICK, paused=st.booleans())
    def pause_or_resume(self, pick: int, paused: bool) -> None:
        self.stage.store.dispatches.set_paused(self.mailouts[pick % len(self.mailouts)], paused)

    @precondition(lambda self: len(self.mailouts) == 2)
    @rule()
    def cancel(self) -> None:
        self.stage.store.dispatches.cancel(self.mailouts[0])
        self.stage.store.dispatches.cancel_chunk(self.mailouts[0], 2)

    @precondition(lambda self: self.mailouts)
    @rule(pick=PICK)
    def complete(self, pick: int) -> None:
        self.stage.store.dispatches.complete(self.mailouts[pick % len(self.mailouts)])

    # -- the judge ------------------------------------------------------------------------------

    def _job(self, job_id: str) -> Job:
        job = self.stage.store.jobs.get(job_id)
        assert job is not None
        return job

    @invariant()
    def nobody_got_a_letter_twice(self) -> None:
        assert all(len(attempts) == 1 for attempts in self.accepted.values())

    @invariant()
    def the_ledger_agrees_with_the_provider(self) -> None:
        for job in self.stage.store.jobs.list():
            taken = bool(self.accepted.get(job.id))
            assert job.duplicate_at is None
            if job.state == JobState.SENT:
                assert taken
            if taken:
                assert job.state in (JobState.SENT, JobState.SENDING, JobState.IN_DOUBT)
            if job.id in self.proven:
                assert job.state == JobState.SENT

    @invariant()
    def the_books_balance_and_no_mailout_ends_too_early(self) -> None:
        self.stage.check_books()
        check_counters(self.stage.store)
        for mailout_id in self.mailouts:
            over = self.stage.get(mailout_id).status != MailoutStatus.SENDING
            assert not (over and self.stage.store.jobs.books(mailout_id).open)

    def teardown(self) -> None:
        try:
            self._bring_to_an_end()
        finally:
            self._opened.__exit__(None, None, None)

    def _bring_to_an_end(self) -> None:
        """Whatever happened: told all the evidence, every mailout comes to its end, once for everybody."""
        for settlement in self.told:
            self._tell(settlement)
        for mailout_id in self.mailouts:
            let_a_moment_pass(self.stage.store)
            while self.stage.store.dispatches.cancel_chunk(mailout_id, 100):
                let_a_moment_pass(self.stage.store)
        for _ in range(4):
            # Each time: a paused mailout that was called over too early is opened again by what is found.
            for mailout_id in self.mailouts:
                self.stage.store.dispatches.set_paused(mailout_id, False)
            while self.in_hand:
                self.send(0, "accepted", late=False)
            self.resolve_truthfully()
            let_a_moment_pass(self.stage.store)
            self.claim(100)
        let_a_moment_pass(self.stage.store)
        for mailout_id in self.mailouts:
            self.stage.store.dispatches.complete(mailout_id)
            assert self.stage.get(mailout_id).status != MailoutStatus.SENDING
        self.nobody_got_a_letter_twice()
        self.the_ledger_agrees_with_the_provider()


class HastyLife(Life):
    """Nobody waits until listings have caught up. A mailout may be called over with a letter scheduled, which
    was not shown yet; the claim that finds it opens the mailout again."""

    @invariant()
    def the_books_balance_and_no_mailout_ends_too_early(self) -> None:
        self.stage.check_books()


LIVES: dict[str, tuple[int, int]] = {
    "memory": (50, 40),
    "weak": (20, 40),
    "hasty": (50, 40),
    "sqlite": (10, 30),
    "postgres": (6, 30),
}
"""How many examples of how many steps."""


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", LIVES)
def test_no_life_of_the_ledger_sends_twice(kind: str, times: int, open_any_store: OpenStore) -> None:
    """Claims, crashes, lost replies, late settles, events and people in any order: at most one copy each."""
    examples, steps = LIVES[kind]
    short: Any = settings(
        max_examples=times * examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    life = HastyLife if kind == "hasty" else Life
    run_state_machine_as_test(lambda: life(lambda: open_any_store(kind)), settings=short)
