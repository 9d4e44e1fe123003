"""The engine between a ledger and a transport, each rule on its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sendonce.adapters.metrics import NullMetrics
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Job, JobState, Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome
from sendonce.domain.engine.pacing import Pacer, Unpaced, group_size
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import BadInput, LedgerRolledBack, StoreLost, Unavailable, WorkerBuried
from sendonce.flows.engine import async_ledger, keep_books, send
from sendonce.flows.engine.feed import STALE_AFTER
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_books import OpenGate
from sendonce.flows.engine.keep_time import boot_time
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.send import SendLoop, SendOptions
from sendonce.ports.engine import Feed
from tests.conformance.stage import Stage, address

ANSWERED = Accepted("provider-1")


@dataclass
class Provider:
    """A transport whose every letter is answered by ``answer``; ``before`` runs between take and wire."""

    name: str = "ses"
    answer: Callable[[Parcel], Outcome] = lambda _parcel: ANSWERED
    before: Callable[[Parcel], Any] | None = None
    latency: float = 0.0
    got: list[str] = field(default_factory=list)

    async def carry(self, feed: Feed, connections: int) -> None:
        await asyncio.gather(*(self._lane(feed) for _ in range(connections)))

    async def _lane(self, feed: Feed) -> None:
        while (parcel := await feed.take()) is not None:
            if self.before is not None:
                await self.before(parcel)
            if feed.wire(parcel):
                self.got.append(parcel.recipient)
                await asyncio.sleep(self.latency)
                feed.settle(parcel, self.answer(parcel))

    async def quota(self) -> None:
        return None

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Notebook:
    """A wire journal in memory. ``broken`` makes it refuse."""

    wired: list[tuple[str, int]] = field(default_factory=list)
    replied: list[tuple[str, int]] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)
    broken: bool = False

    def wire(self, job_id: str, attempt: int) -> bool:
        self.wired += [] if self.broken else [(job_id, attempt)]
        return not self.broken

    def reply(self, job_id: str, attempt: int, outcome: Outcome) -> None:
        self.replied.append((job_id, attempt))

    def claimed(self, claim_seq: int, claims: int) -> None:
        self.claims.append(claim_seq)


class Troubled:
    """A ledger with trouble: ``trouble`` sees each turn, before or after it is committed."""

    def __init__(self, ledger: Any, trouble: Callable[[str, Sequence[Settlement], Any], None]) -> None:
        self._ledger = ledger
        self._trouble = trouble
        self.turns: list[tuple[Sequence[Settlement], ClaimRequest | None]] = []

    def halt(self, reason: str) -> None:
        self._ledger.halt(reason)

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        self.turns.append((settlements, claim))
        self._trouble("before", settlements, claim)
        turn: Turn = self._ledger.turn(settlements, claim)
        self._trouble("after", settlements, claim)
        return turn


@dataclass
class Commits:
    """A ledger that remembers in which thread each commit was made."""

    ledger: Any
    places: list[str] = field(default_factory=list)

    def begin_turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Commits:
        self._turn = self.ledger.turn(settlements, claim)
        return self

    def commit(self) -> Turn:
        self.places.append(threading.current_thread().name)
        return self._turn


@dataclass
class Stationery:
    """Letters that need no loading."""

    build: Callable[[ClaimedJob, float], Parcel | Deferred]

    def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
        return True

    def load(self, jobs: tuple[ClaimedJob, ...]) -> None:
        """Nothing is kept."""


@dataclass
class Scene:
    people: int = 3
    connections: int = 1
    batch_size: int = 50
    pacer: Pacer | Unpaced = field(default_factory=Unpaced)
    provider: Provider = field(default_factory=Provider)
    journal: Notebook = field(default_factory=Notebook)
    ledger: Any = None
    letters: Stationery | None = None
    sender_key: str = "ses/eu-central-1/a@b.c"
    quiet_time: float | None = None

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.stage = Stage(self.store)  # type: ignore[arg-type,unused-ignore]
        self.mailout = self.stage.running(self.people)
        self.worker = self.stage.worker()

    def play(self, until: Callable[[], bool] | None = None, seconds: float = 30.0) -> SendLoop:
        """Run a loop until nothing is due (or ``until`` is true), and stop it."""
        return asyncio.run(self._play(until or self._all_settled, seconds))

    async def _play(self, until: Callable[[], bool], seconds: float) -> SendLoop:
        loop = SendLoop(
            SendOptions(self.connections, self.batch_size, RetryPolicy()),
            ledger=self.ledger or self.store.ledger,
            claims=OwnClaims(self.worker, 0),
            journal=self.journal,
            letters=self.letters or Stationery(parcel_of),
            transport=self.provider,
            pacer=self.pacer,
            gate=OpenGate(),
            holding=Holding(self.store.sender_holds, self.sender_key, self.quiet_time),
            meter=NullMetrics(),
        )
        self.loop = loop
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(seconds):
            while not until() and not running.done():
                await asyncio.sleep(0.005)
        loop.stop()
        await running
        return loop

    def _all_settled(self) -> bool:
        books = self.store.jobs.books(self.mailout)
        return books.open == 0

    def states(self) -> dict[str, int]:
        return {state: count for state, count in self.store.jobs.count_by_state().items() if count}

    def jobs(self) -> Sequence[Job]:
        return self.store.jobs.list()


def parcel_of(job: ClaimedJob, taken: float) -> Parcel:
    sent = (job.id, job.attempt, "a@b.c", job.recipient, b"", datetime.now(UTC), taken, job.tries)
    return Parcel(*sent, dispatch_id=job.dispatch_id)


def test_a_letter_that_has_to_wait_never_comes_to_the_wire() -> None:
    at_night = Deferred("closed", "it is night", 3600.0, throttle=True)
    scene = Scene(people=1, letters=Stationery(lambda job, taken: at_night))
    scene.play(until=lambda: scene.jobs()[0].code == "closed")
    (job,) = scene.jobs()
    assert (job.state, job.tries, scene.journal.wired) == ("scheduled", 0, [])
    assert job.due_at > datetime.now(UTC) + timedelta(minutes=50)


@pytest.mark.parametrize(
    ("rate", "group"), [(0.5, 1), (6, 1), (14, 3), (100, 25), (200, 50), (1000, 50), (1e9, 50)]
)
def test_a_group_is_a_quarter_of_a_second(rate: float, group: int) -> None:
    assert group_size(rate, batch_size=50) == group


def test_every_letter_is_journaled_before_it_leaves_and_settled_after() -> None:
    scene = Scene(people=20, connections=4)
    scene.play()
    assert scene.states() == {JobState.SENT: 20}
    assert sorted(scene.provider.got) == sorted({address(n).text for n in range(20)})
    assert len(scene.journal.wired) == len(scene.journal.replied) == 20


@pytest.mark.parametrize(("quick", "in_the_loop"), [(60.0, range(10, 1000)), (1e-9, range(2, 3))])
def test_the_loop_waits_for_quick_commits_only(
    quick: float, in_the_loop: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commits that take longer than a quick one send the next ones to the thread."""
    monkeypatch.setattr(async_ledger, "QUICK_COMMIT", quick)
    monkeypatch.setattr(async_ledger, "SLOW_COMMITS_FOR", 60.0)
    scene = Scene(people=20, batch_size=1)
    commits = scene.ledger = Commits(scene.store.ledger)
    scene.play()
    assert scene.states() == {JobState.SENT: 20}
    assert commits.places.count("MainThread") in in_the_loop
    assert (len(commits.places) > commits.places.count("MainThread")) is (quick < 1)


