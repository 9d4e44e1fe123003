"""Queries and their requests: one row each, and no request is sent that the books do not know of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sendonce.adapters.stores.schema import tenants
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.search_answers import (
    Accepted,
    Failed,
    FateUnknown,
    Gone,
    NotNow,
    NotTaken,
    Pending,
    Ready,
    Refused,
    SerpPage,
    SerpResult,
    Verdict,
)
from sendonce.domain.prospecting.search_policy import (
    MAX_FAILURES,
    SUBMIT_LEASE,
    WORK_LEASE,
    after_reading,
    answer_is_elsewhere,
    fate_unknown,
)
from sendonce.domain.prospecting.searches import SUBMITTING, OperationState, Region, search_wish
from sendonce.errors import NotFound
from tests.conformance.search_stage import KAZAN, NOW, TERMS, Searching, budget

HALF_A_DAY = timedelta(hours=12)
LATER = NOW + timedelta(minutes=6)
OTHER = TenantId("other")


@pytest.fixture
def searching(shared_store: SqlStore) -> Searching:
    return Searching(shared_store)


def test_the_same_words_are_one_query(searching: Searching) -> None:
    """However they are spaced and capitalised; asked for with more pages, it gets those that it lacks."""
    add = searching.store.searches.add
    first = add(DEFAULT_TENANT, [search_wish("Насосы  оптом", KAZAN, 1)], NOW)[0]
    again = add(DEFAULT_TENANT, [search_wish("насосы оптом", KAZAN, 3)] * 2, NOW)
    elsewhere = add(DEFAULT_TENANT, [search_wish("насосы оптом", Region("213", "Москва"), 1)], LATER)[0]
    assert [first.new_pages, *(each.new_pages for each in again), elsewhere.new_pages] == [1, 2, 0, 1]
    assert {each.query.id for each in again} == {first.query.id} != {elsewhere.query.id}
    assert [query.pages for query in searching.store.searches.all(DEFAULT_TENANT)] == [1, 3]
    assert len(searching.rows()) == 4


def test_tenants_do_not_see_each_others_searches(searching: Searching) -> None:
    with searching.store.database.writing() as tx:
        tx.execute(tenants.insert().values(id=OTHER, name="other", created_at=NOW))
    (query,) = searching.add("насосы")
    searches = searching.store.searches
    searches.add(OTHER, [search_wish("насосы", KAZAN, 1)], NOW)
    assert [each.id for each in searches.all(DEFAULT_TENANT)] == [query]
    assert searches.tally(OTHER).queries == 1
    assert searches.with_prefix(OTHER, query[:8], 5) != [query]
    with pytest.raises(NotFound):
        searches.retry(OTHER, query, NOW, "ann")


def test_a_tenant_or_direction_that_there_is_not_is_refused(searching: Searching) -> None:
    searches = searching.store.searches
    with pytest.raises(NotFound, match="nobody"):
        searches.add(TenantId("nobody"), [search_wish("насосы", KAZAN, 1)], NOW)
    with pytest.raises(NotFound, match="direction 'pumps'"):
        searches.add(DEFAULT_TENANT, [search_wish("насосы", KAZAN, 1, "pumps")], NOW)
    assert not searching.rows()


def test_thousands_of_queries_are_added_at_once(searching: Searching) -> None:
    searching.add(*(f"насосы {number}" for number in range(1_500)), pages=2)
    assert searching.store.searches.tally(DEFAULT_TENANT).operations == {OperationState.QUEUED: 3_000}


def test_a_request_is_marked_before_it_is_sent_and_taken_once(searching: Searching) -> None:
    searching.add("насосы")
    (operation,) = searching.submits("first").operations
    assert searching.state() is OperationState.SUBMITTING
    assert not searching.submits("second").operations
    assert searching.say(operation, Accepted("op-1"))
    row = searching.row()
    assert (row.state, row.provider_id, row.submits) == ("submitted", "op-1", 1)
    assert row.due_at == NOW + TERMS.first_poll


def test_what_was_not_taken_is_queued_and_costs_nothing(searching: Searching) -> None:
    searching.budget = budget(limit=1.0)
    searching.add("насосы")
    (operation,) = searching.submits().operations
    assert searching.store.quotas.spent(searching.budget) == pytest.approx(0.02541)
    assert searching.say(operation, NotTaken("Too many requests.", "429", retry_after=5.0))
    assert searching.store.quotas.spent(searching.budget) == pytest.approx(0.0)
    assert not searching.submits(now=NOW + timedelta(seconds=4)).operations
    assert searching.submits(now=NOW + timedelta(seconds=5)).operations


def test_a_refused_request_has_failed(searching: Searching) -> None:
    searching.add("насосы")
    assert searching.say(searching.submits().operations[0], Refused("Wrong.", "400"))
    assert (searching.row().state, searching.row().reason) == ("failed", "Wrong.")
    assert searching.row().settled_at is not None


def test_a_request_of_unknown_fate_is_submitted_once_more_half_a_day_later(searching: Searching) -> None:
    """Then no answer to the first can be fetched any more. After that only a person's word helps."""
    (query,) = searching.add("насосы")
    searching.say(searching.submits().operations[0], FateUnknown("No answer.", "timeout"))
    assert searching.state() is OperationState.UNKNOWN
    assert not searching.submits(now=NOW + HALF_A_DAY - timedelta(seconds=1)).operations
    second = NOW + HALF_A_DAY
    searching.say(searching.submits(now=second).operations[0], FateUnknown("No answer."), second)
    much_later = NOW + timedelta(days=30)
    assert not searching.submits(now=much_later).operations
    assert searching.row().submits == 2
    assert searching.store.searches.retry(DEFAULT_TENANT, query, much_later, "ann") == 1
    assert searching.submits(now=much_later).operations


