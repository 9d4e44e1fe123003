"""The service as it took events before they shared commits: each in a thread of its own to be verified, then
in a transaction of its own, with statements that SQLAlchemy builds.

    python -m bench.former_events
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import delivery_events, job_states, planned_jobs
from sendonce.adapters.stores.sql import store
from sendonce.adapters.stores.sql.events import SqlEvents
from sendonce.adapters.stores.sql.peppers import hold_pepper
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.engine.events import DeliveryEvent, EventVerdict
from sendonce.domain.engine.evidence import TrackedJob, changes_by_event, judge
from sendonce.domain.people.consequences import Consequence, Denial, SoftNews, consequence_of
from sendonce.entrypoints.cli.app import main
from sendonce.entrypoints.http import ses_events
from sendonce.flows.engine.take_events import EventIntake

_MOVING = [column for column in job_states.c if column.name not in ("id", "dispatch_id")]
_JOB = (
    sa.select(planned_jobs, *_MOVING)
    .join(job_states, job_states.c.id == planned_jobs.c.id)
    .with_for_update(of=job_states, key_share=True)
)


class FormerEvents(SqlEvents):
    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        return [self.record(event) for event in events]

    def record(self, event: DeliveryEvent) -> EventVerdict:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            now = self._db.now(tx)
            row = tx.execute(_JOB.where(job_states.c.id == event.job_id)).one()
            job = TrackedJob._make(getattr(row, name) for name in TrackedJob._fields)
            verdict = judge(event, job)
            values = {
                "id": new_id(now),
                "event_id": event.event_id,
                "natural_key": event.natural_key,
                "kind": event.kind,
                "verdict": verdict,
                "job_id": job.id,
                "attempt": event.attempt,
                "message_id": event.message_id,
                "recipient": event.recipients[0],
                "bounce_type": event.bounce_type,
                "bounce_subtype": event.bounce_subtype,
                "code": event.code,
                "reason": event.reason,
                "occurred_at": event.occurred_at,
                "received_at": now,
                "raw": event.raw,
            }
            insert = insert_for(self._db)(delivery_events).values(**values).on_conflict_do_nothing()
            if tx.execute(insert.returning(delivery_events.c.id)).first() is None:
                return EventVerdict.DUPLICATE_EVENT
            changes = changes_by_event(event, job, now)
            tx.execute(job_states.update().where(job_states.c.id == job.id).values(**changes))
            if (told := consequence_of(event, job)) is not None:
                self._apply(tx, told, job, now)
            return verdict

    def _apply(self, tx: Connection, told: Consequence, job: TrackedJob, now: datetime) -> None:
        if told.news is SoftNews.DELIVERED:
            self._soft_bounces.delivered(tx, job, now)
        elif told.news is SoftNews.CAME_BACK:
            self._soft_bounces.came_back(tx, job, now)
        elif isinstance(told.news, Denial):
            self._deny(tx, told, told.news, job, now)


if __name__ == "__main__":
    ses_events._SHORT = 0
    EventIntake.most_together = 1
    store.SqlEvents = FormerEvents  # type: ignore[misc]
    sys.argv[1:] = ["serve", "--no-worker"]
    main()
