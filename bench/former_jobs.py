"""A ledger with a past: former mailouts with their jobs and events, and dispatches that wait.

The rows are written by the database itself, a million in seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import dispatches, mailouts
from sendonce.adapters.stores.sql.books import Tally
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.events import DeliveryEvent, EventKind
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.flows.engine.finish_dispatches import Finisher
from sendonce.flows.engine.resolve_doubts import weigh_doubts
from sendonce.flows.mailouts.explain_progress import explain_progress
from sendonce.flows.mailouts.steward import Steward

MAILOUTS = 10
GROUP = 20
LIVE = 2_000
QUIET = timedelta(minutes=30)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def mailout_id(number: int) -> str:
    return f"01800000-0000-7000-8000-{number:012x}"


def fill(store: SqlStore, jobs: int, waiting: int) -> None:
    """``jobs`` that were sent long ago, every second with its event and every fifth to another subscriber,
    and ``waiting`` dispatches."""
    each = jobs // MAILOUTS
    for number in range(MAILOUTS):
        _add_mailout(store, number, number * each, (number + 1) * each)
    for number in range(waiting):
        _let_wait(store, number)
    while store.people.shelve():
        pass
    # As autovacuum leaves a table that has grown.
    _execute(store, "ANALYZE" if store.database.is_sqlite else "VACUUM ANALYZE")


def flush(store: SqlStore) -> None:
    """Leave the disk nothing to write: the commits that are timed next would wait for it."""
    _execute(store, "PRAGMA wal_checkpoint(TRUNCATE)" if store.database.is_sqlite else "CHECKPOINT")
    os.sync()


def _execute(store: SqlStore, statement: str) -> None:
    """Outside of a transaction."""
    with closing(store.database.engine.raw_connection()) as connection:
        driver: Any = connection.driver_connection
        if not store.database.is_sqlite:
            driver.autocommit = True
        driver.execute(statement)
        if not store.database.is_sqlite:
            driver.autocommit = False


def _add_mailout(store: SqlStore, number: int, start: int, end: int) -> None:
    with store.database.writing() as tx:
        if store.database.is_sqlite:
            tx.exec_driver_sql(_LARGE_CACHE)
        _add_dispatch(tx, number)
        for statement, share in ((_PLANNED_JOBS, 1), (_JOB_STATES, 1), (_EVENTS, 2), (_SUBSCRIBERS, 5)):
            numbers = {"start": start // share, "end": end // share}
            tx.exec_driver_sql(_statement(store, statement).format(mailout=mailout_id(number), **numbers))
        tally = Tally()
        tally.plan(mailout_id(number), JobState.SENT, end - start)
        tally.plan(mailout_id(number), "delivered", end - start)
        tally.write(store.database, tx)


def _add_dispatch(tx: Connection, number: int) -> None:
    own = {
        "id": mailout_id(number),
        "tenant_id": DEFAULT_TENANT,
        "created_at": LONG_AGO,
        "updated_at": LONG_AGO,
    }
    over = {"kind": "mailout", "owner_id": mailout_id(number), "phase": "over", "result": "sent"}
    tx.execute(dispatches.insert().values(**own, **over, started_at=LONG_AGO, ended_at=LONG_AGO))
    tx.execute(mailouts.insert().values(**own, name="news", source="file", warnings=[], status="ready"))


def _let_wait(store: SqlStore, number: int) -> None:
    """A dispatch whose only letter is due next week."""
    dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("bench", f"waiting {number}"))
    due = store.ledger.now() + timedelta(days=7)
    store.dispatches.plan(dispatch.id, [NewJob(parse_address("waits@example.com"), due_at=due)])
    store.dispatches.run(dispatch.id)


def _statement(store: SqlStore, statement: str) -> str:
    """The series of numbers and the id made of one, as each database writes them."""
    words = _SQLITE if store.database.is_sqlite else _POSTGRES
    for word, meaning in words.items():
        statement = statement.replace(word, meaning)
    return statement


_POSTGRES = {
    "SERIES": "generate_series({start}, {end} - 1) AS s (i)",
    "OWN_ID": "('01800000-0000-7000-9000-' || lpad(to_hex(i::bigint), 12, '0'))::uuid",
    "OWN_KEY": "lpad(to_hex(i::bigint), 32, '0')",
}
_SQLITE = {
    "SERIES": "(WITH RECURSIVE k (i) AS (SELECT {start} UNION ALL SELECT i + 1 FROM k WHERE i < {end} - 1) "
    "SELECT i FROM k)",
    "OWN_ID": "printf('01800000-0000-7000-9000-%012x', i)",
    "OWN_KEY": "printf('%032x', i)",
}
# Without it the pages of the indexes are written and read again for each row. Whoever measures opens anew.
_LARGE_CACHE = "PRAGMA cache_size = -1000000"
_PLANNED_JOBS = """
INSERT INTO planned_jobs (
    id, tenant_id, dispatch_id, recipient, recipient_key, suppression_key, fields)
SELECT OWN_ID, 'default', '{mailout}', 'person' || i || '@example.com', 'person' || i || '@example.com',
    OWN_KEY, '{{}}'
FROM SERIES
"""
_JOB_STATES = """
INSERT INTO job_states (
    id, dispatch_id, state, attempt,
    due_at, claimed_at, settled_at, send_event_at, delivered_at, message_id, accepted_attempt)