def test_a_worker_that_died_leaves_a_request_of_unknown_fate(searching: Searching) -> None:
    searching.add("насосы")
    searching.submits()
    assert not searching.operations.overdue_submits(10, NOW + SUBMIT_LEASE - timedelta(seconds=1))
    (late,) = searching.operations.overdue_submits(10, NOW + SUBMIT_LEASE)
    assert searching.settle(fate_unknown(late, TERMS, "", "Its worker is gone."), NOW + SUBMIT_LEASE)
    assert searching.state() is OperationState.UNKNOWN


def test_an_outcome_that_is_told_late_settles_the_unknown(searching: Searching) -> None:
    """The worker was slow, not dead. Once the request is in another turn, it is too late."""
    searching.add("насосы")
    (slow,) = searching.submits("slow").operations
    searching.settle(fate_unknown(slow, TERMS, "", "Its worker is gone."))
    assert searching.say(slow, Accepted("op-1"))
    assert (searching.row().state, searching.row().losses) == ("submitted", 0)
    assert not searching.say(slow, Accepted("op-2"))


def test_an_answer_of_another_turn_changes_nothing(searching: Searching) -> None:
    searching.add("насосы")
    (slow,) = searching.submits("slow").operations
    searching.settle(fate_unknown(slow, TERMS, "", "Its worker is gone."))
    second = NOW + HALF_A_DAY
    (quick,) = searching.submits("quick", now=second).operations
    assert not searching.say(slow, Accepted("op-1"))
    assert searching.say(quick, Accepted("op-2"), second)
    assert searching.row().provider_id == "op-2"


def test_an_answer_to_an_earlier_submission_of_the_same_worker_changes_nothing(searching: Searching) -> None:
    searching.add("насосы")
    (slow,) = searching.submits("w").operations
    searching.settle(fate_unknown(slow, TERMS, "", "No answer."))
    second = NOW + HALF_A_DAY
    (quick,) = searching.submits("w", now=second).operations
    assert not searching.say(slow, Accepted("op-1"), second)
    assert searching.say(quick, Accepted("op-2"), second)


def submitted(searching: Searching, text: str = "насосы", pages: int = 1) -> None:
    searching.add(text, pages=pages)
    for operation in searching.submits().operations:
        searching.say(operation, Accepted(f"op-{operation.page}"))


def test_an_answer_is_first_asked_for_after_some_minutes_then_less_and_less_often(
    searching: Searching,
) -> None:
    submitted(searching)
    assert not searching.polls(now=NOW + timedelta(minutes=4)).operations
    waits = []
    for _ in range(12):
        due = searching.row().due_at
        (operation,) = searching.polls(now=due).operations
        searching.told(operation, Pending(), due)
        waits.append(searching.row().due_at - due)
    assert waits[0] < timedelta(minutes=5) < waits[5]
    assert max(waits) <= timedelta(minutes=36)


