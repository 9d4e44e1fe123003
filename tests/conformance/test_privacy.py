"""Erasing a person and showing one: nothing that names them stays, the books hold, the denial lasts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.schema import metadata
from sendonce.adapters.stores.sql.rows import insert_outbox
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.events import EventKind, UnreadableEvent
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.engine.outcomes import Deferred, Refused
from sendonce.domain.people.privacy import Erasure, Scrubber, is_erased
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber, SubscriberStatus
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.flows.mailouts.show_person import show_person
from sendonce.flows.people.unsubscribe import look_up, undo_unsubscribe, unsubscribe
from sendonce.ports.store import Store
from tests.conformance.backdoor import audit
from tests.conformance.stage import ACCEPTED, Stage, event_of

JANE = parse_address("Jane.Doe@Example.com")
SECRET = "jane.doe"


def everything(store: Store) -> str:
    """All that the store holds, as one text in lower case."""
    if isinstance(store, MemoryStore):
        return repr(store.state).lower()
    assert isinstance(store, SqlStore)
    with store.database.reading() as tx:
        # Who receives events is noted by the clock, whatever happens.
        tables = [table for table in metadata.sorted_tables if table.name != "event_receivers"]
        rows = [tuple(row) for table in tables for row in tx.execute(sa.select(table))]
    return json.dumps(rows, default=repr, ensure_ascii=False).lower()


def add_to_outbox(store: Store, body: dict[str, Any]) -> None:
    if isinstance(store, MemoryStore):
        store.state.outbox.append(("notion.error", body))
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        insert_outbox(tx, store.database.now(tx), "notion.error", body)


def subscribe(stage: Stage, who: Address = JANE) -> None:
    person = NewSubscriber(who, "Jane D.", {"city": "Riga"})
    stage.store.subscribers.upsert(DEFAULT_TENANT, [person])


def letter_to_jane(stage: Stage) -> Job:
    """A running mailout to Jane alone; her job."""
    subscribe(stage)
    mailout_id = stage.mailout()
    assert stage.store.mailouts.start(mailout_id)
    stage.plan(mailout_id)
    (job,) = stage.store.jobs.list(dispatch_id=mailout_id)
    return job


def erase(stage: Stage, who: Address = JANE) -> Erasure:
    erasure = stage.store.people.erase(who, "operator")
    stage.check_books()
    return erasure


def test_nothing_that_names_the_person_stays(stage: Stage) -> None:
    """Not the row, the fields of letters, a server's reply, raw events, notes, the log or the outbox."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    stage.settle(claimed, Deferred("450", f"4.2.0 <{JANE.text}> is busy"))
    again = stage.claim_one()
    stage.settle(again, ACCEPTED)
    told = {"mail": {"destination": [JANE.text]}}
    stage.event(again, EventKind.BOUNCE, reason=f"550 {JANE.key} unknown", raw=told)
    upper = (JANE.text.upper(),)
    stage.record(event_of(None, EventKind.COMPLAINT, recipients=upper, destinations=upper, raw=told))
    stage.store.suppressions.add(EVERYBODY, JANE, SuppressionReason.MANUAL, f"asked from {JANE.text}")
    stage.store.suppressions.remove(EVERYBODY, JANE, "operator")
    stage.store.events.keep_unreadable(
        UnreadableEvent("sns-1", "topic", "no JSON", b'["Jane.Doe@Example.com')
    )
    add_to_outbox(stage.store, {"rows": [{"email": JANE.text, "kind": "bounce"}]})
    assert SECRET in everything(stage.store)
    erasure = erase(stage)
    left = everything(stage.store)
    assert SECRET not in left
    assert "riga" not in left
    assert (erasure.subscribers, erasure.letters, erasure.events) == (1, 1, 3)
    assert ("operator", "erase") in [entry[:2] for entry in audit(stage.store)]


def test_a_refusal_that_quotes_the_address_is_scrubbed(stage: Stage) -> None:
    """What the server said stays, without the person."""
    job = letter_to_jane(stage)
    stage.settle(stage.claim_one(), Refused("550", f"5.1.1 <{JANE.text}>: unknown user"))
    erase(stage)
    reason = stage.job(job).reason or ""
    assert reason.startswith("5.1.1 <erased:")
    assert reason.endswith(">: unknown user")


