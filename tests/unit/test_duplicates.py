"""Which companies are one: tax numbers and redirects decide unless they are a hub's, names never do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import Company, CompanyStatus, Findings
from sendonce.domain.prospecting.duplicates import (
    HUB,
    MOST_NAMESAKES,
    Bearer,
    Evidence,
    Pair,
    PairState,
    Standing,
    judge,
    marks_of,
    name_key,
    standings,
)

FIRST = datetime(2026, 3, 1, tzinfo=UTC)

Mark = tuple[Evidence, str]


def company(number: int, **changes: object) -> Company:
    made = Company(
        id=f"c{number:02}",
        tenant_id=DEFAULT_TENANT,
        domain=f"c{number}.ru",
        name="",
        website_url=f"https://c{number}.ru/",
        language=None,
        status=CompanyStatus.ENRICHED,
        opt_out=False,
        opt_out_reason=None,
        primary_id=None,
        inn=None,
        ogrn=None,
        city=None,
        facts=(),
        reason=None,
        crawled_at=None,
        created_at=FIRST + timedelta(minutes=number),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def bearers(*numbers: int) -> list[Bearer]:
    return [Bearer(each.id, each.created_at) for each in map(company, numbers)]


def applied(standing: Standing, to: Company) -> Company:
    return replace(
        to,
        status=standing.status,
        primary_id=standing.primary_id,
        opt_out=standing.opt_out,
        opt_out_reason=standing.opt_out_reason,
    )


class Books:
    """Pairs as a store would keep them: the last word on each counts."""

    def __init__(self) -> None:
        self.shown: dict[Mark, set[int]] = {}
        self.pairs: dict[tuple[str, str, Evidence, str], Pair] = {}

    def show(self, number: int, marks: Iterable[Mark]) -> None:
        for mark in marks:
            self.shown.setdefault(mark, set()).add(number)
            if len(self.shown[mark]) > 1:
                self.keep(judge(*mark, bearers(*self.shown[mark]), list(self.pairs.values())))

    def keep(self, pairs: Sequence[Pair]) -> None:
        for pair in pairs:
            self.pairs[pair.primary_id, pair.duplicate_id, pair.evidence, pair.value] = pair

    @property
    def merged(self) -> list[Pair]:
        return [pair for pair in self.pairs.values() if pair.state is PairState.MERGED]


MARKS = st.sets(st.tuples(st.sampled_from(list(Evidence)[:4]), st.sampled_from("12")), max_size=3)


def connected(shown: dict[int, set[Mark]]) -> dict[int, int]:
    """The first company of each one's group, worked out in the plainest way."""
    root = {number: number for number in shown}
    deciding = [mark for mark in set().union(*shown.values()) if mark[0] is not Evidence.NAME]
    for _ in shown:
        for mark in deciding:
            sharing = [number for number, marks in shown.items() if mark in marks]
            if 1 < len(sharing) <= HUB:
                lowest = min(root[number] for number in sharing)
                root.update({number: min(lowest, root[number]) for number in sharing})
    return root


@given(st.lists(MARKS, min_size=1, max_size=7), st.randoms())
def test_the_order_of_visits_does_not_matter(marks: list[set[Mark]], dice: object) -> None:
    """Whoever is visited first, the same companies are one, and the first found is the primary."""
    shown = dict(enumerate(marks))
    order = list(shown)
    dice.shuffle(order)  # type: ignore[attr-defined]
    books = Books()
    for number in order:
        books.show(number, shown[number])
    roots = connected(shown)
    for company_id, standing in standings(map(company, shown), books.merged).items():
        number = int(company_id[1:])
        primary = company(roots[number]).id
        assert standing.primary_id == (None if primary == company_id else primary)
        assert standing.opt_out == (primary != company_id)


@given(st.lists(MARKS, min_size=2, max_size=7))
def test_taking_all_apart_again_leaves_no_trace_but_a_new_visit(marks: list[set[Mark]]) -> None:
    books = Books()
    for number, own in enumerate(marks):
        books.show(number, own)
    before = [company(number) for number in range(len(marks))]
    there = [applied(standings(before, books.merged)[each.id], each) for each in before]
    back = [applied(standings(there, [])[each.id], each) for each in there]
    for was, between, now in zip(before, there, back, strict=True):
        was_duplicate = between.status is CompanyStatus.DUPLICATE
        assert now == (replace(was, status=CompanyStatus.NEW) if was_duplicate else was)