def test_a_poll_is_one_workers_until_its_lease_ends(searching: Searching) -> None:
    submitted(searching)
    (slow,) = searching.polls("first", now=LATER).operations
    assert not searching.polls("second", now=LATER).operations
    (operation,) = searching.polls("second", now=LATER + WORK_LEASE).operations
    assert not searching.told(slow, Gone("Not found."), LATER + WORK_LEASE)
    assert searching.told(operation, Ready(b""), LATER + WORK_LEASE, "place")
    assert searching.row().answer_place == "place"


def test_what_a_dead_worker_held_is_free_at_once(searching: Searching) -> None:
    """What it was submitting is overdue; what it was polling may be polled. What waits goes on waiting."""
    searching.add("насосы")
    searching.submits("dead")
    assert searching.operations.release("alive", NOW) == 0
    assert searching.operations.release("dead", NOW) == 1
    (late,) = searching.operations.overdue_submits(10, NOW)
    assert searching.say(late, Accepted("op-1"))
    assert searching.operations.release("dead", NOW - WORK_LEASE) == 0
    assert searching.polls("dead", now=LATER).operations
    assert searching.operations.release("dead", LATER) == 1
    assert searching.polls("alive", now=LATER).operations


def test_an_answer_that_never_comes_is_asked_for_twice(searching: Searching) -> None:
    """Once more from the beginning; then it has expired."""
    submitted(searching)
    late = NOW + HALF_A_DAY
    searching.told(searching.polls(now=late).operations[0], Pending(), late)
    assert searching.state() is OperationState.QUEUED
    again = late + timedelta(minutes=2)
    searching.say(searching.submits(now=again).operations[0], Accepted("op-2"), again)
    later = again + timedelta(minutes=6)
    searching.told(searching.polls(now=later).operations[0], Gone("Not found."), later)
    assert (searching.state(), searching.row().submits) == (OperationState.EXPIRED, 2)


def test_what_the_provider_could_not_do_is_tried_again_if_that_may_help(searching: Searching) -> None:
    submitted(searching)
    searching.told(searching.polls(now=LATER).operations[0], Failed("Internal.", "13", passing=True), LATER)
    assert searching.state() is OperationState.QUEUED
    again = LATER + timedelta(minutes=2)
    searching.say(searching.submits(now=again).operations[0], Accepted("op-2"), again)
    later = again + timedelta(minutes=6)
    searching.told(searching.polls(now=later).operations[0], Failed("No folder.", "5"), later)
    assert (searching.row().state, searching.row().code) == ("failed", "5")


def test_a_garbled_answer_is_asked_for_again_a_few_times(searching: Searching) -> None:
    submitted(searching)
    for _ in range(MAX_FAILURES - 1):
        due = searching.row().due_at
        searching.told(searching.polls(now=due).operations[0], NotNow("Garbled.", for_all=False), due)
        assert searching.state() is OperationState.SUBMITTED
    due = searching.row().due_at
    searching.told(searching.polls(now=due).operations[0], NotNow("Garbled.", for_all=False), due)
    assert searching.state() is OperationState.QUEUED


def test_an_outage_does_not_count_as_a_requests_own_failure(searching: Searching) -> None:
    submitted(searching)
    for _ in range(MAX_FAILURES + 1):
        due = searching.row().due_at
        searching.told(searching.polls(now=due).operations[0], NotNow("Down.", "503", 1.0), due)
    assert (searching.row().failures, searching.row().state) == (0, "submitted")


def fetched(searching: Searching, pages: int = 1) -> None:
    submitted(searching, pages=pages)
    for operation in searching.polls(now=LATER).operations:
        searching.told(operation, Ready(b""), LATER, "place")


def result(url: str, position: int, title: str = "Насосы") -> SerpResult:
    return SerpResult(url, "firma.ru", "company", position, title, 'О «насосах»\\ "и" {}', "ru", "yandex")


