"""Record a delivery event, count it, and raise the alarm where it tells of something that must not be."""

from __future__ import annotations

import logging

from sendonce.domain.events import DeliveryEvent, EventVerdict
from sendonce.ports import Events, Meter

log = logging.getLogger(__name__)

_ALARMS = {
    EventVerdict.DUPLICATE_SEND: "a second copy of a letter left",
    EventVerdict.QUARANTINED: "an event names an attempt that was never issued; all claims are stopped",
}


def record_event(events: Events, meter: Meter, event: DeliveryEvent) -> EventVerdict:
    """What became of the event. Raises Unavailable: then the carrier has to bring it again."""
    verdict = events.record(event)
    meter.count_event(event.kind, verdict)
    if verdict in _ALARMS:
        facts = {"job": event.job_id, "attempt": event.attempt, "event_id": event.event_id}
        log.error(_ALARMS[verdict], extra={"fields": {**facts, "kind": str(event.kind)}})
    return verdict
