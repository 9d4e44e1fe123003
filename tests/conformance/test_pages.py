"""Mailouts written on a page elsewhere, test letters, and the images of letters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.letters import NAMELESS
from sendonce.domain.mailouts.mailouts import MailoutStatus, PageEvent, Phase
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from tests.conformance.stage import ACCEPTED, DOUBTED, LETTER, NOBODY, REFUSED, Stage, address


def page(stage: Stage, **kwargs: object) -> str:
    return stage.new_mailout(source="notion", source_id="page-1", letter=None, **kwargs).id


def test_one_mailout_a_page(stage: Stage) -> None:
    """A button pressed twice finds the first mailout; tests of the same page are mailouts of their own."""
    first = page(stage)
    assert page(stage) == first
    tests = {page(stage, is_test=True) for _ in range(2)}
    assert len(tests | {first}) == 3
    found = stage.store.mailouts.of_page(DEFAULT_TENANT, "notion", "page-1")
    assert found is not None
    assert found.id == first
    assert stage.store.mailouts.of_page(DEFAULT_TENANT, "notion", "page-2") is None


def test_a_test_may_come_first(stage: Stage) -> None:
    """A page that was only tested has no mailout yet."""
    test = stage.new_mailout(source="notion", source_id="page-1", is_test=True)
    assert test.is_test
    assert stage.store.mailouts.of_page(DEFAULT_TENANT, "notion", "page-1") is None
    assert page(stage) != test.id


def test_a_mailout_without_its_letter_fetches_it_first(stage: Stage) -> None:
    """Nothing is planned before the letter is frozen, and it is frozen once."""
    stage.subscribe(range(2))
    mailout_id = page(stage)
    assert stage.store.mailouts.start(mailout_id)
    assert stage.get(mailout_id).phase == Phase.FETCHING
    assert stage.store.mailouts.plan_chunk(mailout_id, "planner", 10) is None
    assert stage.store.mailouts.freeze(mailout_id, "news", LETTER, ["an image is large"])
    assert not stage.store.mailouts.freeze(mailout_id, "other", LETTER, [])
    frozen = stage.get(mailout_id)
    assert (frozen.phase, frozen.name, frozen.warnings) == (Phase.PLANNING, "news", ("an image is large",))
    assert stage.store.mailouts.letter(mailout_id) == LETTER
    stage.plan(mailout_id)
    assert len(stage.claim().claimed) == 2


def test_a_letter_is_frozen_only_while_it_is_fetched(stage: Stage) -> None:
    """Not before the start, not after, and not for an unknown mailout."""
    assert not stage.store.mailouts.freeze(page(stage), "news", LETTER, [])
    assert not stage.store.mailouts.freeze(stage.running(1), "news", LETTER, [])
    assert not stage.store.mailouts.freeze(NOBODY, "news", LETTER, [])


def test_a_page_that_could_not_be_used_is_read_anew(stage: Stage) -> None:
    """Stopped before the first job, a page's letter is thrown away: its author has something to mend."""
    mailout_id = page(stage)
    stage.store.mailouts.start(mailout_id)
    stage.store.mailouts.freeze(mailout_id, "news", LETTER, [])
    assert stage.store.mailouts.stop_before_first(mailout_id, "no subject")
    assert stage.get(mailout_id).status == MailoutStatus.READY
    stage.store.mailouts.start(mailout_id)
    assert stage.get(mailout_id).phase == Phase.FETCHING


def test_adoption_pauses_a_page_that_is_fetched(stage: Stage) -> None:
    """The forgotten time may have sent it."""
    mailout_id = page(stage)
    stage.store.mailouts.start(mailout_id)
    stage.store.ledger.adopt(None, 1, "jane")
    assert stage.get(mailout_id).paused


def test_a_test_goes_to_its_audience_only(stage: Stage) -> None:
    """Each address once, whatever the chunk, with the fields of a subscriber to see how they look."""
    stage.subscribe(range(3))
    audience = ("me@example.org", address(1).text, "ME@example.org", "you@example.org")
    mailout_id = stage.new_mailout(is_test=True, audience=audience).id
    stage.store.mailouts.start(mailout_id)
    stage.plan(mailout_id, size=2)
    jobs = {job.recipient: job.fields for job in stage.claim().claimed}
    borrowed = {"name": "User 0", NAMELESS: "yes"}
    assert jobs == {
        "me@example.org": borrowed,
        address(1).text: {"name": "User 1"},
        "you@example.org": borrowed,
    }


def test_a_test_without_subscribers(stage: Stage) -> None:
    """There are no fields to borrow, and it goes out all the same."""
    mailout_id = stage.new_mailout(is_test=True, audience=("me@example.org",)).id
    stage.store.mailouts.start(mailout_id)
    stage.plan(mailout_id)
    assert [job.fields for job in stage.claim().claimed] == [{}]


def test_a_suppressed_tester_gets_no_letter(stage: Stage) -> None:
    """Who unsubscribed is left alone by tests too."""
    stage.running()
    stage.store.suppressions.unsubscribe(stage.claim_one().id)
    mailout_id = stage.new_mailout(is_test=True, audience=(address(0).text,)).id
    stage.store.mailouts.start(mailout_id)
    stage.plan(mailout_id)
    assert stage.claim().claimed == ()
    (job,) = stage.store.jobs.list(dispatch_id=mailout_id)
    assert (job.state, job.reason) == (JobState.SKIPPED, "suppressed")


