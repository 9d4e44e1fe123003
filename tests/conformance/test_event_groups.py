"""Events that are recorded together end as if each had been recorded alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from sendonce.adapters.stores.sql.arrows import lock_job
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.events import MARKS, BounceType, DeliveryEvent, EventKind, EventVerdict
from sendonce.domain.engine.jobs import ClaimedJob, JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted
from sendonce.domain.people.privacy import ERASED
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_LIMIT
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber, SubscriberStatus
from sendonce.ports.store import Store
from tests.conformance.backdoor import kept_verdicts, make_tenant, steady_clock
from tests.conformance.stage import (
    ACCEPTED,
    DEFERRED,
    DOUBTED,
    LONG_AGO,
    NOBODY,
    REFUSED,
    Stage,
    address,
    event_of,
)
from tests.conformance.test_concurrency import at_once, settle
from tests.conftest import STORES, OpenStore
from tests.crash.world import until

K = EventKind
PEOPLE, MAILOUTS, FACTS = 30, 4, 500
CANARY = str(UUID(int=7))

Letter = tuple[int, str]
"""The number of the mailout and the recipient: the same in every house."""


class House:
    """A store with letters in every state. Two of one seed differ in nothing but their ids and keys."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.stage = Stage(store)
        self.letters: dict[Letter, ClaimedJob] = {}
        chance = random.Random(seed)
        steady_clock(store)
        make_tenant(store, "second")
        store.subscribers.upsert("second", [NewSubscriber(address(n)) for n in range(PEOPLE)])
        for number in range(MAILOUTS):
            self._send(number, chance)
        for number in range(3):
            store.people.erase(address(number), "a test")
        store.canaries.launch(CANARY, "here")
        store.canaries.accepted(CANARY, "provider-1")

    def _send(self, number: int, chance: random.Random) -> None:
        """Some letters need a second attempt; some get an outcome, others are left on the wire."""
        self.stage.running(PEOPLE)
        worker = self.stage.worker()
        jobs = {job.recipient: job for job in self.stage.claim(worker, PEOPLE).claimed}
        again = [Settlement(jobs[key].id, 1, DEFERRED) for key in sorted(jobs) if chance.random() < 0.3]
        self.store.ledger.turn(again, None)
        jobs |= {job.recipient: job for job in self.stage.claim(worker, PEOPLE).claimed}
        ends = {key: chance.choice([None, ACCEPTED, DOUBTED, REFUSED]) for key in sorted(jobs)}
        settled = [Settlement(jobs[key].id, jobs[key].attempt, end) for key, end in ends.items() if end]
        self.store.ledger.turn(settled, None)
        self.letters |= {(number, key): job for key, job in jobs.items()}

    def snapshot(self) -> dict[str, Any]:
        """All that events can change. Times of our own clock are told as: is it set."""
        names = {job.id: letter for letter, job in self.letters.items()}
        halted = self.store.ledger.identity().halted or ""
        suppressions = self.store.suppressions.all(limit=10_000)
        return {
            "jobs": {letter: self._job(job) for letter, job in self.letters.items()},
            "people": {
                (tenant, n): self._person(tenant, n)
                for tenant in (DEFAULT_TENANT, "second")
                for n in range(PEOPLE)
            },
            "suppressions": sorted(
                (s.address or "", s.scope, str(s.reason), s.note or "") for s in suppressions
            ),
            "events": {
                e.event_id: (
                    e.kind,
                    e.occurred_at,
                    names.get(e.job_id or ""),
                    e.attempt,
                    [_unkeyed(text) for text in e.recipients],
                    _unkeyed(e.natural_key),
                    (e.bounce_type, e.bounce_subtype, e.code, e.reason, e.message_id, e.raw),
                )
                for e in self.store.events.all(limit=10_000)
            },
            "verdicts": kept_verdicts(self.store),
            "halted": [(letter, halted.partition(job)[0]) for job, letter in names.items() if job in halted],
            "canary": (self.store.canaries.last("here") or (None, None))[1],
        }

    def _job(self, claimed: ClaimedJob) -> dict[str, Any]:
        job = self.stage.job(claimed)
        names = ("state", "attempt", "message_id", "code", "reason", *MARKS.values())
        told = {name: getattr(job, name) for name in names}
        return told | {"settled": job.settled_at is not None, "duplicate": job.duplicate_at is not None}

    def _person(self, tenant: str, number: int) -> Any:
        person = self.store.subscribers.find(tenant, address(number))
        return person and (
            person.status,
            person.bounce_type,
            person.bounce_subtype,
            person.status_updated_at is not None,
        )


def _unkeyed(text: str) -> str:
    """The hash of an erased address is another one in every house."""
    return ERASED if text.startswith(ERASED) else text


class Fact(NamedTuple):
    """An event that can be told to any house."""

    letter: Letter | None
    values: dict[str, Any]
    attempts_ahead: int

    def of(self, house: House) -> DeliveryEvent:
        job = house.letters[self.letter] if self.letter else None
        values = dict(self.values)
        attempt = job.attempt + self.attempts_ahead if job else values.pop("attempt")
        return event_of(job, values.pop("kind"), **values | {"attempt": attempt})