def test_a_letter_that_is_not_known_yet_is_loaded_outside_the_loop() -> None:
    """Loading it asks the store, which may take its time; a commit in the loop before it changes nothing."""
    places: list[str] = []

    class Slow(Stationery):
        def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
            return bool(places)

        def load(self, jobs: tuple[ClaimedJob, ...]) -> None:
            places.append(threading.current_thread().name)

    scene = Scene(people=3, batch_size=1, letters=Slow(parcel_of))
    commits = scene.ledger = Commits(scene.store.ledger)
    scene.play()
    assert scene.states() == {JobState.SENT: 3}
    assert set(commits.places) == {"MainThread"}
    assert [place == "MainThread" for place in places[:2]] == [False, True]


def test_a_turn_begins_when_the_connections_have_taken_all_that_was_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not when a group has its outcomes: the later it begins, the fewer turns there are."""
    monkeypatch.setattr(keep_books, "FLUSH_AFTER", 60.0)
    scene = Scene(people=80, batch_size=4, connections=2)
    ledger = scene.ledger = Troubled(scene.store.ledger, lambda *_: None)
    scene.play(until=lambda: len(scene.provider.got) > 60, seconds=5.0)
    sizes = [len(settlements) for settlements, _ in ledger.turns if settlements]
    assert min(sizes[2:-2]) > 4
    assert max(sizes) <= 2 * 4


def test_at_a_limited_rate_a_turn_begins_when_a_group_has_its_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Letters that wait for their moment are in hand while it is committed, so no moment is missed."""
    monkeypatch.setattr(keep_books, "FLUSH_AFTER", 60.0)
    scene = Scene(people=80, batch_size=4, pacer=Pacer(100, 0.0))
    ledger = scene.ledger = Troubled(scene.store.ledger, lambda *_: None)
    scene.play(until=lambda: len(scene.provider.got) > 40, seconds=5.0)
    sizes = [len(settlements) for settlements, _ in ledger.turns if settlements]
    assert max(sizes[1:-1]) <= 5