@given(st.permutations(range(5)), st.sets(st.sampled_from(list(combinations(range(5), 2))), max_size=5))
def test_standings_depend_on_pairs_not_on_their_order(order: list[int], edges: set[tuple[int, int]]) -> None:
    pairs = [merged(one, other) for one, other in edges]
    everybody = [company(number) for number in order]
    assert standings(everybody, pairs) == standings(sorted(everybody, key=lambda c: c.id), pairs[::-1])


def merged(one: int, other: int, actor: str = "sendonce") -> Pair:
    return Pair(company(one).id, company(other).id, Evidence.INN, "1", PairState.MERGED, actor)


def test_a_hub_merges_nobody() -> None:
    """One company more than a mark may have, and what it had merged is only nominated."""
    few = judge(Evidence.INN, "1", bearers(*range(HUB)), [])
    assert {pair.state for pair in few} == {PairState.MERGED}
    many = judge(Evidence.INN, "1", bearers(*range(HUB + 1)), few)
    assert {pair.state for pair in many} == {PairState.NOMINATED}
    assert len(many) == HUB


def test_a_persons_word_stands() -> None:
    """What somebody has undone stays apart, whatever else the two share; what they merged stays merged."""
    for state in (PairState.UNDONE, PairState.REJECTED):
        said = replace(merged(0, 1, "olga"), state=state)
        assert judge(Evidence.OGRN, "2", bearers(0, 1), [said]) == []
    approved = merged(0, 1, "olga")
    judged = judge(Evidence.INN, "1", bearers(*range(9)), [approved])
    assert approved.companies not in {pair.companies for pair in judged}


def test_a_name_only_nominates_and_a_common_one_not_even_that() -> None:
    [pair] = judge(Evidence.NAME, "ромашка", bearers(4, 2), [])
    assert (pair.state, pair.primary_id) == (PairState.NOMINATED, "c02")
    assert judge(Evidence.NAME, "главная", bearers(*range(MOST_NAMESAKES + 1)), []) == []


def test_an_opt_out_holds_for_all_that_are_one() -> None:
    """Deny wins: also for the primary, if a duplicate asked. Taken apart, it is the asker's alone."""
    asked = company(1, opt_out=True, opt_out_reason="asked by mail")
    together = standings([company(0), asked], [merged(0, 1)])
    assert together["c00"] == Standing(CompanyStatus.ENRICHED, None, True, "group")
    assert together["c01"] == Standing(CompanyStatus.DUPLICATE, "c00", True, "asked by mail")
    both = [applied(together["c00"], company(0)), applied(together["c01"], asked)]
    apart = standings(both, [])
    assert apart["c00"] == Standing(CompanyStatus.ENRICHED, None, False, None)
    assert apart["c01"] == Standing(CompanyStatus.NEW, None, True, "asked by mail")


def test_a_primary_that_was_a_duplicate_is_new_again() -> None:
    was = {"status": CompanyStatus.DUPLICATE, "primary_id": "gone"}
    first = company(0, **was, opt_out=True, opt_out_reason="duplicate")
    found = standings([first, company(1)], [merged(0, 1)])
    assert found["c00"] == Standing(CompanyStatus.NEW, None, False, None)


def test_a_page_with_many_numbers_shows_those_of_others() -> None:
    many = Findings(has_contacts=True, inn=["1", "2", "3", "4"], ogrn=["5", "5"])
    assert list(marks_of(many)) == [(Evidence.OGRN, "5")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ООО «СтройСервис»", "Строй Сервис, ООО"),
        ("Ёлка-Юг", "ЕЛКА ЮГ"),
        ("АО Насос", "насос"),
        ("Pump Works LLC", "pump-works"),
    ],
)
def test_names_that_are_alike(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), [("Ромашка", "Ромашка-Юг"), ("ТД Насос", "НПО Насос")])
def test_names_that_are_not(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@given(st.text())
def test_any_name_has_a_key(name: str) -> None:
    key = name_key(name)
    assert key == name_key(f" {name}\n")
    assert not key or len(key) >= 4
