"""Keep watch: read the gauges, and tell people what is wrong for as long as it is so.

Any number of processes may do it: leases in the database let one of them look at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

from sendonce.domain.engine.alarms import (
    Alarm,
    AlarmLimits,
    Trouble,
    is_old,
    of_dead_letters,
    of_event_silence,
    of_hold,
    of_queue,
    of_worker,
)
from sendonce.domain.engine.gauges import READ_EVERY, Gauges, newest_by
from sendonce.flows.engine.alert import raise_alert, tell_later
from sendonce.ports.engine import WatchStore

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=30)
MOVES_WITHIN = timedelta(minutes=15)
"""A queue of which no letter ended for so long stands still."""
_SES = "ses"


def keep_watch(store: WatchStore, limits: AlarmLimits) -> None:
    if store.leases.take("gauges", uuid4().hex, READ_EVERY):
        store.gauge_log.take()
    if store.leases.take("watch", uuid4().hex, LOOK_EVERY):
        sound_alarms(store, limits)


def sound_alarms(store: WatchStore, limits: AlarmLimits) -> None:
    """Begin alarms of what is wrong, and end those of what is right again."""
    wrong = {trouble.about: trouble for trouble in find_troubles(store, limits)}
    for alarm in store.alarms.standing():
        if alarm.about not in wrong:
            _end(store, alarm)
    for trouble in wrong.values():
        alarm = store.alarms.stand(trouble)
        if not alarm.told and raise_alert(store, trouble.about, trouble.text):
            store.alarms.note_told(trouble.about)


def _end(store: WatchStore, alarm: Alarm) -> None:
    """Nobody is told of the end of what nobody was told of."""
    if store.alarms.end(alarm.about) and alarm.told:
        tell_later(store, alarm.about, f"It is over: {alarm.text}")


def find_troubles(store: WatchStore, limits: AlarmLimits) -> Iterator[Trouble]:
    now = store.gauge_log.read()
    found = [
        of_dead_letters(now, store.gauge_log.day_ago(), limits),
        _queue(store, now, limits),
        _event_silence(store, limits),
        *(of_hold(hold) for hold in store.sender_holds.all()),
        *(of_worker(worker, now.taken_at) for worker in store.workers.open()),
    ]
    return (trouble for trouble in found if trouble is not None)


def _queue(store: WatchStore, now: Gauges, limits: AlarmLimits) -> Trouble | None:
    readings = store.gauge_log.last_day() if is_old(now, limits) else ()
    return of_queue(now, newest_by(readings, now.taken_at - MOVES_WITHIN), limits)


def _event_silence(store: WatchStore, limits: AlarmLimits) -> Trouble | None:
    """Letters count that left in the time before the silence: their events had time to come."""
    silence = limits.event_silence
    if silence is None:
        return None
    began = store.ledger.now() - silence
    last = store.gauge_log.last_event()
    if last is not None and last > began:
        return None
    return of_event_silence(store.gauge_log.unheard(_SES, began - silence, began), silence)