def test_erasing_twice_changes_nothing(stage: Stage) -> None:
    """The second time finds nothing, and leaves no second entry in the log."""
    letter_to_jane(stage)
    stage.event(stage.claim_one())
    assert erase(stage).changed
    before = everything(stage.store)
    assert erase(stage) == Erasure()
    assert everything(stage.store) == before


def test_an_erased_person_stays_suppressed(stage: Stage) -> None:
    """An import brings them back as unsubscribed, in whatever spelling, and no letter is planned."""
    subscribe(stage)
    assert erase(stage).suppressed
    assert stage.store.subscribers.find(DEFAULT_TENANT, JANE) is None
    (suppression,) = stage.store.suppressions.all()
    assert (suppression.scope, suppression.address) == (EVERYBODY, None)
    subscribe(stage, parse_address("JANE.DOE+news@example.com"))
    assert stage.store.subscribers.count(DEFAULT_TENANT) == {SubscriberStatus.UNSUBSCRIBED: 1}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jane.doe@gmail.com", "janedoe@gmail.com"),
        ("jane.doe@gmail.com", "j.a.n.e.doe+x@googlemail.com"),
        ("jane@example.com", "jane+news@example.com"),
        ("jane+news@example.com", "jane+x@example.com"),
    ],
)
def test_all_spellings_of_one_mailbox_are_one_person(stage: Stage, one: str, other: str) -> None:
    """Whichever is given, each of them is shown and erased."""
    for who in (one, other):
        subscribe(stage, parse_address(who))
    assert len(stage.store.people.file_of(parse_address(one)).subscribers) == 2
    assert erase(stage, parse_address(other)).subscribers == 2
    assert one not in everything(stage.store)


def test_others_are_left_alone(stage: Stage) -> None:
    """One whose address contains that of the erased keeps every letter of it."""
    stage.subscribe([1])
    other = parse_address("xjane.doe@example.com")
    subscribe(stage, other)
    subscribe(stage)
    stage.store.suppressions.add(EVERYBODY, other, SuppressionReason.MANUAL, "xjane.doe@example.com.au")
    erase(stage)
    assert stage.store.subscribers.find(DEFAULT_TENANT, other) is not None
    assert "xjane.doe@example.com.au" in everything(stage.store)
    assert stage.subscriber(1).status == SubscriberStatus.ACTIVE


def test_what_was_not_sent_yet_never_is(stage: Stage) -> None:
    """A scheduled letter is skipped at once, and the mailout can end."""
    job = letter_to_jane(stage)
    erase(stage)
    found = stage.job(job)
    assert (found.state, found.reason, found.fields) == (JobState.SKIPPED, "erased", {})
    assert is_erased(found.recipient)
    assert stage.claim().claimed == ()
    assert stage.store.dispatches.complete(job.dispatch_id) is not None


def test_a_letter_on_the_wire_is_still_settled(stage: Stage) -> None:
    """An erasure in the middle of a send costs no outcome."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    erase(stage)
    assert stage.settle(claimed, ACCEPTED) == 1
    assert stage.state(claimed) == JobState.SENT


def test_a_deferred_letter_is_not_sent_to_the_hash(stage: Stage) -> None:
    """A letter that comes back from the wire after the erasure is skipped."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    erase(stage)
    stage.settle(claimed, Deferred("421", "later"))
    assert stage.claim().claimed == ()
    assert stage.state(claimed) == JobState.SKIPPED


