"""The list: how many people it has, and whether it is one that mailbox providers will put up with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.doctor.word_lists import DISPOSABLE
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import Check, count_of, listed, ok, stop, warning
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.mailboxes import ROLES
from sendonce.domain.people.subscribers import DEFAULT_TENANT, Subscriber, SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_fold, suppression_key
from sendonce.domain.people.suppressions import EVERYBODY
from sendonce.ports.store import Store

MOST_PEOPLE = 20_000
_MOST_SUPPRESSIONS = 100_000
_READ_FOR = 4.0
_PAGE = 1000

_ROLES_WARN = 0.05
_DISPOSABLE_WARN = 0.01
_SUPPRESSED_WARN = 0.2
# Amazon puts an account under review at 5 % of bounces, and pauses it at 10 %.
_BOUNCED_WARN = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """``people`` are the first active subscribers; ``whole`` tells whether there are no others."""

    counts: dict[str, int]
    people: list[Subscriber] = field(default_factory=list)
    whole: bool = True
    suppressed: int | None = None

    @property
    def active(self) -> int:
        return self.counts.get(SubscriberStatus.ACTIVE, 0)

    @property
    def of_whom(self) -> str:
        everybody = count_of(len(self.people), "active subscriber")
        return f"of {everybody}" if self.whole else f"of the first {everybody}"


class Audience:
    """The tenant's subscribers, read once for all probes, within bounds of number and time."""

    def __init__(self, door: StoreDoor, tenant_id: TenantId = DEFAULT_TENANT) -> None:
        self._door = door
        self._tenant = tenant_id
        self._reading: asyncio.Task[Sample] | None = None

    async def sample(self) -> Sample | None:
        store = await self._door.get_or_none()
        if store is None:
            return None
        if self._reading is None:
            self._reading = asyncio.ensure_future(in_own_thread(lambda: _read(store, self._tenant)))
        return await asyncio.shield(self._reading)


async def active_subscribers(door: StoreDoor, tenant_id: TenantId = DEFAULT_TENANT) -> int:
    store = await door.get_or_none()
    if store is None:
        return 0
    counts = await in_own_thread(lambda: store.subscribers.count(tenant_id))
    return counts.get(SubscriberStatus.ACTIVE, 0)


def _read(store: Store, tenant_id: TenantId) -> Sample:
    ends = time.monotonic() + _READ_FOR
    people: list[Subscriber] = []
    after, whole = "", False
    while not whole and len(people) < MOST_PEOPLE and time.monotonic() < ends:
        page = store.subscribers.all(tenant_id, status=SubscriberStatus.ACTIVE, after=after, limit=_PAGE)
        people += page
        whole = len(page) < _PAGE
        after = parse_address(page[-1].email).key if page else ""
    suppressed = _suppressed(store, tenant_id, people, ends)
    return Sample(store.subscribers.count(tenant_id), people, whole, suppressed)


def _suppressed(store: Store, tenant_id: TenantId, people: list[Subscriber], ends: float) -> int | None:
    """How many of them are suppressed all the same; None where the suppression list is too long to read."""
    denied: set[str] = set()
    after, whole = ("", ""), False
    while not whole:
        if len(denied) >= _MOST_SUPPRESSIONS or time.monotonic() >= ends:
            return None
        page = store.suppressions.all(after=after, limit=_PAGE)
        denied.update(item.key for item in page if item.scope in (tenant_id, EVERYBODY))
        whole = len(page) < _PAGE
        after = (page[-1].key, page[-1].scope) if page else after
    pepper = store.ledger.identity().pepper
    return sum(suppression_key(parse_address(person.email).key, pepper) in denied for person in people)


class AudienceProbe:
    """``needed``: a mailout is about to go to the list, so an empty one is a stop."""

    name = "list.audience"

    def __init__(self, audience: Audience, *, needed: bool) -> None:
        self._audience = audience
        self._needed = needed

    async def examine(self) -> Sequence[Check]:
        sample = await self._audience.sample()
        if sample is None:
            return []
        if not sample.active:
            return [self._nobody(sample)]
        return [
            ok(
                self.name,
                f"{count_of(sample.active, 'active subscriber is', 'active subscribers are')} on the list.",
            ),
            _roles(sample),
            _disposable(sample),
            _duplicates(sample),
            *_suppressed_check(sample),
            _bounced(sample),
        ]

    def _nobody(self, sample: Sample) -> Check:
        what = f"There is no active subscriber (of {sum(sample.counts.values())} in all): nobody to write to."
        fix = "Import a list: sendonce subscribers import list.csv"
        return stop(self.name, what, fix) if self._needed else warning(self.name, what, fix)


def _roles(sample: Sample) -> Check:
    found = [it.email for it in sample.people if it.email.partition("@")[0].lower() in ROLES]
    what = f"{count_of(len(found), 'role address', 'role addresses')} {sample.of_whom}."
    if len(found) <= _ROLES_WARN * len(sample.people):
        return ok("list.roles", what)
    fix = "Offices complain more often than people do. Keep those who asked for it themselves."
    return warning("list.roles", f"{what} E.g., {listed(found, 3)}.", fix)


def _disposable(sample: Sample) -> Check:
    found = [it.email for it in sample.people if it.email.rpartition("@")[2].lower() in DISPOSABLE]
    what = f"{count_of(len(found), 'disposable address', 'disposable addresses')} {sample.of_whom}."
    if len(found) <= _DISPOSABLE_WARN * len(sample.people):
        return ok("list.disposable", what)
    fix = "Nobody reads them, and some are traps: leave them out, and confirm new subscriptions by e-mail."
    return warning("list.disposable", f"{what} E.g., {listed(found, 3)}.", fix)


def _duplicates(sample: Sample) -> Check:
    """Two spellings of one mailbox are two recipients to the ledger: only suppression sees through them."""
    seen: dict[str, str] = {}
    doubles = []
    for person in sample.people:
        first = seen.setdefault(suppression_fold(parse_address(person.email).key), person.email)
        if first != person.email:
            doubles.append(f"{first} = {person.email}")
    what = f"{count_of(len(doubles), 'address', 'addresses')} {sample.of_whom} seem to be a second spelling."
    if not doubles:
        return ok("list.duplicates", f"No mailbox comes in two spellings {sample.of_whom}.")
    fix = "Each spelling gets a letter. Suppress or leave out the one that the person does not use."
    return warning("list.duplicates", f"{what} E.g., {listed(doubles, 3)}.", fix)


def _suppressed_check(sample: Sample) -> list[Check]:
    if sample.suppressed is None:
        return []
    what = f"{count_of(sample.suppressed, 'suppressed address', 'suppressed addresses')} {sample.of_whom}"
    if sample.suppressed <= _SUPPRESSED_WARN * len(sample.people):
        return [ok("list.suppressed", f"{what}: they are skipped.")]
    fix = (
        "They are skipped, but it looks like an old list. Make sure that the others still want your letters."
    )
    return [warning("list.suppressed", f"{what}.", fix)]


def _bounced(sample: Sample) -> Check:
    bounced, everybody = sample.counts.get(SubscriberStatus.BOUNCED, 0), sum(sample.counts.values())
    what = f"{count_of(bounced, 'subscriber has', 'subscribers have')} bounced, of {everybody} in all."
    if bounced <= _BOUNCED_WARN * everybody:
        return ok("list.bounced", what)
    fix = (
        "They are skipped, but the list is stale: Amazon reviews an account at 5 % of bounces. Send in parts."
    )
    return warning("list.bounced", what, fix)
