"""What no port shows: the outbox, the audit log, ended attempts; and a way to let time pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count

import sqlalchemy as sa

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.schema import (
    attempts,
    audit_log,
    canaries,
    delivery_events,
    dispatch_books,
    dispatches,
    event_receivers,
    job_states,
    ledger,
    mailouts,
    outbox,
    permits,
    sign_ups,
    suppressions,
    tenants,
    workers,
)
from sendonce.adapters.stores.sql.books import COLUMNS, MARKS, STATES, WHOLE_LEDGER, counted
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.jobs import JobState
from sendonce.ports.store import Store
from tests.conformance.weak_store import WeakStore


def reports(store: Store) -> list[tuple[str, str]]:
    """The mailouts whose report is in the outbox, with the status that it tells."""
    if isinstance(store, MemoryStore):
        bodies = [body for topic, body in store.state.outbox if topic == "mailout.ended"]
    else:
        query = sa.select(outbox.c.body).where(outbox.c.topic == "mailout.ended").order_by(outbox.c.id)
        bodies = [row.body for row in _read(store, query)]
    return [(body["dispatch_id"], body["result"]) for body in bodies]


def audit(store: Store) -> list[tuple[str, str, str]]:
    """Who did what to what."""
    if isinstance(store, MemoryStore):
        return store.state.audit
    log = audit_log.c
    return [
        tuple(row) for row in _read(store, sa.select(log.actor, log.action, log.subject).order_by(log.at))
    ]


def make_tenant(store: Store, tenant_id: str, weight: int = 1) -> None:
    """Another tenant beside the default one."""
    if isinstance(store, SqlStore):
        with store.database.writing() as tx:
            now = store.database.now(tx)
            own = {"id": tenant_id, "name": tenant_id, "weight": weight}
            tx.execute(tenants.insert().values(**own, created_at=now))
    else:
        store.state.tenant_weights[tenant_id] = weight


def ended_attempts(store: Store, job_id: str) -> list[tuple[int, str]]:
    """The attempts that did not end the job, and how they ended."""
    if isinstance(store, MemoryStore):
        return sorted((a.attempt, a.outcome) for a in store.state.attempts if a.job_id == job_id)
    a = attempts.c
    query = sa.select(a.attempt, a.outcome).where(a.job_id == job_id).order_by(a.attempt)
    return [tuple(row) for row in _read(store, query)]


def kept_verdicts(store: Store) -> dict[str, str]:
    """The verdict in the row of each event; the store in memory keeps none."""
    if isinstance(store, MemoryStore):
        return {}
    e = delivery_events.c
    return {
        str(event_id): str(verdict) for event_id, verdict in _read(store, sa.select(e.event_id, e.verdict))
    }


def pass_time(store: Store, seconds: float) -> None:
    """Let everything grow older: leases, claims, doubts, events, receivers, canaries."""
    gone = timedelta(seconds=seconds)
    if isinstance(store, MemoryStore):
        clock = store.state.clock
        store.state.clock = lambda: clock() + gone
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        for table, moments in _AGEING.items():
            for row in tx.execute(sa.select(table)).all():
                own = sa.and_(*(key == getattr(row, key.name) for key in table.primary_key))
                known = {name: getattr(row, name) for name in moments}
                older = {name: moment - gone for name, moment in known.items() if moment is not None}
                if older:
                    tx.execute(table.update().where(own).values(older))


_AGEING: dict[sa.Table, tuple[str, ...]] = {
    permits: ("expires_at",),
    workers: ("seen_at",),
    mailouts: ("send_at",),
    dispatches: ("planner_until", "due_from"),
    suppressions: ("created_at",),
    sign_ups: ("requested_at",),
    job_states: ("due_at", "claimed_at", "death_proof_at"),
    delivery_events: ("received_at",),
    event_receivers: ("since", "seen"),
    canaries: ("sent_at", "event_at"),
}


def go_on_listening(store: Store, receiver: str) -> None:
    """The receiver has noted all the while, every few seconds, that it takes events."""
    if isinstance(store, MemoryStore):
        rows = store.state.receivers[receiver]
        rows[-1] = replace(rows[-1], seen=store.state.clock())
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        row = event_receivers.c
        last = sa.select(sa.func.max(row.since)).where(row.receiver == receiver).scalar_subquery()
        own = (row.receiver == receiver) & (row.since == last)
        assert tx.execute(event_receivers.update().where(own).values(seen=store.database.now(tx))).rowcount


def put_off(store: Store, job_id: str, wait: timedelta) -> None:
    """As if the job had got its due time from a clock that is so much ahead."""
    due = store.ledger.now() + wait
    if isinstance(store, MemoryStore):
        store.state.jobs[job_id].due_at = due
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        tx.execute(job_states.update().where(job_states.c.id == job_id).values(due_at=due))
        tx.execute(dispatches.update().values(due_from=dispatches.c.created_at))


def check_counters(store: Store) -> None:
    """The counters are what the rows of the jobs say, for every dispatch and for the whole ledger."""
    if not isinstance(store, SqlStore):
        return
    with store.database.reading() as tx:
        kept, counted_rows = tx.execute(_KEPT).all(), tx.execute(_COUNTED).all()
    books = {dispatch_id: tuple(map(int, counts)) for dispatch_id, *counts in kept if any(counts)}
    total = books.pop(WHOLE_LEDGER, (0,) * len(COLUMNS))
    rows = {dispatch_id: tuple(counts) for dispatch_id, *counts in counted_rows}
    assert books == rows
    assert total == tuple(map(sum, zip(*rows.values(), strict=True))) or not rows


def recount(store: Store) -> None:
    """For a test that wrote the rows of jobs by itself."""
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx, counted(store.database, tx) as tally:
        tx.execute(dispatch_books.delete())
        for dispatch_id, *counts in tx.execute(_COUNTED).all():
            for column, count in zip(COLUMNS, counts, strict=True):
                tally.plan(dispatch_id, column, count)


_B, _J = dispatch_books.c, job_states.c
_KEPT = sa.select(_B.dispatch_id, *(sa.func.sum(_B[name]) for name in COLUMNS)).group_by(_B.dispatch_id)
_COUNTED = sa.select(
    _J.dispatch_id,
    *(sa.func.count(sa.case((_J.state == state, 1))) for state in STATES),
    *(sa.func.count(_J[mark]) for mark in MARKS),
).group_by(_J.dispatch_id)


def forget_attempts(store: Store) -> None:
    """What a restore does: every job is as it was before it was claimed."""
    if isinstance(store, MemoryStore):
        for row in store.state.jobs.values():
            row.state, row.attempt, row.worker_id = JobState.SCHEDULED, 0, None
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        tx.execute(job_states.update().values(state="scheduled", attempt=0, worker_id=None))
        tx.execute(dispatches.update().values(due_from=dispatches.c.created_at))
    recount(store)


def grow_old(store: Store, age: timedelta) -> None:
    """As if the ledger had been made so long ago."""
    if isinstance(store, MemoryStore):
        store.state.since -= age
        return
    assert isinstance(store, SqlStore)
    made = store.ledger.identity().since
    with store.database.writing() as tx:
        tx.execute(ledger.update().values(created_at=made - age))


def steady_clock(store: Store) -> None:
    """Give the store in memory a clock that ticks at each look, so that its ids rise from call to call."""
    if isinstance(store, MemoryStore):
        ticks = count()
        begin = store.state.clock()
        store.state.clock = lambda: begin + timedelta(milliseconds=2 * next(ticks))


def let_a_moment_pass(store: Store) -> None:
    """Listings that lag catch up."""
    if isinstance(store, WeakStore):
        store.items.catch_up()


def _read(store: Store, query: sa.Select[tuple[object, ...]]) -> list[sa.Row[tuple[object, ...]]]:
    assert isinstance(store, SqlStore)
    with store.database.reading() as tx:
        return list(tx.execute(query))
