"""Soft bounces: so many letters in a row that came back, and the order of the news does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import permutations
from typing import Any

import pytest

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind
from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_LIMIT, SOFT_BOUNCE_NOTE, LetterFate, last_of_a_row
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.ports.store import Store
from tests.conformance.stage import Stage, address, event_of

LIMIT = 3
K = EventKind
ACTIVE = ((SubscriberStatus.ACTIVE, None, None), None)
SOFT = ((SubscriberStatus.BOUNCED, "transient", "MailboxFull"), (SuppressionReason.BOUNCE, SOFT_BOUNCE_NOTE))


@pytest.fixture(params=("memory", "sqlite", "postgres"))
def strict(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage whose store gives up after three letters."""
    if request.param == "memory":
        yield Stage(MemoryStore(soft_bounce_limit=LIMIT))
        return
    with closing(open_store(request.getfixturevalue(f"{request.param}_url"), LIMIT)) as store:
        yield Stage(store)


def sent_letters(stage: Stage, mailouts: int, people: int = 1) -> list[dict[str, ClaimedJob]]:
    """So many mailouts to all of the people, all on the wire: by mailout, the job of each recipient."""
    letters = []
    for _ in range(mailouts):
        stage.running(people)
        letters.append({job.recipient: job for job in stage.claim(limit=people).claimed})
    return letters


def soft(job: ClaimedJob, subtype: str = "MailboxFull") -> DeliveryEvent:
    return event_of(job, K.BOUNCE, bounce_type=BounceType.TRANSIENT, bounce_subtype=subtype)


def delivered(job: ClaimedJob) -> DeliveryEvent:
    return event_of(job, K.DELIVERED)


def hard(job: ClaimedJob) -> DeliveryEvent:
    return event_of(job, K.BOUNCE, bounce_subtype="NoEmail", reason="user unknown")


def complaint(job: ClaimedJob) -> DeliveryEvent:
    return event_of(job, K.COMPLAINT, reason="abuse")


def end(store: Store, number: int = 0) -> Any:
    """What became of a person: status and bounce, and the suppression."""
    person = store.subscribers.find(DEFAULT_TENANT, address(number))
    assert person is not None
    suppression = store.suppressions.covers(DEFAULT_TENANT, address(number))
    told = suppression and (suppression.reason, suppression.note)
    return (person.status, person.bounce_type, person.bounce_subtype), told


def test_the_limit_is_reached_by_distinct_letters(stage: Stage) -> None:
    """Four letters came back, one of them twice: active. The fifth ends the writing, with a note."""
    letters = [jobs[address(0).text] for jobs in sent_letters(stage, SOFT_BOUNCE_LIMIT)]
    for job in [*letters[:-1], letters[0]]:
        stage.record(soft(job))
        assert end(stage.store) == ACTIVE
        assert stage.job(job).bounced_at is not None
    stage.record(soft(letters[-1]))
    assert end(stage.store) == SOFT
    assert stage.store.subscribers.count(DEFAULT_TENANT) == {"bounced": 1}


def test_a_bounced_subscriber_is_left_out_of_the_next_mailout(strict: Stage) -> None:
    """Like one whose mailbox does not exist; an import does not bring them back."""
    for jobs in sent_letters(strict, LIMIT, 2):
        strict.record(soft(jobs[address(0).text]))
    strict.running(2)
    assert [job.recipient for job in strict.claim().claimed] == [address(1).text]


HARD = ((SubscriberStatus.BOUNCED, "permanent", "NoEmail"), (SuppressionReason.BOUNCE, "user unknown"))
ANGRY = (
    (SubscriberStatus.UNSUBSCRIBED, "transient", "MailboxFull"),
    (SuppressionReason.COMPLAINT, "abuse"),
)
# What is told of four letters, from the first to the last, and what becomes of their recipient.
SETS: dict[str, tuple[list[tuple[Callable[[ClaimedJob], DeliveryEvent], int]], Any]] = {
    "all came back": ([(soft, 0), (soft, 1), (soft, 2)], SOFT),
    "one more came back": ([(soft, 0), (soft, 1), (soft, 2), (soft, 3)], SOFT),
    "too few": ([(soft, 0), (soft, 1)], ACTIVE),
    "one in between arrived": ([(soft, 0), (delivered, 1), (soft, 2), (soft, 3)], ACTIVE),
    "one before them arrived": ([(delivered, 0), (soft, 1), (soft, 2), (soft, 3)], SOFT),
    "one after them arrived": ([(soft, 0), (soft, 1), (soft, 2), (delivered, 3)], ACTIVE),
    "an absent person's robot": ([(soft, 0), (soft, 1), (soft, 2), (delivered, 2)], ACTIVE),
    "no such mailbox after all": ([(soft, 0), (soft, 1), (soft, 2), (hard, 3)], HARD),
    "a complaint": ([(soft, 0), (soft, 1), (soft, 2), (complaint, 0)], ANGRY),
}


def test_every_order_of_the_news_ends_alike(strict: Stage) -> None:
    """All permutations, each event told twice, end in one state of the subscriber and the suppression."""
    letters = sent_letters(strict, 4, 24 * len(SETS))
    people = iter(range(24 * len(SETS)))
    for name, (told, expected) in SETS.items():
        for order in permutations(told):
            number = next(people)
            events = [tell(letters[letter][address(number).text]) for tell, letter in order]
            for event in [*events, *events]:
                strict.store.events.record(event)
            assert end(strict.store, number) == expected, (name, order)
    strict.check_books()


def test_late_news_of_a_delivery_does_not_undo_an_unsubscription(strict: Stage) -> None:
    """Deny wins: who has asked to be left alone meanwhile stays so."""
    letters = [jobs[address(0).text] for jobs in sent_letters(strict, LIMIT)]
    for job in letters:
        strict.record(soft(job))
    strict.store.suppressions.unsubscribe(letters[0].id)
    strict.record(delivered(letters[2]))
    (status, _, _), suppression = end(strict.store)
    assert status == SubscriberStatus.UNSUBSCRIBED
    assert suppression is not None


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_news_that_come_at_the_same_moment_are_all_counted(request: pytest.FixtureRequest, kind: str) -> None:
    """Two writers that tell of the last two letters at once cannot miss each other."""
    with closing(open_store(request.getfixturevalue(f"{kind}_url"), LIMIT)) as store:
        letters = sent_letters(Stage(store), LIMIT, 20)
        with ThreadPoolExecutor(LIMIT) as writers:
            for number in range(20):
                events = [soft(jobs[address(number).text]) for jobs in letters]
                list(writers.map(store.events.record, events))
        assert {end(store, number)[0][0] for number in range(20)} == {SubscriberStatus.BOUNCED}


def test_zero_is_never() -> None:
    """With SOFT_BOUNCE_LIMIT=0 no number of soft bounces suppresses anybody."""
    stage = Stage(MemoryStore(soft_bounce_limit=0))
    for jobs in sent_letters(stage, 8):
        stage.record(soft(jobs[address(0).text]))
    assert end(stage.store) == ACTIVE


def test_letters_of_unknown_fate_are_passed_over() -> None:
    """Neither a bounce nor a delivery was told of them; the row goes on before them."""
    fates = [LetterFate(f"{n}", False, came_back=n != 2) for n in range(4)]
    assert last_of_a_row(fates, 3) == fates[3]
    assert last_of_a_row(fates, 4) is None
