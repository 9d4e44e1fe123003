"""Fair share: a tenant with 100,000 due letters beside others, at one sender, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from bench.findings import Finding
from bench.processes import BenchFailed
from bench.stage import Stage
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.store import SqlStore, open_store, upgrade_schema
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.jobs import ClaimRequest
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.domain.people.directions import tenant_named
from sendonce.flows.people.add_client import add_tenant, set_terms

ROWS = ("shares",)
_CHUNK = 5_000
_FEW = 10
LARGE, SMALL, HEAVY = map(tenant_named, ("large", "small", "heavy"))


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    many = stage.size(100_000, 20_000)
    urls = {
        "SQLite": f"sqlite:///{stage.folder / 'shares.db'}",
        "PostgreSQL": stage.postgres.new_database("shares").replace("postgresql:", "postgresql+psycopg:", 1),
    }
    return [finding for name, url in urls.items() for finding in _measure(stage, name, url, many)]


def _measure(stage: Stage, name: str, url: str, many: int) -> list[Finding]:
    upgrade_schema(Database(url))
    store = open_store(url)
    try:
        for tenant, weight in ((LARGE, 1), (SMALL, 1), (HEAVY, 3)):
            add_tenant(store, tenant, tenant, "bench")
            set_terms(store, tenant, weight, None, "bench")
        owners = {_dispatch(store, LARGE, many): LARGE}
        owners[_dispatch(store, SMALL, _FEW)] = SMALL
        waited = _claims(store, owners, 4 * _FEW)
        if waited.count(SMALL) != _FEW:
            raise BenchFailed(f"{waited.count(SMALL)} of {_FEW} letters of the small tenant were claimed")
        last = len(waited) - waited[::-1].index(SMALL)
        owners[_dispatch(store, HEAVY, many)] = HEAVY
        shared = _claims(store, owners, stage.size(4_000, 400))
    finally:
        store.close()
    off = abs(shared.count(HEAVY) / len(shared) - 0.75) / 0.75
    stage.say(f"  {name}: {_FEW} letters within {last} slots; weights 3 and 1 are off by {off:.1%}")
    return [
        Finding(
            "shares",
            f"slots until {_FEW} letters of a tenant are claimed, {name}",
            f"beside {many:,} due ones of another",
            last,
            "slots",
            2 * _FEW + 2,
            at_most=True,
        ),
        Finding(
            "shares",
            f"how far shares are off, {name}",
            f"weights 3 and 1, the first {len(shared):,} claims",
            100 * off,
            "%",
            5.0,
            at_most=True,
        ),
    ]


def _dispatch(store: SqlStore, tenant: TenantId, jobs: int) -> str:
    dispatch = store.dispatches.open(tenant, NewDispatch("bench", tenant))
    for start in range(0, jobs, _CHUNK):
        people = range(start, min(start + _CHUNK, jobs))
        new = [NewJob(parse_address(f"p{number}@example.com")) for number in people]
        store.dispatches.plan(dispatch.id, new)
    store.dispatches.run(dispatch.id)
    return dispatch.id


def _claims(store: SqlStore, owners: dict[str, TenantId], slots: int) -> list[TenantId]:
    """Whose letter each slot went to, one letter a claim."""
    worker, claims = str(uuid4()), 0
    store.workers.register(WorkerRecord(worker, "w", "smtp", "domain", worker, 1, "boot", "host", 1))
    served: list[TenantId] = []
    for _ in range(slots):
        turn = store.ledger.turn((), ClaimRequest(worker, str(uuid4()), 1, claims, sender="smtp/bench"))
        claims = turn.claims
        served += [owners[job.dispatch_id] for job in turn.claimed]
    return served