@pytest.mark.parametrize("rate", [14, 100])
def test_at_most_two_groups_are_claimed(rate: int) -> None:
    scene = Scene(people=400, connections=8, pacer=Pacer(rate, 0.0), provider=Provider(latency=0.3))
    seen = []

    def enough() -> bool:
        seen.append(scene.states().get(JobState.SENDING, 0))
        return len(scene.provider.got) > 2 * group_size(rate, 50)

    scene.play(until=enough)
    assert 0 < max(seen) <= 2 * group_size(rate, 50)


def test_a_claim_older_than_a_second_is_given_back_and_its_suppression_is_seen() -> None:
    """The one-second promise: who unsubscribes while a letter waits for the wire gets none."""
    scene = Scene(people=1)

    async def dawdle(_parcel: Parcel) -> None:
        if not scene.journal.wired and scene.states().get(JobState.SKIPPED) is None:
            scene.store.suppressions.add(DEFAULT_TENANT, address(0), SuppressionReason.UNSUBSCRIBED)
            await asyncio.sleep(STALE_AFTER + 0.1)

    scene.provider.before = dawdle
    scene.play()
    assert scene.provider.got == []
    assert scene.states() == {JobState.SKIPPED: 1}


def test_a_letter_that_cannot_be_journaled_is_not_sent() -> None:
    scene = Scene(people=2, journal=Notebook(broken=True))
    scene.play(until=lambda: any(job.code == "no_journal" for job in scene.jobs()))
    assert scene.provider.got == []
    assert scene.states() == {JobState.SCHEDULED: 2}


def test_a_broken_journal_does_not_make_the_ledger_spin() -> None:
    """Claiming and giving back as fast as it goes would fill what is left of the disk."""
    scene = Scene(people=1, journal=Notebook(broken=True))
    with pytest.raises(TimeoutError):
        scene.play(until=lambda: any(job.attempt > 2 for job in scene.jobs()), seconds=1.5)


def test_nothing_is_sent_on_a_claim_whose_commit_is_unknown() -> None:
    """It is looked up by its token; each letter leaves once."""
    scene = Scene(people=3)
    lost: list[str] = []

    def trouble(when: str, _settlements: Sequence[Settlement], claim: ClaimRequest | None) -> None:
        if when == "after" and claim is not None and not lost:
            lost.append(claim.token)
            assert scene.provider.got == []
            raise StoreLost("The reply to COMMIT was lost.")

    scene.ledger = Troubled(scene.store.ledger, trouble)
    scene.play()
    asked_again = [claim for _, claim in scene.ledger.turns if claim is not None and claim.retry]
    assert asked_again[0].token == lost[0]
    assert sorted(scene.provider.got) == [address(n).text for n in range(3)]
    assert scene.states() == {JobState.SENT: 3}