SELECT OWN_ID, '{mailout}', 'sent', 1, '2026-01-01 00:00:00.000000',
    '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000',
    '2026-01-01 00:00:00.000000', 'm' || i, 1
FROM SERIES
"""
_EVENTS = """
INSERT INTO delivery_events (
    id, event_id, natural_key, kind, verdict, job_id, attempt, message_id, recipient,
    occurred_at, received_at, raw)
SELECT OWN_ID, 'e' || i, 'n' || i, 'delivered', 'applied', OWN_ID, 1, 'm' || i,
    'person' || i || '@example.com', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000', '{{}}'
FROM SERIES
"""
# Every tenth has a mailbox that can be written in other ways.
_SUBSCRIBERS = """
INSERT INTO subscribers (
    id, tenant_id, email, address_key, suppression_key, attributes, status, created_at, updated_at)
SELECT OWN_ID, 'default', address, address, OWN_KEY, '{{}}', 'active',
    '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000'
FROM (
    SELECT i,
        'per.son' || i || CASE i - i / 10 * 10 WHEN 0 THEN '@gmail.com' ELSE '@example.com' END AS address
    FROM SERIES
) AS people
"""


class Present:
    """A dispatch at work beside that past, a letter in doubt, and one that is dead."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self._numbers = count()
        self._worker = str(uuid4())
        record = (self._worker, "w", "ses", "domain", "file", 1, "boot", "host", 1)
        store.workers.register(WorkerRecord(*record, route="ses/here/events"))
        self._claims = 0
        self._in_hand: tuple[ClaimedJob, ...] = ()
        dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("bench", "present"))
        people = [parse_address(f"now{number}@example.com") for number in range(LIVE)]
        store.dispatches.plan(dispatch.id, [NewJob(person) for person in people])
        store.dispatches.run(dispatch.id)
        self.turn()
        doubted, dead, *self._in_hand = self._in_hand
        ends = [
            Settlement(doubted.id, 1, InDoubt("the reply was lost"), death_proof="the worker's own word"),
            Settlement(dead.id, 1, Deferred("421", "not now"), exhausted=True),
        ]
        store.ledger.turn(ends, None)
        self._sent = self._in_hand[0]
        self._person = parse_address(self._sent.recipient)
        self.turn()
        self.turn()

    def turn(self) -> None:
        """One group settled and the next one claimed."""
        accepted = Accepted("provider")
        settlements = [
            Settlement(j.id, j.attempt, accepted, dispatch_id=j.dispatch_id) for j in self._in_hand
        ]
        claim = ClaimRequest(self._worker, str(uuid4()), GROUP, claims=self._claims)
        turn = self.store.ledger.turn(settlements, claim)
        assert len(turn.claimed) == GROUP
        self._in_hand, self._claims = turn.claimed, turn.claims

    def steward(self) -> None:
        """A steward's round, with the look that a finisher takes now and then."""
        Steward(self.store, "bench", lambda: False, lambda: None).run()
        Finisher(self.store, lambda: False, 3600.0).run()

    def resolver(self) -> None:
        self.store.ledger.oldest_claim()
        (doubt,) = self.store.ledger.doubts(200, transport="ses")
        self.store.ledger.surroundings(doubt)

    def metrics(self) -> None:
        assert self.store.jobs.count_by_state()
        assert self.store.jobs.oldest_due() is not None

    def status(self) -> None:
        mailout = self.store.mailouts.get(DEFAULT_TENANT, mailout_id(0))
        assert mailout is not None
        books = self.store.jobs.books(mailout.id)
        assert books.sent
        explain_progress(self.store, mailout, books, lambda _: "")

    def mailouts(self) -> None:
        assert self.store.mailouts.all(DEFAULT_TENANT)

    def doubts(self) -> None:
        assert len(self.store.jobs.list(states=[JobState.IN_DOUBT], limit=1000)) == 1
        assert len(weigh_doubts(self.store, QUIET, limit=100)) == 1

    def dead(self) -> None:
        assert len(self.store.jobs.list(states=[JobState.DEAD], limit=1000)) == 1

    def sent_of_a_mailout(self) -> None:
        assert len(self.store.jobs.list(states=[JobState.SENT], dispatch_id=mailout_id(0), limit=100)) == 100

    def show(self) -> None:
        assert len(self.store.people.file_of(self._person).letters) == 1

    def erase(self) -> None:
        self.store.people.erase(parse_address("nobody@example.com"), "bench")

    def event(self) -> None:
        number = next(self._numbers)
        told = (f"event {number}", f"fact {number}", EventKind.DELIVERED, LONG_AGO, "provider")
        self.store.events.record(DeliveryEvent(*told, self._sent.id, 1, raw={"number": number}))


ASKED: dict[str, Callable[[Present], None]] = {
    "a turn": Present.turn,
    "a steward's round": Present.steward,
    "the resolver's look": Present.resolver,
    "/metrics": Present.metrics,
    "mailout status": Present.status,
    "mailout list": Present.mailouts,
    "jobs in-doubt": Present.doubts,
    "jobs dead": Present.dead,
    "jobs list --state sent --mailout": Present.sent_of_a_mailout,
    "show": Present.show,
    "erase": Present.erase,
    "event intake": Present.event,
}