def facts(chance: random.Random, letters: list[Letter]) -> list[Fact]:
    """Every kind about every letter, soft bounces above all; unknown letters, canaries, attempts that were
    never issued; then some of them again, by their id or by the fact, and all of it shuffled."""
    told = [_fact(chance, letters, number) for number in range(FACTS)]
    again = [
        fact._replace(values=fact.values | changed)
        for number, fact in enumerate(chance.sample(told, FACTS // 2))
        for changed in [
            chance.choice([{}, {"event_id": f"copy-{number}"}, {"natural_key": f"copied fact {number}"}])
        ]
    ]
    chance.shuffle(told_all := told + again)
    return told_all


_OFTEN = {K.SENT: 20, K.DELIVERED: 8, K.BOUNCE: 50, K.DEFERRED: 5, K.REJECT: 5, K.COMPLAINT: 2}


def _fact(chance: random.Random, letters: list[Letter], number: int) -> Fact:
    letter = chance.choice(letters) if chance.random() < 0.9 else None
    person = letter[1] if letter else address(chance.randrange(PEOPLE)).text
    kind = chance.choices(list(_OFTEN), list(_OFTEN.values()))[0]
    bounces = [BounceType.TRANSIENT] * 20 + [BounceType.PERMANENT, BounceType.UNDETERMINED]
    bounce = chance.choice(bounces) if kind == K.BOUNCE else None
    values: dict[str, Any] = {
        "event_id": f"event-{number}",
        "natural_key": f"fact-{number}",
        "kind": kind,
        "occurred_at": LONG_AGO + timedelta(minutes=chance.randrange(1000)),
        "recipients": (person, address(chance.randrange(PEOPLE)).text),
        "destinations": (person,),
        "bounce_type": bounce,
        "bounce_subtype": chance.choice([None, "General", "MailboxFull"]) if bounce else None,
        "reason": chance.choice([None, f"reason {number}"]),
        "raw": {"number": number},
    }
    if letter is None:
        values["job_id"], values["attempt"] = chance.choice([(None, None), (NOBODY, 1), ("nonsense", 1)])
        values["canary"] = chance.choice([None, None, CANARY, "nonsense"])
    ahead = chance.choices([0, -1, 1], [80, 15, 1])[0]
    return Fact(letter, values, ahead)


def groups(chance: random.Random, events: list[DeliveryEvent]) -> Iterator[list[DeliveryEvent]]:
    """Cut into groups of any size."""
    while events:
        size = chance.randint(1, 64)
        yield events[:size]
        events = events[size:]


@pytest.mark.parametrize("kind", STORES)
def test_a_group_ends_as_if_each_event_had_come_alone(kind: str, open_any_store: OpenStore) -> None:
    """The same verdicts and the same rows, for 750 events, doubled and shuffled, in groups of any size."""
    seed = 20_260_301
    with ExitStack() as stack:
        alone, together = (House(stack.enter_context(open_any_store(kind)), seed) for _ in range(2))
        chance = random.Random(seed)
        told = facts(chance, sorted(alone.letters))
        one_by_one = [alone.store.events.record(fact.of(alone)) for fact in told]
        in_groups = [
            verdict
            for group in groups(chance, [fact.of(together) for fact in told])
            for verdict in together.store.events.record_all(group)
        ]
        assert in_groups == one_by_one
        assert set(one_by_one) == set(EventVerdict)
        expected, found = alone.snapshot(), together.snapshot()
        for part in expected:
            assert found[part] == expected[part], part
        together.stage.check_books()


def test_nothing_is_a_group_too(stage: Stage) -> None:
    assert list(stage.store.events.record_all([])) == []


def test_what_follows_for_a_person_is_decided_in_the_order_of_a_group(stage: Stage) -> None:
    """Five letters came back, and the recipient complains: the delivery of one of them, told later in the
    same group, does not change what the complaint has found."""
    letters = []
    for _ in range(SOFT_BOUNCE_LIMIT):
        stage.running()
        letters.append(stage.claim_one())
    soft = [event_of(job, K.BOUNCE, bounce_type=BounceType.TRANSIENT) for job in letters]
    late = [event_of(letters[0], K.COMPLAINT), event_of(letters[0], K.DELIVERED)]
    assert set(stage.store.events.record_all(soft + late)) == {EventVerdict.APPLIED}
    person = stage.subscriber()
    assert (person.status, person.bounce_type) == (SubscriberStatus.UNSUBSCRIBED, "transient")


def test_a_group_does_not_wait_for_a_locked_job_while_it_holds_others(open_any_store: OpenStore) -> None:
    """PostgreSQL: whoever has locked the one job may be about to lock the other."""
    with open_any_store("postgres") as store:
        assert isinstance(store, SqlStore)
        stage = Stage(store)
        stage.running(2)
        free, locked = sorted(stage.claim().claimed, key=lambda job: job.id)
        group = [event_of(locked), event_of(free), event_of(locked, K.DELIVERED)]
        with ThreadPoolExecutor(1) as writer:
            with store.database.writing() as tx:
                lock_job(tx, locked.id)
                recording = writer.submit(store.events.record_all, group)
                until(lambda: stage.state(free) == JobState.SENT, 20, "the free job is settled")
                assert (recording.done(), stage.state(locked)) == (False, JobState.SENDING)
            assert recording.result() == [EventVerdict.APPLIED] * 3
        assert stage.job(locked).delivered_at is not None


def test_groups_of_events_race_the_settle(shared_stage: Stage) -> None:
    """A worker settles its group in another order than the events come in: neither waits for the other."""
    for _ in range(5):
        mailout_id = shared_stage.running(20)
        jobs = shared_stage.claim().claimed
        group = [Settlement(job.id, job.attempt, Accepted(f"provider-{job.attempt}")) for job in jobs]
        events = [event_of(job) for job in jobs]
        verdicts, copies, _ = at_once(
            told(shared_stage, events), told(shared_stage, events[::-1]), settle(shared_stage, *group[::-1])
        )
        assert sorted(map(str, [*verdicts, *copies])) == ["applied"] * 20 + ["duplicate_event"] * 20
        books = shared_stage.store.jobs.books(mailout_id)
        assert (books.sent, books.duplicates) == (20, 0)


def told(stage: Stage, events: list[DeliveryEvent]) -> Callable[[], Any]:
    return lambda: stage.store.events.record_all(events)
