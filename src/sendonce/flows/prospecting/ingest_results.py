"""Read the answers that were fetched: keep their results, and make companies of those that may be some.

Results and companies are kept once each, and an operation is done after both: killed at any point and run
again, it ends with the same rows. Groups of answers share their statements, and no cost grows with what was
read before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import FoundSite
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.search_answers import SerpDocument, SerpPage, SerpResult
from sendonce.domain.prospecting.search_policy import after_reading, answer_is_elsewhere
from sendonce.domain.prospecting.searches import Change, Operation, OperationState
from sendonce.domain.prospecting.sites import SiteKind
from sendonce.errors import NotFound
from sendonce.flows.prospecting.poll_searches import ARCHIVED_AS
from sendonce.ports.engine import Archive
from sendonce.ports.prospecting import ProspectingStore, SearchProvider, Sites

# Some 2,000 results, which share a transaction.
GROUP = 20
# PostgreSQL's index takes 2,700 bytes, and a Cyrillic letter in a URL has six.
MAX_URL = 2_000
ANSWERS_KEPT = timedelta(days=90)


@dataclass(slots=True)
class _Group:
    """What is read of some answers, before anything is written."""

    results: list[tuple[Operation, list[SerpResult]]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def failed(self) -> int:
        return sum(change.state is not OperationState.DONE for change in self.changes)


def ingest_results(
    store: ProspectingStore,
    provider: SearchProvider,
    archive: Archive,
    sites: Sites,
    worker: str,
    most: int,
) -> StepCount:
    taken = failed = 0
    while taken < most:
        now = store.ledger.now()
        operations = store.search_operations.begin_ingests(worker, min(GROUP, most - taken), now)
        if not operations:
            break
        group = _read(operations, provider, archive, sites, now)
        store.search_operations.keep_results(group.results, now)
        failpoint("ingest-kept")
        for (tenant_id, query_id), found in _by_query(group.results).items():
            store.companies.found(tenant_id, query_id, found, now)
        failpoint("ingest-found")
        store.search_operations.settle(group.changes, now)
        taken += len(operations)
        failed += group.failed()
    if taken:
        archive.prune(ARCHIVED_AS, store.ledger.now() - ANSWERS_KEPT)
    return StepCount(taken, taken - failed, failed)


def _read(
    operations: Sequence[Operation], provider: SearchProvider, archive: Archive, sites: Sites, now: datetime
) -> _Group:
    group = _Group()
    for operation in operations:
        try:
            data = archive.read(operation.answer_place or "")
        except NotFound:
            group.changes.append(answer_is_elsewhere(operation, provider.terms, now))
            continue
        page = provider.read(data)
        results = list(_results(operation, page, provider, sites))
        group.results.append((operation, results))
        group.changes.append(after_reading(operation, page, len(results), now))
    return group


def _results(
    operation: Operation, page: SerpPage, provider: SearchProvider, sites: Sites
) -> Iterable[SerpResult]:
    """Those that lead somewhere, by an address that an index can hold; one of two with the same one."""
    first = operation.page * provider.terms.page_size
    seen: set[str] = set()
    for document in page.documents:
        site = sites.read(document.url)
        if site.url is None or len(site.url) > MAX_URL or site.url in seen:
            continue
        seen.add(site.url)
        yield _result(document, site.url, site.domain, site.kind, first, provider.name)


def _result(
    document: SerpDocument, url: str, domain: str | None, kind: SiteKind, first: int, source: str
) -> SerpResult:
    return SerpResult(
        url=url,
        domain=domain,
        kind=kind.value,
        position=first + document.position,
        title=document.title,
        snippet=document.snippet,
        language=document.language,
        source=source,
    )


def _by_query(
    results: Sequence[tuple[Operation, Sequence[SerpResult]]],
) -> dict[tuple[TenantId, str], list[FoundSite]]:
    """The sites that may be companies', one for each domain: the one that stands highest."""
    found: dict[tuple[TenantId, str], dict[str, FoundSite]] = defaultdict(dict)
    for operation, some in results:
        of_query = found[operation.tenant_id, operation.query_id]
        for result in some:
            if result.kind == SiteKind.COMPANY and result.domain is not None:
                site = FoundSite(result.url, result.domain, result.title, result.language)
                of_query.setdefault(result.domain, site)
    return {key: list(sites.values()) for key, sites in found.items() if sites}