def test_what_was_reported_of_a_page(stage: Stage) -> None:
    """Mailouts of a source come with what was last reported of them."""
    mailout_id = page(stage)
    stage.mailout()
    assert [(m.id, told) for m, told in stage.store.mailouts.with_stale_report("notion", 10)] == [
        (mailout_id, None)
    ]
    stage.store.mailouts.set_reported(mailout_id, "sending 0/2")
    ((_, told),) = stage.store.mailouts.with_stale_report("notion", 10)
    assert told == "sending 0/2"


def test_images_are_kept_under_their_hash(stage: Stage) -> None:
    """The first content stays; an unknown hash is nothing."""
    assets = stage.store.assets
    assert assets.get("ab12") is None
    assets.put("ab12", "image/png", b"\x89PNG\x00\xff")
    assets.put("ab12", "image/gif", b"other")
    assert assets.get("ab12") == ("image/png", b"\x89PNG\x00\xff")


def test_who_lacks_a_variable_is_counted(stage: Stage) -> None:
    """Active subscribers without a value, or with an empty one."""
    stage.store.subscribers.upsert(
        DEFAULT_TENANT,
        [
            NewSubscriber(address(1), "Jane", {"city": "Riga"}),
            NewSubscriber(address(2), None, {"city": ""}),
            NewSubscriber(address(3), "Joe"),
        ],
    )
    count = stage.store.subscribers.count_lacking
    assert [count(DEFAULT_TENANT, name) for name in ("name", "city", "street", "it's")] == [1, 2, 3, 3]


def test_a_page_that_is_cancelled_before_it_was_read_ends_at_once(stage: Stage) -> None:
    """Nothing is read or planned any more: the mailout has failed."""
    mailout_id = page(stage)
    assert stage.store.mailouts.start(mailout_id)
    assert stage.store.dispatches.cancel(mailout_id)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.FAILED


def test_an_event_of_the_page_starts_once(stage: Stage) -> None:
    """Its second copy, and what happened before it, start nothing; what happened later does."""
    mailouts = stage.store.mailouts
    mailout_id = page(stage)
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    first = PageEvent("e1", noon)
    assert mailouts.start(mailout_id, first)
    assert not mailouts.start(mailout_id, PageEvent("e2", noon + timedelta(minutes=1)))
    shown = mailouts.get(DEFAULT_TENANT, mailout_id)
    assert shown is not None
    assert shown.page_event == first
    assert mailouts.stop_before_first(mailout_id, "not yet")
    assert not mailouts.start(mailout_id, first)
    assert not mailouts.start(mailout_id, PageEvent("e0", noon - timedelta(seconds=1)))
    assert mailouts.hear(mailout_id, PageEvent("e3", noon + timedelta(hours=1)))
    assert not mailouts.hear(mailout_id, PageEvent("e3", noon + timedelta(hours=1)))
    assert not mailouts.start(mailout_id, PageEvent("e2", noon + timedelta(minutes=1)))
    assert mailouts.hear(mailout_id, PageEvent("a press has no time"))
    assert not mailouts.start(mailout_id, PageEvent("e2", noon + timedelta(minutes=1)))
    assert mailouts.start(mailout_id, PageEvent("e4", noon + timedelta(hours=2)))


def test_why_a_mailout_was_not_started(stage: Stage) -> None:
    """The reason stays beside it; a mailout that is under way or was cancelled keeps its own."""
    mailouts = stage.store.mailouts
    mailout_id = page(stage)
    assert mailouts.note(mailout_id, "nobody to write to")
    noted = mailouts.get(DEFAULT_TENANT, mailout_id)
    assert noted is not None
    assert noted.reason == "nobody to write to"
    assert mailouts.start(mailout_id)
    assert not mailouts.note(mailout_id, "too late")
    assert stage.store.dispatches.cancel(mailout_id)
    stage.store.dispatches.complete(mailout_id)
    assert not mailouts.note(mailout_id, "cancelled is cancelled")
    assert not mailouts.note(NOBODY, "unknown")


def test_troubles_are_the_errors_of_the_report(stage: Stage) -> None:
    """Failed, in doubt, bounced, complained of, rejected: the same letters, and as many, as in the CSV."""
    mailout_id = stage.running(7)
    failed, doubted, bounced, complained, rejected, *_ = jobs = list(stage.claim(limit=7).claimed)
    stage.settle(failed, REFUSED)
    stage.settle(doubted, DOUBTED)
    for job in jobs[2:]:
        stage.settle(job, ACCEPTED)
    stage.event(bounced, EventKind.BOUNCE)
    stage.event(complained, EventKind.COMPLAINT)
    stage.event(rejected, EventKind.REJECT)
    found, total = stage.store.jobs.troubles(mailout_id, 50)
    assert {job.id for job in found} == {job.id for job in jobs[:5]}
    assert total == len(stage.store.jobs.outcomes(mailout_id, only_errors=True)) == 5
    first, total = stage.store.jobs.troubles(mailout_id, 2)
    assert (len(first), total) == (2, 5)
    among, total = stage.store.jobs.troubles(mailout_id, 50, among=[rejected.id, jobs[6].id])
    assert ([job.id for job in among], total) == ([rejected.id], 1)
