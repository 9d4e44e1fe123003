"""What was accepted around a letter in doubt, on SQL: a few short looks, however long the history is.

Letters without a Send event have an index by the time of their claim. Those with one are found from their
events, which come a moment after the claim: some events on both sides of two moments are looked at.

        claimed - 5 min        claimed              claimed + 5 min
              ├────────────────◄──┼──►────────────────────◄──┼──►
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import canaries, delivery_events, dispatches, job_states, workers
from sendonce.adapters.stores.sql.rows import in_state
from sendonce.domain.engine.doubts import NEAR, Doubt, Surroundings
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.sent_folder import AcceptedNear

C = canaries.c
D = dispatches.c
E = delivery_events.c
J = job_states.c
W = workers.c

# Of transports without events many letters may lie in those ten minutes; more than these are not looked at.
MOST_UNHEARD = 20_000
# Events looked at on one side of one moment.
MOST_EVENTS = 500


def look_around(tx: Connection, doubt: Doubt) -> Surroundings:
    assert doubt.claimed_at is not None
    assert doubt.death_proof_at is not None
    assert doubt.route is not None
    near = _near_canaries(tx, doubt.route, doubt.claimed_at)
    heard = [row.sent_at for row in near if row.event_at is not None]
    before = any(moment <= doubt.claimed_at for moment in heard)
    after = any(moment > doubt.claimed_at for moment in heard)
    for claimed_at in _near_claims(tx, doubt.route, doubt.claimed_at):
        before = before or claimed_at <= doubt.claimed_at
        after = after or claimed_at > doubt.claimed_at
        if before and after:
            break
    silent = _unheard(tx, doubt.route, doubt.claimed_at) + len(near) - len(heard)
    return Surroundings(silent, before, after, _heard_since(tx, doubt.route, doubt.death_proof_at))


def accepted_near(tx: Connection, doubt: Doubt, sender_id: str, limit: int) -> AcceptedNear:
    assert doubt.claimed_at is not None
    accepted = (
        sa.select(J.id)
        .join(workers, W.id == J.worker_id)
        .join(dispatches, D.id == J.dispatch_id)
        .where(in_state(JobState.SENT), J.send_event_at.is_(None), J.accepted_attempt.is_not(None))
        .where(W.route == doubt.route, D.sender_id == sender_id)
        .limit(limit)
    )
    first, moment, last = doubt.claimed_at - NEAR, doubt.claimed_at, doubt.claimed_at + NEAR
    before = accepted.where(J.claimed_at.between(first, moment)).order_by(J.claimed_at.desc())
    after = accepted.where(J.claimed_at > moment, J.claimed_at <= last).order_by(J.claimed_at)
    return AcceptedNear(list(tx.execute(before).scalars()), list(tx.execute(after).scalars()))


def _near_canaries(tx: Connection, route: str, moment: datetime) -> list[Row[Any]]:
    query = sa.select(C.sent_at, C.event_at).where(C.route == route, C.message_id.is_not(None))
    return list(tx.execute(query.where(C.sent_at.between(moment - NEAR, moment + NEAR))))


def _unheard(tx: Connection, route: str, moment: datetime) -> int:
    """How many there are; one where there are too many to look at all of them."""
    some = (
        sa.select(J.worker_id, J.accepted_attempt)
        .where(in_state(JobState.SENT), J.send_event_at.is_(None))
        .where(J.claimed_at.between(moment - NEAR, moment + NEAR))
        .limit(MOST_UNHEARD)
        .subquery()
    )
    # An operator's word is no acceptance: no event is to be expected.
    own = sa.and_(W.route == route, some.c.accepted_attempt.is_not(None))
    counts = sa.select(sa.func.count(), sa.func.count(sa.case((own, 1))))
    seen, silent = tx.execute(counts.select_from(some.outerjoin(workers, W.id == some.c.worker_id))).one()
    return silent or int(seen >= MOST_UNHEARD)


def _near_claims(tx: Connection, route: str, moment: datetime) -> Iterator[datetime]:
    """When letters near it that have their Send event were claimed: some of them."""
    for anchor in (moment, moment + NEAR):
        for events in (_before(anchor), _from(anchor)):
            claimed = _claimed(events, route).where(J.claimed_at.between(moment - NEAR, moment + NEAR))
            yield from (row.claimed_at for row in tx.execute(claimed))


def _heard_since(tx: Connection, route: str, moment: datetime) -> bool:
    """Whether something accepted after ``moment`` has its Send event."""
    returned = sa.select(C.id).where(C.route == route, C.sent_at > moment, C.event_at.is_not(None))
    if tx.execute(returned.limit(1)).first() is not None:
        return True
    newest = sa.select(E.job_id, E.attempt, E.kind).order_by(E.received_at.desc()).limit(MOST_EVENTS)
    return any(
        tx.execute(_claimed(events, route).where(J.claimed_at > moment).limit(1)).first() is not None
        for events in (newest, _from(moment))
    )


def _before(moment: datetime) -> sa.Select[Any]:
    events = sa.select(E.job_id, E.attempt, E.kind).where(E.received_at < moment)
    return events.order_by(E.received_at.desc()).limit(MOST_EVENTS)


def _from(moment: datetime) -> sa.Select[Any]:
    events = sa.select(E.job_id, E.attempt, E.kind).where(E.received_at >= moment)
    return events.order_by(E.received_at).limit(MOST_EVENTS)


def _claimed(events: sa.Select[Any], route: str) -> sa.Select[tuple[datetime | None]]:
    """When the letters of these Send events were claimed, those of one route."""
    told = events.subquery()
    own = (J.id == told.c.job_id) & (J.attempt == told.c.attempt)
    joined = told.join(job_states, own).join(workers, W.id == J.worker_id)
    return sa.select(J.claimed_at).select_from(joined).where(told.c.kind == "sent", W.route == route)