def test_a_settle_is_retried_and_the_letter_is_not() -> None:
    scene = Scene(people=2)
    refusals = iter(range(3))

    def trouble(when: str, settlements: Sequence[Settlement], _claim: Any) -> None:
        if when == "before" and settlements and next(refusals, None) is not None:
            raise Unavailable("The database is away.")

    scene.ledger = Troubled(scene.store.ledger, trouble)
    scene.play()
    assert sorted(scene.provider.got) == [address(0).text, address(1).text]
    assert scene.states() == {JobState.SENT: 2}


def test_a_settle_that_was_committed_unknown_to_us_changes_nothing_the_second_time() -> None:
    scene = Scene(people=1)
    lost: list[bool] = []

    def trouble(when: str, settlements: Sequence[Settlement], _claim: Any) -> None:
        if when == "after" and settlements and not lost:
            lost.append(True)
            raise StoreLost("The reply to COMMIT was lost.")

    scene.ledger = Troubled(scene.store.ledger, trouble)
    scene.play()
    assert scene.provider.got == [address(0).text]
    assert scene.states() == {JobState.SENT: 1}
    assert scene.store.jobs.books(scene.mailout).duplicates == 0


def test_a_claim_number_that_falls_stops_everything() -> None:
    """The database was restored under a running worker: nothing of the new claim leaves."""
    scene = Scene(people=4, batch_size=1, provider=Provider(latency=0.02))

    class Restored(Troubled):
        def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
            turn = super().turn(settlements, claim)
            restored = len(self.turns) > 1 and turn.claimed
            return replace(turn, claim_seq=1) if restored else turn

    scene.ledger = Restored(scene.store.ledger, lambda *_: None)
    with pytest.raises(LedgerRolledBack, match="restored"):
        scene.play()
    assert len(scene.provider.got) <= 2
    assert scene.states().get(JobState.SENDING, 0) >= 1
    assert "restored" in (scene.store.ledger.identity().halted or "")


def test_a_halt_that_cannot_be_written_is_tried_again_before_anything_is_claimed() -> None:
    """Asked again, the database has caught up with the claim number and looks right. It is not."""
    scene = Scene(people=6, batch_size=1, provider=Provider(latency=0.02))

    class Restored(Troubled):
        lowered = refused = 0

        def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
            turn = super().turn(settlements, claim)
            if len(self.turns) > 1 and turn.claimed and not self.lowered:
                self.lowered = len(self.turns)
                return replace(turn, claim_seq=1)
            return turn

        def halt(self, reason: str) -> None:
            self.refused += 1
            if self.refused < 3:
                raise Unavailable("the database is away")
            super().halt(reason)

    scene.ledger = ledger = Restored(scene.store.ledger, lambda *_: None)
    with pytest.raises(LedgerRolledBack, match="restored"):
        scene.play()
    assert ledger.refused == 3
    assert [claim for _, claim in ledger.turns[ledger.lowered :] if claim] == []
    assert "restored" in (scene.store.ledger.identity().halted or "")


def test_a_worker_that_was_buried_leaves_and_settles_what_it_knows() -> None:
    """It claims nothing more, but what the provider told it is evidence and is kept."""
    scene = Scene(people=4, batch_size=1, provider=Provider(latency=0.02))

    def bury(when: str, settlements: Sequence[Settlement], _claim: ClaimRequest | None) -> None:
        if when == "before" and settlements:
            record, _ = scene.store.state.workers[scene.worker]
            scene.store.state.workers[scene.worker] = (record, "taken for dead")

    scene.ledger = Troubled(scene.store.ledger, bury)
    with pytest.raises(WorkerBuried, match="taken for dead"):
        scene.play()
    assert scene.states()[JobState.SENT] == len(scene.provider.got)
    assert JobState.SENDING not in scene.states()
    assert scene.store.ledger.identity().halted is None


