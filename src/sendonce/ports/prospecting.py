"""What prospecting needs from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.prospecting.audits import Alike, Listed
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
from sendonce.domain.prospecting.funnel import OutreachTally
from sendonce.domain.prospecting.kept_contacts import Contact, ContactKind, SeenContact, TakesMail, Trouble
from sendonce.domain.prospecting.letter_requests import ModelAnswer, ModelRequest
from sendonce.domain.prospecting.pipeline import JournalLine, StepName
from sendonce.domain.prospecting.quotas import Limit, WindowUse
from sendonce.domain.prospecting.readings import PageReading, SiteReading
from sendonce.domain.prospecting.search_answers import (
    Fetch,
    ProviderTerms,
    SearchRequest,
    SerpPage,
    SerpResult,
    Submission,
)
from sendonce.domain.prospecting.searches import (
    AddedSearch,
    Batch,
    Budget,
    Change,
    Operation,
    Region,
    SearchQuery,
    SearchTally,
    SearchWish,
)
from sendonce.domain.prospecting.send_slots import Slot
from sendonce.domain.prospecting.sites import Site
from sendonce.domain.prospecting.tasks import NewTask, Task, TaskKind
from sendonce.domain.prospecting.written_letters import (
    LetterStatus,
    NewWrittenLetter,
    ShownStatus,
    WrittenLetter,
)
from sendonce.ports.people import TenantStore


class Sites(Protocol):
    """Knows which company an address on the web belongs to. Asks no network."""

    def read(self, text: str) -> Site: ...


class PageContacts(Protocol):
    """Reads the contacts of a page that was saved or fetched. Asks no network."""

    def read(self, data: bytes, url: str, charset: str | None = None) -> Contacts: ...


class PageReadings(Protocol):
    """Reads a page for a visit: its contacts, its facts, its links. Asks no network."""

    def read(self, data: bytes, url: str, charset: str | None = None) -> PageReading: ...


class Crawler(Protocol):
    """Visits the sites of companies, politely, and only on the public internet."""

    async def visit(self, url: str) -> SiteReading:
        """Never raises for what a site does: the visit tells what was refused, and why."""


class MailDomains(Protocol):
    """Knows which domains take mail. Never raises: silence is an answer of its own."""

    async def look_up(self, domains: Iterable[str]) -> Mapping[str, TakesMail]: ...


class CompanyContacts(Protocol):
    """E-mails and phones of companies, each once for a company, whatever its case."""

    def keep(self, tenant_id: TenantId, company_id: str, seen: Sequence[SeenContact], now: datetime) -> int:
        """Add or merge what a visit saw; how many are new. Asked again it changes only ``last_seen_at``.

        Of each kind one contact is primary: the best of the first visit, as long as it can be used.
        """

    def of(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[Contact]]:
        """The contacts of each company, by kind, the primary one first."""

    def all(
        self, tenant_id: TenantId, *, kind: ContactKind | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Contact]:
        """In the order of their ids, which is that of their first sightings. ``after`` is an id."""

    def count(self, tenant_id: TenantId) -> Mapping[ContactKind, int]: ...

    def give_up(self, tenant_id: TenantId, address_key: str, trouble: Trouble) -> int:
        """Nobody writes to this address any more, at whichever company; another one becomes primary."""


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
        """The company is not written to any more; nor is any that is the same one.

        Their addresses are suppressed at once, so that no letter leaves that is planned already.
        """

    def take_visits(self, worker: str, limit: int, now: datetime, lease: timedelta) -> Sequence[Visit]:
        """Companies of any tenant whose sites this worker may visit now. A dead worker's lease runs out.

        A site from whose visits no worker came back is not given to another one: it is unreachable.
        """

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
        """In the order of their ids. ``after`` is an id. Of those nominated, only what is not one already.

        Two companies are one pair, by the first evidence of it; ``pairs_of`` shows all.
        """

    def count(self, tenant_id: TenantId) -> Mapping[PairState, int]:
        """How many ``pairs`` has of each."""

    def pairs_of(self, tenant_id: TenantId, company_id: str) -> Sequence[KnownPair]: ...

    def decide(self, tenant_id: TenantId, pair_id: str, *, one: bool, actor: str, now: datetime) -> bool:
        """A person's word on a pair that was nominated, by whatever evidence. False if it is not any more."""

    def undo(self, tenant_id: TenantId, company_id: str, actor: str, now: datetime) -> int:
        """Take a company apart from all that it was merged with: from how many pairs."""

    def listed(self, tenant_id: TenantId) -> Sequence[Listed]:
        """The contact list: companies that may be written to, each with its first e-mail address."""

    def alike(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[Alike]]:
        """Others of the contact list that share a mark with these companies."""


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

    def release(self, worker: str, now: datetime) -> int:
        """A dead worker's tasks are due now, as if it had not tried them; how many."""

    def count_open(self, kind: TaskKind) -> int: ...