def test_results_are_kept_once_by_operation_and_url(searching: Searching) -> None:
    fetched(searching)
    (operation,) = searching.operations.begin_ingests("w", 10, LATER)
    first = [result("https://a.ru/", 1), result("https://b.ru/", 2), result("https://a.ru/", 3)]
    searching.operations.keep_results([(operation, first)], LATER)
    again = [result("https://b.ru/", 1, "Новое"), result("https://c.ru/", 2)]
    searching.operations.keep_results([(operation, again)], LATER)
    assert sorted(searching.results()) == [
        ("https://a.ru/", 1, "Насосы"),
        ("https://b.ru/", 1, "Новое"),
        ("https://c.ru/", 2, "Насосы"),
    ]
    page = SerpPage(Verdict.RESULTS)
    assert searching.settle(after_reading(operation, page, 3, LATER), LATER)
    tally = searching.store.searches.tally(DEFAULT_TENANT)
    assert (tally.results, tally.answered, tally.in_time) == (3, 1, 1)


def test_no_results_at_all_are_a_success(searching: Searching) -> None:
    fetched(searching)
    (operation,) = searching.operations.begin_ingests("w", 10, LATER)
    searching.operations.keep_results([(operation, [])], LATER)
    searching.settle(after_reading(operation, SerpPage(Verdict.NOTHING, code="15"), 0, LATER), LATER)
    (query,) = searching.store.searches.all(DEFAULT_TENANT)
    assert (query.state, query.results) == ("done", 0)


def test_after_an_empty_page_the_later_ones_are_not_paid_for(searching: Searching) -> None:
    searching.add("насосы", pages=3)
    (first,) = searching.submits(most=1).operations
    searching.say(first, Accepted("op-1"))
    (first,) = searching.polls(now=LATER).operations
    searching.told(first, Ready(b""), LATER, "place")
    (first,) = searching.operations.begin_ingests("w", 10, LATER)
    searching.settle(after_reading(first, SerpPage(Verdict.NOTHING), 0, LATER), LATER)
    assert searching.states() == ["done"] * 3
    assert not searching.submits(now=NOW + timedelta(days=1)).operations


def test_an_answer_on_another_machine_is_fetched_again(searching: Searching) -> None:
    fetched(searching)
    (operation,) = searching.operations.begin_ingests("w", 10, LATER)
    assert searching.settle(answer_is_elsewhere(operation, TERMS, LATER), LATER)
    assert searching.polls(now=LATER).operations


def test_limits_hold_for_all_workers_together(searching: Searching) -> None:
    """Ten in any second, counted over everybody; the wait tells when it is worth asking again."""
    searching.add(*(f"насосы {number}" for number in range(30)))
    first = searching.submits("a", most=6)
    second = searching.submits("b", most=20, now=NOW + timedelta(seconds=0.4))
    assert (len(first.operations), len(second.operations)) == (6, 4)
    assert 1.5 < second.wait < 1.7
    assert not searching.submits("a", now=NOW + timedelta(seconds=1.9)).operations
    assert len(searching.submits("b", now=NOW + timedelta(seconds=2.1)).operations) == 6
    used = searching.store.quotas.windows(SUBMITTING, TERMS.submitting, NOW + timedelta(seconds=2.1))
    assert [window.used for window in used] == [10, 16]


def test_polling_has_limits_of_its_own(searching: Searching) -> None:
    searching.add(*(f"насосы {number}" for number in range(20)))
    for second in range(0, 6, 3):
        for operation in searching.submits(now=NOW + timedelta(seconds=second)).operations:
            searching.say(operation, Accepted(operation.id))
    searching.add("ещё")
    assert len(searching.polls(most=20, now=LATER).operations) == 10
    assert len(searching.submits(now=LATER).operations) == 1


def test_nothing_is_submitted_beyond_the_months_budget(searching: Searching) -> None:
    searching.budget = budget(limit=0.08, price=0.02541)
    searching.add(*(f"насосы {number}" for number in range(5)))
    assert len(searching.submits().operations) == 3
    empty = searching.submits(now=NOW + timedelta(seconds=3))
    assert (empty.operations, empty.out_of_money) == ((), True)
    december = NOW + timedelta(days=30)
    searching.budget = budget(limit=0.08, now=december)
    assert len(searching.submits(now=december).operations) == 2


def test_the_next_thing_to_do_is_known(searching: Searching) -> None:
    assert searching.operations.next_due() is None
    searching.add("насосы")
    assert searching.operations.next_due() == NOW
    searching.say(searching.submits().operations[0], Accepted("op-1"))
    assert searching.operations.next_due() == NOW + TERMS.first_poll
