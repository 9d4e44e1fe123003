"""Visit the sites of companies that wait for it, and keep their contacts, facts and tax numbers.

Each company is taken under a lease and its contacts are kept before the visit is settled, each of them once:
killed at any point and run again, it ends with the same rows.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ParamSpec, TypeVar

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.prospecting.companies import Fact, Findings, Visit
from sendonce.domain.prospecting.kept_contacts import ContactKind, SeenContact, TakesMail, contacts_on
from sendonce.domain.prospecting.readings import FactKind, SiteReading
from sendonce.domain.prospecting.tasks import next_attempt
from sendonce.ports.prospecting import Crawler, MailDomains, ProspectingStore, Sites

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Enriched:
    """What came of the visits."""

    visited: int = 0
    with_contacts: int = 0
    new_contacts: int = 0
    put_off: int = 0
    unreachable: int = 0


@dataclass(frozen=True)
class Enricher:
    """``at_once`` sites are visited at the same time. ``lease`` must outlast the longest visit."""

    store: ProspectingStore
    crawler: Crawler
    sites: Sites
    mail: MailDomains
    worker: str
    at_once: int
    lease: timedelta
    done: Enriched = field(default_factory=Enriched)
    # Of what was read. Threads that wait for each other's writes would keep pages from being read.
    _one_writer: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, limit: int | None = None) -> Enriched:
        """Until nobody waits, or ``limit`` companies were visited."""
        waiting = _Waiting(self._take, limit)
        async with asyncio.TaskGroup() as tasks:

            async def visit_one_after_another() -> None:
                settling = None
                while (visit := await waiting.next()) is not None:
                    reading = await self.crawler.visit(visit.company.website_url)
                    # What was read is written while the next site is visited, and no more than that waits.
                    if settling is not None:
                        await settling
                    settling = tasks.create_task(self._settle(visit, reading))

            for _ in range(self.at_once):
                tasks.create_task(visit_one_after_another())
        return self.done

    async def _settle(self, visit: Visit, reading: SiteReading) -> None:
        seen = contacts_on(reading.pages, self._own_domains(visit, reading))
        if not any(it.kind is ContactKind.EMAIL for it in seen) and await self._put_off(visit, reading):
            return
        if reading.home is None:
            await self._write(self._give_up, visit, reading)
        else:
            await self._write(self._keep, visit, reading, await self._with_mail(seen))

    async def _write(self, change: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._one_writer:
            return await asyncio.to_thread(change, *args, **kwargs)

    def _take(self, most: int) -> Sequence[Visit]:
        """As many as are visited at once: none waits longer for its turn than another visit takes."""
        few = min(most, self.at_once)
        return self.store.companies.take_visits(self.worker, few, self.store.ledger.now(), self.lease)

    async def _put_off(self, visit: Visit, reading: SiteReading) -> bool:
        """Whether the site is visited again another time: it was in trouble, and that may pass."""
        now = await asyncio.to_thread(self.store.ledger.now)
        again = next_attempt(visit.task.attempt, now) if reading.met_passing_trouble else None
        if again is None:
            return False
        put_off = self.store.companies.put_off
        # Counted after the write, here and below, not around it: other visits count meanwhile.
        was_put_off = await self._write(put_off, visit, again, reading.reason, now)
        self.done.put_off += was_put_off
        return True

    def _give_up(self, visit: Visit, reading: SiteReading) -> None:
        now = self.store.ledger.now()
        ended = self.store.companies.unreachable(visit, reading.reason, now)
        self.done.unreachable += ended

    async def _with_mail(self, seen: Sequence[SeenContact]) -> list[SeenContact]:
        domains = {it.value.rpartition("@")[2] for it in seen if it.kind is ContactKind.EMAIL}
        answers = await self.mail.look_up(domains)
        return [replace(it, takes_mail=answers.get(it.value.rpartition("@")[2])) for it in seen]

    def _keep(self, visit: Visit, reading: SiteReading, seen: Sequence[SeenContact]) -> None:
        company, now = visit.company, self.store.ledger.now()
        failpoint("site-read")
        new = self.store.contacts.keep(company.tenant_id, company.id, seen, now)
        self.done.new_contacts += new
        failpoint("contacts-kept")
        findings = self._findings(visit, reading, seen)
        if self.store.companies.visited(visit, findings, now):
            failpoint("visit-settled")
            self.done.visited += 1
            self.done.with_contacts += findings.has_contacts

    def _findings(self, visit: Visit, reading: SiteReading, seen: Sequence[SeenContact]) -> Findings:
        assert reading.home is not None
        facts = first_of_each_kind(fact for page in reading.pages for fact in page.facts)
        stated = {fact.fact: fact.value for fact in facts}
        there = self.sites.read(reading.home).domain
        moved = there is not None and there != visit.company.domain
        return Findings(
            has_contacts=any(it.takes_mail is not TakesMail.NO for it in seen),
            name=stated.get(FactKind.NAME, ""),
            city=stated.get(FactKind.CITY),
            inn=_in_order(inn for page in reading.pages for inn in page.contacts.inn),
            ogrn=_in_order(ogrn for page in reading.pages for ogrn in page.contacts.ogrn),
            facts=facts,
            moved_to=there if moved else None,
            website_url=reading.home if moved else None,
            reason=reading.reason or None,
        )

    def _own_domains(self, visit: Visit, reading: SiteReading) -> frozenset[str]:
        home = self.sites.read(reading.home or "").domain
        return frozenset(filter(None, (visit.company.domain, home)))


class _Waiting:
    """Visits that were taken and not begun. One visitor at a time asks for more, for all of them."""

    def __init__(self, take: Callable[[int], Sequence[Visit]], limit: int | None) -> None:
        self._take = take
        self._left = limit if limit is not None else sys.maxsize
        self._taken: deque[Visit] = deque()
        self._one_at_a_time = asyncio.Lock()

    async def next(self) -> Visit | None:
        async with self._one_at_a_time:
            if not self._taken and self._left:
                more = await asyncio.to_thread(self._take, self._left)
                self._taken += more
                self._left -= len(more)
            return self._taken.popleft() if self._taken else None


def first_of_each_kind(facts: Iterable[Fact]) -> list[Fact]:
    """The home page comes first, and says best what a company does."""
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.fact, fact)
    return list(first.values())


def _in_order(numbers: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(numbers))