class RollCall(Protocol):
    """Which processes of the pipeline live on this machine. Those of other machines are not seen."""

    def present(self, worker: str, bury: Callable[[str], None]) -> AbstractContextManager[None]:
        """While it is open, others see this process alive. ``bury`` is told first of each that died here.

        Raises Unavailable where no sign of life can be kept.
        """


class Regions(Protocol):
    """The places that a search can be about."""

    def find(self, text: str) -> Region:
        """By its name or its code. Raises BadInput, which names those that are spelled nearly so."""


class SearchProvider(Protocol):
    """A search engine that answers later: a request is submitted, and its answer fetched once it is there.

    What the network and the provider do wrong are values. Raises BadSetting for unusable credentials.
    """

    @property
    def name(self) -> str: ...

    @property
    def terms(self) -> ProviderTerms: ...

    async def submit(self, request: SearchRequest) -> Submission:
        """Tried once: only the caller's books know what a second try would cost."""

    async def fetch(self, provider_id: str) -> Fetch:
        """The answer to a request, if it is there. Asking is free and changes nothing."""

    def read(self, data: bytes) -> SerpPage:
        """What an answer says. Never raises, whatever is in it."""

    async def close(self) -> None: ...


class Searches(Protocol):
    """Queries and what they found."""

    def add(self, tenant_id: TenantId, wishes: Sequence[SearchWish], now: datetime) -> Sequence[AddedSearch]:
        """In the order of the wishes. A query that is known gets the pages that it lacks.

        Raises NotFound for a tenant or a direction that there is not.
        """

    def all(self, tenant_id: TenantId, limit: int = 100) -> Sequence[SearchQuery]:
        """The newest first."""

    def tally(self, tenant_id: TenantId) -> SearchTally: ...

    def retry(self, tenant_id: TenantId, query_id: str, now: datetime, actor: str) -> int:
        """Queue what has failed, expired or is of unknown fate, by a person's word; how many requests.

        Raises NotFound.
        """

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so."""


class SearchOperations(Protocol):
    """The requests that queries are made of, of all tenants, as workers see them.

    What a worker takes is its own until the lease ends. It is committed before the verb returns, so that
    nothing is done that the books do not know of.
    """

    def begin_submits(
        self, worker: str, most: int, limits: Sequence[Limit], budget: Budget, now: datetime
    ) -> Batch:
        """Requests to submit now: they count against the limits and the budget already."""

    def overdue_submits(self, most: int, now: datetime) -> Sequence[Operation]:
        """Those whose worker has not told the outcome within its lease."""

    def begin_polls(self, worker: str, most: int, limits: Sequence[Limit], now: datetime) -> Batch:
        """Requests whose answer is to be asked for now: they count against the limits already."""

    def begin_ingests(self, worker: str, most: int, now: datetime) -> Sequence[Operation]:
        """Requests whose answer is to be read now."""

    def release(self, worker: str, now: datetime) -> int:
        """End the leases of a dead worker; how many. What it was submitting is overdue then."""

    def settle(self, changes: Sequence[Change], now: datetime, budget: Budget | None = None) -> int:
        """Write down outcomes, each if its turn is still on; how many were. What was not taken returns to
        the budget. An outcome that is told late settles a request of unknown fate.
        """

    def keep_results(self, found: Sequence[tuple[Operation, Sequence[SerpResult]]], now: datetime) -> None:
        """Each once by operation and URL, however often they come."""

    def next_due(self) -> datetime | None:
        """When the next request is to be submitted, polled or read."""


class Quotas(Protocol):
    """What was used of the limits of searching."""

    def windows(self, key: str, limits: Sequence[Limit], now: datetime) -> Sequence[WindowUse]: ...

    def spent(self, budget: Budget) -> float: ...


class Funnels(Protocol):
    """What became of companies and letters, in numbers. Reads history: for people, not for every cycle."""

    def outreach(self, tenant_id: TenantId, month: datetime) -> OutreachTally:
        """``month`` is when the month began."""


class PipelineJournal(Protocol):
    """A line for every cycle of every step."""

    def add(self, line: JournalLine) -> None: ...

    def lines(
        self, *, step: StepName | None = None, before: str = "", limit: int = 1000
    ) -> Sequence[JournalLine]:
        """The newest first. ``before`` is an id."""

    def prune(self, before: datetime, most: int) -> int:
        """Forget the oldest lines from before a moment; how many of at most ``most``."""


class LetterModel(Protocol):
    """A language model that writes letters. It has no tools and sees no secrets."""

    name: str

    def answer(self, request: ModelRequest) -> ModelAnswer:
        """What it says; the same request gets the same answer. Raises Unavailable without one, for whatever
        reason."""


class WrittenLetters(Protocol):
    """Letters to companies: one to a company in a direction, ever."""

    def unwritten(
        self, tenant_id: TenantId, direction_id: str, *, of_any_search: bool, limit: int
    ) -> Sequence[str]:
        """Companies with a contact to write to that have no letter of this direction, nor has a duplicate of
        theirs. They were found by its searches; ``of_any_search`` also by those that name no direction."""

    def add(self, tenant_id: TenantId, letter: NewWrittenLetter, now: datetime) -> str | None:
        """Its id; None where the company has a letter of this direction, or no such contact."""

    def spent_since(self, moment: datetime) -> float:
        """What letters since then have cost, whoever they were for."""

    def get(self, tenant_id: TenantId, letter_id: str) -> WrittenLetter | None: ...

    def of_job(self, tenant_id: TenantId, job_id: str) -> WrittenLetter | None:
        """The letter that a message job sends."""

    def all(
        self,
        tenant_id: TenantId,
        *,
        status: ShownStatus | None = None,
        direction_id: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Sequence[WrittenLetter]:
        """In the order of their ids. ``after`` is an id."""

    def count(self, tenant_id: TenantId, direction_id: str | None = None) -> Mapping[str, int]:
        """By status; planned ones by the state of their job."""

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so."""

    def review(
        self,
        tenant_id: TenantId,
        letter_id: str,
        verdict: LetterStatus,
        actor: str,
        note: str | None = None,
    ) -> bool:
        """A person's word, in the audit log; False once it is planned or skipped."""

    def edit(
        self,
        tenant_id: TenantId,
        letter_id: str,
        subject: str,
        text: str,
        checks: Sequence[Mapping[str, Any]],
        actor: str,
    ) -> bool:
        """A person's words; they wait for approval like any. False once it is planned or skipped."""

    def skip(self, tenant_id: TenantId, letter_id: str, reason: str) -> bool:
        """It will not be sent. False once it has a job."""

    def slots_taken(self, since: datetime, now: datetime) -> Sequence[datetime]:
        """When planned letters left or are to leave, of all tenants: those with a slot after ``since``."""

    def open_dispatch(self, tenant_id: TenantId, direction_id: str) -> DispatchId | None:
        """The dispatch that letters of this direction leave by."""

    def begin_plan(
        self,
        tenant_id: TenantId,
        letter_id: str,
        dispatch_id: DispatchId,
        engine_letter: str,
        slot: Slot,
    ) -> bool:
        """approved → planned, before its job is made: killed in between, it is ``half_planned``.

        False where it is not approved any more, or where others have taken the day's slots meanwhile. A
        letter is skipped where its mailbox, however spelled, or a duplicate of its company has one of this
        direction, and where one of them wants none.
        """

    def scheduled(self, tenant_id: TenantId, direction_id: str) -> Sequence[WrittenLetter]:
        """Letters whose jobs wait for their time. One is unfit also where a duplicate of its company has got
        a letter of this direction, or is getting it, and where a duplicate wants none."""

    def half_planned(self, limit: int) -> Sequence[WrittenLetter]:
        """Planned letters without a job, of all tenants."""

    def link_jobs(self, dispatch_id: DispatchId) -> int:
        """Note the jobs of the letters that leave by this dispatch; how many were not noted yet."""


class ProspectingStore(TenantStore, Protocol):
    """An open database, with all that prospecting keeps."""

    companies: Companies
    contacts: CompanyContacts
    duplicates: Duplicates
    tasks: Tasks
    searches: Searches
    search_operations: SearchOperations
    quotas: Quotas
    pipeline_journal: PipelineJournal
    funnels: Funnels
    written_letters: WrittenLetters
