"""Dispatches with due jobs share the claims, and so do tenants: the port promises it of any prefix."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import groupby

import pytest

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from tests.conformance.backdoor import make_tenant, pass_time
from tests.conformance.stage import ACCEPTED, LETTER, Stage

OTHER_TENANT = TenantId("other")
NEWCOMER = TenantId("newcomer")


def dispatch(
    stage: Stage,
    jobs: int,
    *,
    tenant: TenantId = DEFAULT_TENANT,
    sender: str = OWN_SENDER,
    weight: int = 1,
    wait: timedelta | None = None,
) -> str:
    """A running dispatch of a kind of its own."""
    store = stage.store
    letter = store.letters.put(tenant, LETTER)
    made = store.dispatches.open(tenant, NewDispatch("batch", "owner", letter, sender, weight=weight))
    due = store.ledger.now() + wait if wait else None
    people = [parse_address(f"user{number:05}@example.com") for number in range(jobs)]
    assert store.dispatches.plan(made.id, [NewJob(person, due_at=due) for person in people]) == jobs
    assert store.dispatches.run(made.id)
    return made.id


def served(stage: Stage, groups: int, limit: int = 10, sender: str = OWN_SENDER) -> list[str]:
    """The dispatch of each letter in the order in which so many groups were claimed."""
    worker = stage.worker()
    turns = [stage.claim(worker, limit=limit, sender_id=sender) for _ in range(groups)]
    return [job.dispatch_id for turn in turns for job in turn.claimed]


@pytest.mark.parametrize("weight", [1, 100], ids=["of the same weight", "of a hundred times the weight"])
def test_a_test_letter_beside_a_large_mailout_leaves_within_two_groups(stage: Stage, weight: int) -> None:
    """However long the mailout is, and however long it has been at it."""
    large = dispatch(stage, 10_000, weight=weight)
    assert set(served(stage, 3, limit=50)) == {large}
    test = dispatch(stage, 1)
    assert test in served(stage, 2, limit=50)


def test_two_dispatches_take_turns(stage: Stage) -> None:
    first, second = dispatch(stage, 100), dispatch(stage, 100)
    turns = [key for key, _ in groupby(served(stage, 6))]
    assert turns in ([first, second] * 3, [second, first] * 3)


def test_a_dispatch_of_twice_the_weight_is_served_twice_as_often(stage: Stage) -> None:
    light, heavy = dispatch(stage, 100), dispatch(stage, 100, weight=2)
    assert Counter(served(stage, 9)) == {heavy: 60, light: 30}


def test_who_slept_does_not_catch_up(stage: Stage) -> None:
    """Its share begins when it wakes up: beside one that was served fifty times, it is not ahead by fifty."""
    late = dispatch(stage, 200, wait=timedelta(hours=1))
    early, other = dispatch(stage, 200), dispatch(stage, 200)
    assert set(served(stage, 10)) == {early, other}
    pass_time(stage.store, 3600)
    assert Counter(served(stage, 6)) == {late: 20, early: 20, other: 20}


def test_whoever_comes_first_after_a_rest_is_not_ahead(stage: Stage) -> None:
    """All that were served long sleep while a new one wakes up; when they are back, they share as before."""
    old, rest = dispatch(stage, 40), dispatch(stage, 40)
    worker = stage.worker()
    jobs = [job for _ in range(8) for job in stage.claim(worker, limit=10).claimed]
    new = dispatch(stage, 100)
    assert set(served(stage, 1)) == {new}
    for job in jobs:
        stage.settle(job, ACCEPTED)
    assert stage.store.dispatches.plan(
        old, [NewJob(parse_address(f"more{n}@example.com")) for n in range(40)]
    )
    assert Counter(served(stage, 6)) == {new: 30, old: 30}
    assert stage.store.jobs.books(rest).sent == 40


def test_tenants_share_the_claims(stage: Stage) -> None:
    """One with five dispatches gets no more than one with a single dispatch."""
    make_tenant(stage.store, OTHER_TENANT)
    for _ in range(5):
        dispatch(stage, 30)
    single = dispatch(stage, 100, tenant=OTHER_TENANT)
    counted = Counter(served(stage, 8))
    assert counted[single] == 40


def test_a_tenant_of_thrice_the_weight_is_served_thrice_as_often(stage: Stage) -> None:
    """In any prefix of the claims, give or take a group, however many dispatches and jobs each has."""
    make_tenant(stage.store, OTHER_TENANT, weight=3)
    light = {dispatch(stage, 100), dispatch(stage, 100)}
    heavy = dispatch(stage, 100, tenant=OTHER_TENANT)
    order = served(stage, 12)
    for groups in range(1, 13):
        counted = sum(name in light for name in order[: groups * 10])
        assert abs(counted - groups * 10 / 4) <= 10
    assert Counter(name in light for name in order) == {True: 30, False: 90}
    assert heavy in order


def test_tenants_share_the_claims_of_each_sender(stage: Stage) -> None:
    """What a tenant was served at another sender puts it neither ahead nor behind at this one."""
    make_tenant(stage.store, OTHER_TENANT)
    make_tenant(stage.store, NEWCOMER)
    first = dispatch(stage, 200)
    other = dispatch(stage, 200, tenant=OTHER_TENANT)
    idle = dispatch(stage, 50, tenant=NEWCOMER, sender="second")
    assert set(served(stage, 1, sender="second")) == {idle}
    assert Counter(served(stage, 10)) == {first: 50, other: 50}
    new = dispatch(stage, 200, tenant=NEWCOMER)
    assert Counter(served(stage, 6)) == {first: 20, other: 20, new: 20}
    elsewhere = dispatch(stage, 200, sender="second")
    assert Counter(served(stage, 4, sender="second")) == {elsewhere: 20, idle: 20}


def test_a_group_is_filled_from_the_next_in_turn(stage: Stage) -> None:
    few, many = dispatch(stage, 3), dispatch(stage, 100)
    assert Counter(served(stage, 2)) == {few: 3, many: 17}


def test_the_lower_priority_leaves_first_and_then_the_earlier(stage: Stage) -> None:
    store = stage.store
    made = store.dispatches.open(DEFAULT_TENANT, NewDispatch("batch", "owner"))
    soon = store.ledger.now()
    wanted = [
        ("b@example.com", soon, 5),
        ("a@example.com", soon, 0),
        ("c@example.com", soon - timedelta(1), 9),
    ]
    jobs = [NewJob(parse_address(text), due_at=due, priority=priority) for text, due, priority in wanted]
    store.dispatches.plan(made.id, jobs)
    store.dispatches.run(made.id)
    order = [stage.claim_one().recipient for _ in range(3)]
    assert order == ["c@example.com", "a@example.com", "b@example.com"]
