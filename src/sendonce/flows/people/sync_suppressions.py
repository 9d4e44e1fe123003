"""Keep our suppressions and the lists of providers in step, both ways."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.provider_lists import (
    LIFTED,
    OVERLAP,
    SETTLED_AFTER,
    ListedAddress,
    SyncReport,
    is_news_to,
    note_of,
)
from sendonce.domain.people.suppressions import NewSuppression, Suppression
from sendonce.errors import BadInput
from sendonce.flows.people.suppress import allow_again
from sendonce.ports.people import ProviderList, SyncStore

log = logging.getLogger(__name__)

LEASE = "suppressions/sync"
_AT_ONCE = 500
_LASTING = timedelta(minutes=30)


def sync_in_turn(store: SyncStore, providers: Sequence[ProviderList], scope: TenantId) -> None:
    """One round by one process at a time. Raises Unavailable; the next round goes on where this one ended."""
    holder = uuid4().hex
    if not store.leases.take(LEASE, holder, _LASTING):
        return
    try:
        for report in sync_suppressions(store, providers, scope):
            if report.taken or report.told or report.lifted:
                facts = {"list": report.provider, "taken": report.taken, "told": report.told}
                log.info("suppressions synchronised", extra={"fields": {**facts, "lifted": report.lifted}})
    finally:
        store.leases.leave(LEASE, holder)


def sync_suppressions(
    store: SyncStore, providers: Sequence[ProviderList], scope: TenantId, *, dry_run: bool = False
) -> list[SyncReport]:
    """``scope`` is whose suppressions their addresses become. A dry run asks and changes nothing."""
    reports = [SyncReport(provider.name) for provider in providers]
    pairs = list(zip(providers, reports, strict=True))
    _lift(store, pairs, dry_run=dry_run)  # first, or else what was just allowed again would come back
    for provider, report in pairs:
        _take_theirs(store, provider, scope, report, dry_run=dry_run)
        _tell_ours(store, provider, report, dry_run=dry_run)
    return reports


def allow_again_everywhere(
    store: SyncStore, tenant_id: TenantId, scope: TenantId, address: Address, actor: str
) -> Suppression | None:
    """The same as ``allow_again``; if nothing else denies the address, providers are to forget it, too."""
    left = allow_again(store.suppressions, tenant_id, scope, address, actor)
    if left is None:
        store.outbox.put(LIFTED, {"address": address.text})
    return left


def _lift(store: SyncStore, pairs: Sequence[tuple[ProviderList, SyncReport]], *, dry_run: bool) -> None:
    for entry_id, body in store.outbox.due(LIFTED, _AT_ONCE):
        for provider, report in pairs:
            if not dry_run:
                provider.forget(body["address"])
            report.lifted += 1
        if not dry_run:
            store.outbox.done(entry_id)


def _take_theirs(
    store: SyncStore, provider: ProviderList, scope: TenantId, report: SyncReport, *, dry_run: bool
) -> None:
    began = store.ledger.now()
    cursor = store.suppression_syncs.cursor(provider.name)
    for page in provider.pages(cursor.theirs_from):
        found = [new for item in page if (new := _as_new(item, scope, provider.name, report)) is not None]
        report.read += len(page)
        # What a tenant of ours knows came from there: it must not come back for every other tenant.
        unknown = store.suppression_syncs.unknown([new.address for new in found])
        news = [new for new in found if new.address.key in unknown]
        report.taken += len(news)
        if not dry_run:
            store.suppressions.add_all(news)
    if not dry_run:
        store.suppression_syncs.move(provider.name, cursor._replace(theirs_from=began - OVERLAP))


def _as_new(item: ListedAddress, scope: TenantId, provider: str, report: SyncReport) -> NewSuppression | None:
    try:
        return NewSuppression(scope, parse_address(item.address), item.reason, note_of(provider))
    except BadInput:
        report.unreadable += 1
        return None


def _tell_ours(store: SyncStore, provider: ProviderList, report: SyncReport, *, dry_run: bool) -> None:
    cursor = store.suppression_syncs.cursor(provider.name)
    settled_before = store.ledger.now() - SETTLED_AFTER
    while page := store.suppression_syncs.told_next(cursor, settled_before, _AT_ONCE):
        for suppression in page:
            if is_news_to(provider.name, suppression):
                assert suppression.address is not None
                if not dry_run:
                    provider.add(ListedAddress(suppression.address, suppression.reason))
                report.told += 1
        cursor = cursor._replace(ours_from=page[-1].created_at, ours_key=page[-1].key)
        if not dry_run:
            store.suppression_syncs.move(provider.name, cursor)
