"""Record what the provider tells, count it, and raise the alarm where it tells of what must not be."""

from __future__ import annotations

import logging

from sendonce.domain.engine.events import DeliveryEvent, EventVerdict, UnreadableEvent
from sendonce.flows.engine.listen import Listener
from sendonce.ports.engine import Events, Meter

log = logging.getLogger(__name__)

_ALARMS = {
    EventVerdict.DUPLICATE_SEND: "a second copy of a letter left",
    EventVerdict.QUARANTINED: "an event names an attempt that was never issued; all claims are stopped",
}


def record_told(
    events: Events, meter: Meter, listener: Listener, told: DeliveryEvent | UnreadableEvent | None
) -> str:
    """What became of a genuine message. Raises Unavailable: then the carrier has to bring it again.

    One that cannot be read may be the Send event of a letter in doubt: it came, and yet nothing was heard.
    """
    match told:
        case None:
            return "ignored"
        case UnreadableEvent():
            listener.missed()
            return _keep_unreadable(events, meter, told)
        case DeliveryEvent():
            return str(record_event(events, meter, told))


def record_event(events: Events, meter: Meter, event: DeliveryEvent) -> EventVerdict:
    verdict = events.record(event)
    meter.count_event(event.kind, verdict)
    if verdict in _ALARMS:
        facts = {"job": event.job_id, "attempt": event.attempt, "event_id": event.event_id}
        log.error(_ALARMS[verdict], extra={"fields": {**facts, "kind": str(event.kind)}})
    return verdict


def _keep_unreadable(events: Events, meter: Meter, event: UnreadableEvent) -> str:
    """It is genuine and will not become readable: coming again would not help, so it is kept as it is."""
    if events.keep_unreadable(event):
        meter.count_unreadable()
        facts = {"event_id": event.event_id, "topic": event.source, "error": event.why}
        hint = "'sendonce events list --unreadable' shows it"
        log.warning("unreadable SES event", extra={"fields": {**facts, "hint": hint}})
    return "unreadable"