def test_what_is_on_the_wire_when_the_ledger_halts_is_settled() -> None:
    """Nothing more is claimed, and no answer of the provider is lost."""
    scene = Scene(people=6, connections=3, provider=Provider(latency=0.05))

    async def halt(_parcel: Parcel) -> None:
        scene.store.ledger.halt("restored")

    scene.provider.before = halt
    with pytest.raises(LedgerRolledBack, match="restored"):
        scene.play()
    assert scene.states()[JobState.SENT] == len(scene.provider.got) > 0
    assert JobState.SENDING not in scene.states()


def test_a_job_in_nobodys_hands_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger counts it as ours, we know nothing of it: it never left, and is claimed and sent once."""
    monkeypatch.setattr(keep_books, "LOOK_EVERY", 0.02)
    scene = Scene(people=2)
    stray = next(iter(scene.store.state.jobs.values()))
    stray.state, stray.worker_id, stray.attempt = JobState.SENDING, scene.worker, 1
    scene.play()
    assert scene.states() == {JobState.SENT: 2}
    assert sorted(scene.provider.got) == [address(0).text, address(1).text]


def test_a_job_that_is_on_the_wire_for_long_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in our hands until its outcome is settled."""
    monkeypatch.setattr(keep_books, "LOOK_EVERY", 0.02)
    scene = Scene(people=2, connections=2, provider=Provider(latency=0.3))
    scene.play()
    assert scene.states() == {JobState.SENT: 2}
    assert len(scene.provider.got) == 2


