"""Duplicates: which companies are one.

Two companies that show the same mark may be one. A tax number or a redirect decides, unless many companies
show it: then it belongs to a web studio, a holding or a parking page, and a person decides. A name never
decides, it only nominates a pair for review.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sendonce.domain.prospecting.companies import Company, CompanyStatus, Findings


class Evidence(StrEnum):
    INN = "inn"
    OGRN = "ogrn"
    REDIRECT = "redirect"
    NAME = "name"
    PERSON = "person"


class PairState(StrEnum):
    """``undone`` and ``rejected`` are a person's word: such a pair is never merged again by itself."""

    NOMINATED = "nominated"
    MERGED = "merged"
    UNDONE = "undone"
    REJECTED = "rejected"


PROGRAM = "sendonce"
"""The actor of what was decided here. Any other is a person, whose word stands."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A company that shows a mark."""

    id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Pair:
    """Two companies that are one, or may be. The primary is the one that was found first."""

    primary_id: str
    duplicate_id: str
    evidence: Evidence
    value: str
    state: PairState
    actor: str = PROGRAM

    @property
    def companies(self) -> frozenset[str]:
        return frozenset((self.primary_id, self.duplicate_id))


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A pair with the companies themselves, for a person who reviews it."""

    id: str
    primary: Company
    duplicate: Company
    evidence: Evidence
    value: str
    state: PairState
    actor: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How many pairs a look at a company has merged, nominated for review, and taken apart again."""

    merged: int = 0
    nominated: int = 0
    parted: int = 0

    def __add__(self, other: Judged) -> Judged:
        return Judged(
            self.merged + other.merged, self.nominated + other.nominated, self.parted + other.parted
        )


# A number or a target of redirects that more companies show than these belongs to none of them.
HUB = 3
# A name that more companies have than these is a common word, and not worth a person's time.
MOST_NAMESAKES = 10
# A site that shows more numbers than these lists others: its partners, its customers, a whole register.
MOST_NUMBERS = 3
# «ООО "Насос-Сервис"», «Насос Сервис, АО»: the legal form tells nothing. ТД, НПО and ГК are part of a name.
_FORMS = "ооо оао зао ао пао нао ип тоо чп чуп одо llc ltd inc gmbh jsc ojsc pjsc co"
_LEGAL_FORMS = frozenset(_FORMS.split())
_WORD = re.compile(r"\w+")
_SHORTEST_NAME_KEY = 4


def marks_of(findings: Findings) -> Iterator[tuple[Evidence, str]]:
    """What of a visit's findings may tell that two companies are one, each once."""
    for evidence, numbers in ((Evidence.INN, findings.inn), (Evidence.OGRN, findings.ogrn)):
        own = dict.fromkeys(numbers)
        if len(own) <= MOST_NUMBERS:
            yield from ((evidence, number) for number in own)
    if findings.moved_to:
        yield Evidence.REDIRECT, findings.moved_to
    if name := name_key(findings.name):
        yield Evidence.NAME, name


def name_key(name: str) -> str:
    """A name without what does not tell two companies apart; empty if that leaves next to nothing."""
    folded = unicodedata.normalize("NFKC", name).casefold().replace("ё", "е")
    words = [word for word in _WORD.findall(folded) if word not in _LEGAL_FORMS]
    key = "".join(words)
    return key if len(key) >= _SHORTEST_NAME_KEY else ""


def judge(evidence: Evidence, value: str, bearers: Collection[Bearer], known: Sequence[Pair]) -> list[Pair]:
    """The pairs that a mark makes, as far as they differ from what is ``known`` of these companies.

    All bearers are paired with the first of them. It does not matter in which order they were found: when a
    mark turns out to be a hub's, what it had merged is taken apart and nominated.
    """
    first, *others = sorted(bearers, key=_age)
    if evidence is Evidence.NAME and len(bearers) > MOST_NAMESAKES:
        return []
    decides = evidence is not Evidence.NAME and len(bearers) <= HUB
    state = PairState.MERGED if decides else PairState.NOMINATED
    pairs = [Pair(first.id, other.id, evidence, value, state) for other in others]
    # Made when the first bearer had not shown the mark yet.
    earlier = (pair for pair in known if (pair.evidence, pair.value) == (evidence, value))
    pairs += [replace(pair, state=state) for pair in earlier]
    return [pair for pair in dict.fromkeys(pairs) if _is_news(pair, known)]


def _is_news(pair: Pair, known: Sequence[Pair]) -> bool:
    of_both = [other for other in known if other.companies == pair.companies]
    if any(other.actor != PROGRAM for other in of_both):
        return False
    return pair not in of_both


def _age(company: Bearer | Company) -> tuple[datetime, str]:
    return company.created_at, company.id


@dataclass(frozen=True, slots=True)
class Standing:
    """What a company is among those that are one with it."""

    status: CompanyStatus
    primary_id: str | None
    opt_out: bool
    opt_out_reason: str | None


_AS_DUPLICATE = "duplicate"
_WITH_GROUP = "group"
DERIVED_REASONS = (_AS_DUPLICATE, _WITH_GROUP)
"""Opt-outs that follow from merges; any other is a company's own."""


def standings(companies: Iterable[Company], merged: Iterable[Pair]) -> dict[str, Standing]:
    """What each company should be, by the pairs that are merged.

    Of those that are one, the first found is the primary and the others are its duplicates. If one of them
    opted out for a reason of its own, none is written to.
    """
    found: dict[str, Standing] = {}
    for group in _groups({company.id: company for company in companies}, merged):
        primary, *duplicates = sorted(group, key=_age)
        out = any(_own_reason(company) for company in group)
        was_duplicate = primary.status is CompanyStatus.DUPLICATE
        status = CompanyStatus.NEW if was_duplicate else primary.status
        reason = _own_reason(primary) or (_WITH_GROUP if out else None)
        found[primary.id] = Standing(status, None, out, reason)
        for company in duplicates:
            reason = _own_reason(company) or _AS_DUPLICATE
            found[company.id] = Standing(CompanyStatus.DUPLICATE, primary.id, True, reason)
    return found


def standing_of(company: Company) -> Standing:
    return Standing(company.status, company.primary_id, company.opt_out, company.opt_out_reason)


def _own_reason(company: Company) -> str | None:
    """Why the company itself may not be written to, whatever becomes of its duplicates."""
    derived = company.opt_out_reason in DERIVED_REASONS
    return company.opt_out_reason if company.opt_out and not derived else None


def _groups(companies: Mapping[str, Company], merged: Iterable[Pair]) -> Iterator[list[Company]]:
    """Those that merged pairs connect, directly or through others."""
    group_of = {company_id: [company] for company_id, company in companies.items()}
    for pair in merged:
        one, other = group_of[pair.primary_id], group_of[pair.duplicate_id]
        if one is not other:
            one += other
            group_of.update((company.id, one) for company in other)
    seen: set[int] = set()
    for group in group_of.values():
        if id(group) not in seen:
            seen.add(id(group))
            yield group