@pytest.mark.parametrize("kind", list(EventKind))
def test_a_late_event_does_not_bring_the_person_back(stage: Stage, kind: EventKind) -> None:
    """It marks the job, and is kept without what it says of the person."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    stage.settle(claimed, ACCEPTED)
    erase(stage)
    raw = {"to": JANE.text}
    stage.record(event_of(claimed, kind, recipients=(JANE.text,), raw=raw, reason=f"to {JANE.text}"))
    assert SECRET not in everything(stage.store)
    assert (stage.job(claimed).send_event_at is not None) == (kind == EventKind.SENT)


def test_links_of_old_letters_still_answer(stage: Stage) -> None:
    """Looking, unsubscribing and undoing work, and the person stays suppressed."""
    job = letter_to_jane(stage)
    stage.settle(stage.claim_one(), ACCEPTED)
    erase(stage)
    for flow in (look_up, unsubscribe, undo_unsubscribe, unsubscribe):
        recipient = flow(stage.store, job.id)
        assert recipient is not None
        assert recipient.suppressed
        assert is_erased(recipient.address)
    assert all(s.address is None for s in stage.store.suppressions.all())


def test_erasing_somebody_unknown_only_suppresses(stage: Stage) -> None:
    """They asked not to be known: so it shall be when the next list comes."""
    assert erase(stage) == Erasure(suppressed=True)
    assert stage.store.suppressions.covers("any tenant", JANE) is not None


def test_a_test_letter_forgets_its_audience(stage: Stage) -> None:
    """An address among TEST_EMAILS is personal data too."""
    from sendonce.domain.mailouts.mailouts import NewMailout
    from tests.conformance.stage import LETTER

    stage.store.mailouts.create(
        DEFAULT_TENANT,
        NewMailout("test", "file", LETTER, draft=False, audience=(JANE.text, "qa@example.com")),
    )
    erase(stage)
    (mailout,) = stage.store.mailouts.of_all_tenants()
    assert mailout.audience == ("qa@example.com",)


# -- showing ------------------------------------------------------------------------------------


def test_all_that_is_known_is_shown(stage: Stage) -> None:
    """The subscriber, each suppression in force, each letter with its attempts and events."""
    letter_to_jane(stage)
    stage.settle(stage.claim_one(), Deferred("421", "later"))
    again = stage.claim_one()
    stage.settle(again, ACCEPTED)
    stage.event(again, EventKind.DELIVERED)
    stage.store.suppressions.add(
        DEFAULT_TENANT, parse_address("jane.doe+x@example.com"), SuppressionReason.MANUAL
    )
    report = show_person(stage.store, JANE)
    assert [person.name for person in report.file.subscribers] == ["Jane D."]
    assert [s.reason for s in report.file.suppressions] == [SuppressionReason.MANUAL]
    (explained,) = report.mailouts
    assert explained.letter is not None
    assert explained.why.startswith("sent, delivered 2020-01-01")
    assert [attempt.outcome for attempt in explained.letter.attempts] == ["deferred"]
    assert [event.kind for event in explained.letter.events] == [EventKind.DELIVERED]


def test_why_a_letter_was_not_sent(stage: Stage) -> None:
    """A refusal, an opt-out before the mailout, a subscription after it, and a mailout not started."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    stage.settle(claimed, Refused("550", "no such user"))
    stage.store.suppressions.unsubscribe(claimed.id)
    second = stage.mailout()
    assert stage.store.mailouts.start(second)
    stage.plan(second)
    third = stage.mailout()
    why = {e.mailout.id: e.why for e in show_person(stage.store, JANE).mailouts}
    assert why[claimed.dispatch_id] == "not sent: the provider refused it for good (550 no such user)"
    assert why[second].startswith("not sent: unsubscribed since ")
    assert why[third] == "not sent yet: the mailout has not been started"
    stage.subscribe([7])
    late = show_person(stage.store, parse_address("user0007@example.com"))
    assert late.mailouts[-1].why == "not sent: subscribed after the mailout was started"


def test_nobody_is_shown_as_unknown(stage: Stage) -> None:
    assert not show_person(stage.store, JANE).known


def test_scrubbing_reaches_into_documents() -> None:
    """Lists, values and keys, in any case; a longer address that contains it is somebody else's."""
    scrubber = Scrubber(["a@x.org"], "erased:1")
    told = {"A@X.org": [None, 1, "to <a@X.ORG>, aa@x.org, a@x.organic, a@x.org."]}
    assert scrubber.document(told) == {
        "erased:1": [None, 1, "to <erased:1>, aa@x.org, a@x.organic, erased:1."]
    }