def test_an_outcome_that_the_database_lost_halts_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that we settled is sending again: the database went back, and the letter stays where it is."""
    monkeypatch.setattr(keep_books, "LOOK_EVERY", 0.02)
    scene = Scene(people=1)

    def forget() -> bool:
        for row in scene.store.state.jobs.values():
            if row.state == JobState.SENT:
                row.state, row.accepted_attempt, row.message_id = JobState.SENDING, None, None
        return False

    with pytest.raises(LedgerRolledBack, match="was settled, but this database does not know"):
        scene.play(until=forget)
    assert len(scene.provider.got) == 1
    assert scene.store.ledger.identity().halted is not None


def test_no_letter_leaves_on_permits_whose_lease_ran_out() -> None:
    scene = Scene(people=3)

    async def lapse(_parcel: Parcel) -> None:
        scene.loop.feed.permits_until = boot_time() - 0.001

    scene.provider.before = lapse
    scene.play(until=lambda: any(job.code == "released" for job in scene.jobs()))
    assert scene.provider.got == []
    assert scene.states() == {JobState.SCHEDULED: 3}


def test_a_field_that_cannot_stand_in_a_letter_fails_this_letter_only() -> None:
    def build(job: ClaimedJob, taken: float) -> Parcel:
        if job.recipient == address(1).text:
            raise BadInput("The name has a line end in it.")
        return parcel_of(job, taken)

    scene = Scene(people=3, letters=Stationery(build))
    scene.play()
    assert scene.states() == {JobState.SENT: 2, JobState.FAILED: 1}
    (failed,) = [job for job in scene.jobs() if job.state == JobState.FAILED]
    assert failed.reason == "The name has a line end in it."


def test_a_throttled_letter_rests_the_transport_and_uses_up_no_try() -> None:
    answers = iter([Deferred("429", "slow down", 0.2, throttle=True)])
    scene = Scene(people=2, provider=Provider(answer=lambda _parcel: next(answers, ANSWERED)))
    scene.play()
    assert scene.states() == {JobState.SENT: 2}
    assert [job.tries for job in scene.jobs()] == [0, 0]
    assert len(scene.provider.got) == 3


def test_the_trouble_of_one_connection_does_not_rest_the_transport() -> None:
    """A local throttle delays its own letter and uses up no try; the others leave at once."""
    local = Deferred("421", "closing", 3600.0, throttle=True, local=True)
    answers = iter([local])
    scene = Scene(people=5, provider=Provider(answer=lambda _parcel: next(answers, ANSWERED)))
    scene.play(until=lambda: scene.states().get(JobState.SENT) == 4)
    assert scene.states() == {JobState.SENT: 4, JobState.SCHEDULED: 1}
    assert [job.tries for job in scene.jobs()] == [0] * 5


def test_what_several_connections_hear_at_once_is_one_not_now() -> None:
    """Four connections that are told to wait rest the transport as long as one would."""
    answers = iter([Deferred("450", "too fast", 0.01, throttle=True)] * 4)
    provider = Provider(answer=lambda _parcel: next(answers, ANSWERED), latency=0.01)
    scene = Scene(people=4, connections=4, provider=provider)
    scene.play(seconds=3.0)  # 0.5 s; four rests one after the other would be 4 s
    assert scene.states() == {JobState.SENT: 4}


def test_a_connection_is_opened_for_letters_that_no_open_one_waits_for() -> None:
    """One letter opens one connection; the next one goes to the connection that waits, and opens none."""

    class Slow(Provider):
        opened = 0

        async def _lane(self, feed: Feed) -> None:
            while await feed.wanted():
                self.opened += 1
                while (parcel := await feed.take()) is not None:
                    if feed.wire(parcel):
                        self.got.append(parcel.recipient)
                        feed.settle(parcel, ANSWERED)

    scene = Scene(people=12, connections=8, pacer=Pacer(20, 0.0), provider=Slow())
    scene.play()
    assert scene.states() == {JobState.SENT: 12}
    assert scene.provider.opened <= 2  # type: ignore[attr-defined]


def test_a_slow_provider_gets_as_many_connections_as_the_rate_needs() -> None:
    """At 20 a second and 0.3 seconds per letter one connection is too few, and eight are enough."""

    class Slow(Provider):
        async def _lane(self, feed: Feed) -> None:
            if await feed.wanted():
                await super()._lane(feed)

    scene = Scene(people=40, connections=8, pacer=Pacer(20, 0.0), provider=Slow(latency=0.3))
    scene.play(seconds=9.0)  # it takes 2.6 s; over one connection it would be 12
    assert scene.states() == {JobState.SENT: 40}


def test_a_letter_that_reaches_a_connection_as_it_ends_goes_back() -> None:
    """Who stops waiting takes no letter along, even when it was handed out in the same moment."""

    class Fickle(Provider):
        async def _lane(self, feed: Feed) -> None:
            for _ in range(20):
                waiting = asyncio.create_task(feed.take())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait({waiting})
                if not waiting.cancelled() and (parcel := waiting.result()) is not None and feed.wire(parcel):
                    self.got.append(parcel.recipient)
                    feed.settle(parcel, ANSWERED)
                await asyncio.sleep(0.001)
            await super()._lane(feed)

    scene = Scene(people=30, connections=3, provider=Fickle())
    scene.play()
    assert scene.states() == {JobState.SENT: 30}
    assert len(scene.provider.got) == 30


def test_a_lost_reply_is_in_doubt_by_the_workers_own_word() -> None:
    scene = Scene(people=1, provider=Provider(answer=lambda _parcel: InDoubt("no answer")))
    scene.play(until=lambda: JobState.IN_DOUBT in scene.states())
    (job,) = scene.jobs()
    assert (job.state, job.death_proof) == (JobState.IN_DOUBT, "the worker's own word")
    assert len(scene.provider.got) == 1


def test_a_provider_that_hangs_at_the_stop_leaves_its_own_letters_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send, "DRAIN_SECONDS", 0.3)

    class Hanging(Provider):
        async def _lane(self, feed: Feed) -> None:
            while (parcel := await feed.take()) is not None:
                if feed.wire(parcel):
                    self.got.append(parcel.recipient)
                    try:
                        await asyncio.sleep(3600)
                    finally:
                        feed.settle(parcel, InDoubt("stopped before the answer"))

    scene = Scene(people=20, connections=2, provider=Hanging())
    scene.play(until=lambda: len(scene.provider.got) == 2)
    assert scene.states() == {JobState.IN_DOUBT: 2, JobState.SCHEDULED: 18}


def test_stopping_gives_back_what_has_not_left() -> None:
    scene = Scene(people=100, connections=2, provider=Provider(latency=0.05))
    scene.play(until=lambda: len(scene.provider.got) >= 4)
    states = scene.states()
    assert set(states) == {JobState.SENT, JobState.SCHEDULED}
    assert states[JobState.SENT] == len(scene.provider.got)
