"""Delivery events on SQL: the event's row and its effect share a transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    canaries,
    delivery_events,
    duty_cursors,
    ledger,
    unreadable_events,
)
from sendonce.adapters.stores.sql.books import Tally, counted
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.event_rows import EventRow, event_rows_of
from sendonce.adapters.stores.sql.peppers import pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.adapters.stores.sql.soft_bounces import SoftBounces
from sendonce.adapters.stores.sql.suppressions import mark_subscriber, suppress
from sendonce.domain.engine.events import (
    MOST_UNREADABLE,
    ArrivingEvent,
    BounceType,
    DeliveryEvent,
    EventKind,
    EventVerdict,
    RawEvent,
    UnreadableEvent,
)
from sendonce.domain.engine.evidence import TrackedJob, changes_by_event, judge, never_issued
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.jobs import BEFORE_ALL
from sendonce.domain.people.consequences import Consequence, Denial, SoftNews, consequence_of
from sendonce.domain.people.privacy import erased_name, is_erased
from sendonce.domain.people.suppression_keys import suppression_key

E = delivery_events.c
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
U = unreadable_events.c
_ARCHIVING = "events.archived"


@dataclass(frozen=True, slots=True)
class _News:
    """An event at its position in the group, the key under which it is kept, and the job that it names."""

    position: int
    event: DeliveryEvent
    natural_key: str
    job_id: str | None
    consequence: Consequence | None

    @property
    def concerns(self) -> set[str]:
        return {address.key for address in self.consequence.addresses} if self.consequence else set()


class _Overtaken(Exception):
    """Somebody else has recorded one of the events since we looked."""


class SqlEvents:
    def __init__(self, database: Database, soft_bounce_limit: int) -> None:
        self._db = database
        self._rows = event_rows_of(database)
        self._soft_bounces = SoftBounces(database, soft_bounce_limit)

    def record(self, event: DeliveryEvent) -> EventVerdict:
        (verdict,) = self._record_together([event])
        assert verdict is not None
        return verdict

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        verdicts = self._record_together(events)
        return [verdict or self.record(event) for event, verdict in zip(events, verdicts, strict=True)]

    def _record_together(self, events: Sequence[DeliveryEvent]) -> list[EventVerdict | None]:
        """One transaction. None for an event whose job somebody else has locked, unless it came alone."""
        while True:
            try:
                with self._db.writing(made_durable=False) as tx:
                    return self._record_in(tx, events)
            except _Overtaken:
                continue  # it is committed now, so it will be seen

    def _record_in(self, tx: Connection, events: Sequence[DeliveryEvent]) -> list[EventVerdict | None]:
        with counted(self._db, tx) as tally:
            return self._record_counted(tx, tally, events)

    def _record_counted(
        self, tx: Connection, tally: Tally, events: Sequence[DeliveryEvent]
    ) -> list[EventVerdict | None]:
        now = self._rows.open(tx)
        found, locked = self._rows.lock_jobs(tx, {job_id for e in events if (job_id := _names_job(e))})
        jobs = {job.id: job for job in found}
        verdicts: list[EventVerdict | None] = [
            None if event.job_id in locked else EventVerdict.DUPLICATE_EVENT for event in events
        ]
        free = {n: event for n, event in enumerate(events) if event.job_id not in locked}
        for run in _runs(self._news(tx, free, jobs)):
            for news, verdict in zip(run, self._record_run(tx, tally, run, jobs, now), strict=True):
                verdicts[news.position] = verdict
        return verdicts

    def _news(
        self, tx: Connection, events: Mapping[int, DeliveryEvent], jobs: Mapping[str, TrackedJob]
    ) -> list[_News]:
        """What is not here yet, under its id or its natural key; of copies the first."""
        told = []
        for position, event in events.items():
            job = jobs.get(_names_job(event) or "")
            natural_key = event.natural_key
            if job is not None and is_erased(job.recipient):
                natural_key = erased_name(natural_key, pepper_in_force(self._db, tx))
            consequence = consequence_of(event, job)
            told.append(_News(position, event, natural_key, job.id if job else None, consequence))
        ids, keys = [news.event.event_id for news in told], [news.natural_key for news in told]
        known = self._rows.known(tx, ids, keys)
        return [news for news in told if known.add(news.event.event_id, news.natural_key)]

    def _record_run(
        self, tx: Connection, tally: Tally, run: Sequence[_News], jobs: dict[str, TrackedJob], now: datetime
    ) -> list[EventVerdict]:
        """Keep the events word for word, and write what they change in jobs and for people."""
        rows: list[EventRow] = []
        verdicts: list[EventVerdict] = []
        changed: dict[str, TrackedJob] = {}
        for own_id, news in zip(time_ordered_ids(len(run), _milliseconds(now)), run, strict=True):
            job = jobs.get(news.job_id or "")
            verdict = judge(news.event, job)
            verdicts.append(verdict)
            rows.append(_row(own_id, news, verdict, job, now))
            if job is not None and verdict != EventVerdict.QUARANTINED:
                changes = changes_by_event(news.event, job, now)
                tally.change(job, changes)
                jobs[job.id] = changed[job.id] = job._replace(**changes)
        if not self._rows.write(tx, rows, changed.values()):
            raise _Overtaken
        for news, verdict in zip(run, verdicts, strict=True):
            if news.event.canary and news.event.kind == EventKind.SENT:
                _return_canary(tx, news.event.canary, now)
            if verdict == EventVerdict.QUARANTINED:
                reason = never_issued(news.event)
                tx.execute(ledger.update().where(ledger.c.halted.is_(None)).values(halted=reason))
        self._apply_to_people(tx, run, jobs, now)
        return verdicts

    def _apply_to_people(
        self, tx: Connection, run: Sequence[_News], jobs: Mapping[str, TrackedJob], now: datetime
    ) -> None:
        """In one order, so that two groups about the same people wait in line."""
        concerned = sorted(
            (
                (consequence, jobs.get(news.job_id or ""))
                for news in run
                if (consequence := news.consequence) is not None
            ),
            key=lambda told: told[0].addresses[0].key,
        )
        arrived = [job for told, job in concerned if job is not None and told.news is SoftNews.DELIVERED]
        softly_suppressed = self._soft_bounces.suppressed(tx, arrived)
        for told, job in concerned:
            if isinstance(told.news, Denial):
                self._deny(tx, told, told.news, job, now)
            elif job is None:
                continue
            elif told.news is SoftNews.CAME_BACK:
                self._soft_bounces.came_back(tx, job, now)
            elif (job.suppression_key, job.tenant_id) in softly_suppressed:
                self._soft_bounces.delivered(tx, job, now)

    def _deny(
        self, tx: Connection, told: Consequence, denial: Denial, job: TrackedJob | None, now: datetime
    ) -> None:
        for address in told.addresses:
            key = job.suppression_key if job else suppression_key(address.key, pepper_in_force(self._db, tx))
            if denial.bounce:
                self._soft_bounces.outweigh(tx, key, told.scope, denial.note)
            suppress(tx, key, told.scope, address.text, denial.reason, denial.note, now)
            mark_subscriber(tx, told.scope, address.key, denial.status, now, denial.bounce)

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            told = {"event_id": event.event_id, "source": event.source, "why": event.why, "raw": event.raw}
            insert = insert_for(self._db)(unreadable_events).values(id=new_id(now), received_at=now, **told)
            if tx.execute(insert.on_conflict_do_nothing().returning(U.id)).first() is None:
                return False
            newest = sa.select(U.id).order_by(U.received_at.desc(), U.id.desc()).limit(MOST_UNREADABLE)
            tx.execute(unreadable_events.delete().where(U.id.not_in(newest)))
            return True

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        query = sa.select(U.event_id, U.source, U.why, U.raw, U.received_at)
        newest = query.order_by(U.received_at.desc(), U.id.desc()).limit(limit)
        with self._db.reading() as tx:
            return [UnreadableEvent(*row) for row in tx.execute(newest)]

    def count_unreadable(self) -> int:
        with self._db.reading() as tx:
            return tx.execute(sa.select(sa.func.count()).select_from(unreadable_events)).scalar_one()

    def raw_before(self, moment: datetime, limit: int) -> Sequence[RawEvent]:
        columns = (E.id, E.event_id, E.kind, E.job_id, E.received_at, E.raw)
        with self._db.reading() as tx:
            after = _archived_to(tx) or BEFORE_ALL
            next_ones = sa.select(*columns).where(E.id > after).order_by(E.id)
            first = tx.execute(next_ones.limit(1)).first()
            if first is None or first.received_at >= moment:
                return []
            rows = tx.execute(next_ones.limit(limit)).all()
        events = [RawEvent(row.id, row.event_id, EventKind(row.kind), *row[3:]) for row in rows]
        return list(takewhile(lambda event: event.received_at < moment, events))

    def drop_raw(self, events: Sequence[RawEvent]) -> bool:
        first, last = events[0].id, events[-1].id
        with self._db.writing() as tx:
            if not self._db.is_sqlite:
                tx.exec_driver_sql("LOCK TABLE duty_cursors IN SHARE ROW EXCLUSIVE MODE")
            if (_archived_to(tx) or BEFORE_ALL) >= first:
                return False
            tx.execute(delivery_events.update().where(E.id.between(first, last)).values(raw={}))
            cursor = insert_for(self._db)(duty_cursors).values(duty=_ARCHIVING, last_id=last)
            tx.execute(cursor.on_conflict_do_update(index_elements=["duty"], set_={"last_id": last}))
            return True

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]:
        query = sa.select(delivery_events).order_by(E.received_at.desc(), E.id.desc()).limit(limit)
        if job_id:
            query = query.where(E.job_id == job_id)
        with self._db.reading() as tx:
            return [as_event(row) for row in tx.execute(query)]


def _archived_to(tx: Connection) -> str | None:
    query = sa.select(duty_cursors.c.last_id).where(duty_cursors.c.duty == _ARCHIVING)
    return tx.execute(query).scalar_one_or_none()


def _runs(news: Iterable[_News]) -> Iterator[list[_News]]:
    """Cut so that no person is concerned twice in a run: what follows from an event for its person depends on
    what was recorded before it, and a run is written as a whole."""
    run: list[_News] = []
    concerned: set[str] = set()
    for each in news:
        if not concerned.isdisjoint(each.concerns):
            yield run
            run, concerned = [], set()
        run.append(each)
        concerned |= each.concerns
    if run:
        yield run


def _row(own_id: str, news: _News, verdict: EventVerdict, job: TrackedJob | None, now: datetime) -> EventRow:
    event = news.event
    erased = job is not None and is_erased(job.recipient)
    first = event.recipients[0] if event.recipients else None
    return EventRow(
        id=own_id,
        event_id=event.event_id,
        natural_key=news.natural_key,
        kind=event.kind,
        verdict=verdict,
        job_id=news.job_id,
        attempt=event.attempt,
        message_id=event.message_id,
        recipient=job.recipient if job is not None and erased else first,
        bounce_type=event.bounce_type,
        bounce_subtype=event.bounce_subtype,
        code=event.code,
        reason=None if erased else event.reason,
        occurred_at=event.occurred_at,
        received_at=now,
        raw="{}" if erased else _raw_text(event),
    )


def _raw_text(event: DeliveryEvent) -> str:
    return event.raw_text if isinstance(event, ArrivingEvent) else json.dumps(event.raw)


def _return_canary(tx: Connection, canary_id: str, now: datetime) -> None:
    own = canaries.update().where(canaries.c.id == canary_id, canaries.c.event_at.is_(None))
    tx.execute(own.values(event_at=now))


def _milliseconds(now: datetime) -> int:
    return int(now.timestamp() * 1000)


def _names_job(event: DeliveryEvent) -> str | None:
    """The id of the job that the event is about, if it can be one and an attempt is told, too."""
    if event.job_id is None or event.attempt is None:
        return None
    return event.job_id if _UUID.fullmatch(event.job_id) else None


def as_event(row: Row[Any]) -> DeliveryEvent:
    return DeliveryEvent(
        event_id=row.event_id,
        natural_key=row.natural_key,
        kind=EventKind(row.kind),
        occurred_at=row.occurred_at,
        message_id=row.message_id,
        job_id=row.job_id,
        attempt=row.attempt,
        recipients=(row.recipient,) if row.recipient else (),
        bounce_type=BounceType(row.bounce_type) if row.bounce_type else None,
        bounce_subtype=row.bounce_subtype,
        code=row.code,
        reason=row.reason,
        raw=row.raw,
    )
