"""What prospecting needs from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import (
    Company,
    CompanyStatus,
    Findings,
    Found,
    FoundBy,
    FoundSite,
    Visit,
)
from sendonce.domain.prospecting.contacts import Contacts
from sendonce.domain.prospecting.duplicates import Judged, KnownPair, PairState
from sendonce.domain.prospecting.sites import Site
from sendonce.domain.prospecting.tasks import NewTask, Task, TaskKind
from sendonce.ports.people import PeopleStore


class Sites(Protocol):
    """Knows which company an address on the web belongs to. Asks no network."""

    def read(self, text: str) -> Site: ...


class PageContacts(Protocol):
    """Reads the contacts of a page that was saved or fetched. Asks no network."""

    def read(self, data: bytes, url: str, charset: str | None = None) -> Contacts: ...


class Companies(Protocol):
    """Companies that searches found, each with its domains and the searches that found it."""

    def found(self, tenant_id: TenantId, query_id: str, sites: Sequence[FoundSite], now: datetime) -> Found:
        """Make a company for each domain that leads to none yet, and note the search that found it.

        Asked again with the same sites it changes nothing. A new company waits for a visit.
        """

    def get(self, tenant_id: TenantId, company_id: str) -> Company | None: ...

    def at(self, tenant_id: TenantId, domain: str) -> Company | None:
        """The company that a registrable domain leads to: its own row, also where that is a duplicate."""

    def all(
        self, tenant_id: TenantId, *, status: CompanyStatus | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Company]:
        """In the order of their ids, which is the order in which they were found. ``after`` is an id."""

    def count(self, tenant_id: TenantId) -> Mapping[CompanyStatus, int]: ...

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so."""

    def found_by(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[FoundBy]]:
        """The searches that found each of these companies, the first one first."""

    def opt_out(self, tenant_id: TenantId, company_id: str, reason: str, now: datetime) -> None:
        """The company is not written to any more; nor is any that is the same one."""

    def take_visits(self, worker: str, limit: int, now: datetime, lease: timedelta) -> Sequence[Visit]:
        """Companies of any tenant whose sites this worker may visit now. A dead worker's lease runs out."""

    def visited(self, visit: Visit, findings: Findings, now: datetime) -> bool:
        """Keep what a visit found, after its contacts were kept. False if the lease has passed to another."""

    def put_off(self, visit: Visit, until: datetime, reason: str, now: datetime) -> bool:
        """The site could not be visited now. False if the lease has passed to another."""

    def unreachable(self, visit: Visit, reason: str, now: datetime) -> bool:
        """The site cannot be visited at all. False if the lease has passed to another."""


class Duplicates(Protocol):
    """Pairs of companies that are one, or may be. One look at a time for a tenant, whatever the workers."""

    def look_at(self, tenant_id: TenantId, company_id: str, now: datetime) -> Judged:
        """Compare a company with those that show the same marks, and settle who is a duplicate of whom."""

    def pairs(
        self, tenant_id: TenantId, state: PairState, *, after: str = "", limit: int = 1000
    ) -> Sequence[KnownPair]:
        """In the order of their ids. ``after`` is an id."""

    def pairs_of(self, tenant_id: TenantId, company_id: str) -> Sequence[KnownPair]: ...

    def decide(self, tenant_id: TenantId, pair_id: str, *, one: bool, actor: str, now: datetime) -> bool:
        """A person's word on a pair that was nominated. False if it is not nominated any more."""

    def undo(self, tenant_id: TenantId, company_id: str, actor: str, now: datetime) -> int:
        """Take a company apart from all that it was merged with: from how many pairs."""


class Tasks(Protocol):
    """Work of the pipeline that any worker may take. All verbs are conditional on the lease."""

    def add(self, tasks: Sequence[NewTask], now: datetime) -> int:
        """How many of them were not open yet. One that is done or failed is opened again."""

    def take(
        self, kind: TaskKind, worker: str, limit: int, now: datetime, lease: timedelta
    ) -> Sequence[Task]:
        """The lowest priority first, then the longest due. Two workers never hold one task."""

    def done(self, task: Task, now: datetime) -> bool: ...

    def put_off(self, task: Task, until: datetime, reason: str, now: datetime) -> bool: ...

    def fail(self, task: Task, reason: str, now: datetime) -> bool: ...

    def count_open(self, kind: TaskKind) -> int: ...


class ProspectingStore(PeopleStore, Protocol):
    """An open database, with all that prospecting keeps."""

    companies: Companies
    duplicates: Duplicates
    tasks: Tasks
