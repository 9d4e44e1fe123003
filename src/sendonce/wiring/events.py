"""Settings in, the pull mode for events out: beside ``wiring``, and under the same rules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sendonce.errors import BadInput, Unavailable
from sendonce.settings import Settings
from sendonce.wiring.transports import aws_credentials

if TYPE_CHECKING:
    from sendonce.adapters.events.sns import SnsVerifier
    from sendonce.adapters.events.sns_envelopes import SnsEnvelopes
    from sendonce.adapters.events.sqs import SqsQueue
    from sendonce.domain.engine.sns_messages import SnsMessage
    from sendonce.flows.engine.pull_events import EventPuller
    from sendonce.ports.engine import Meter
    from sendonce.ports.store import Store

# Connections to the queue. One is enough for a trickle; a flood of ten messages a call needs more.
_RECEIVERS = 8


def event_queue(settings: Settings) -> SqsQueue:
    from sendonce.adapters.events.sqs import SqsQueue, SqsSettings

    credentials = aws_credentials(settings)
    return SqsQueue(SqsSettings(settings.ses_events_queue_url, settings.aws_region, credentials))


def make_event_puller(
    settings: Settings, store: Store, meter: Meter, receivers: int = _RECEIVERS
) -> EventPuller | None:
    """None where no queue is set: then events come by POST /ses-events."""
    if not settings.ses_events_queue_url:
        return None
    from sendonce.flows.engine.listen import Listener
    from sendonce.flows.engine.pull_events import EventPuller
    from sendonce.flows.engine.take_events import EventIntake

    queues = [event_queue(settings) for _ in range(receivers)]
    listener = Listener(store.event_route, settings.sns_allowed_topic_arns, durable=True)
    intake = EventIntake(store.events, listener, meter, asyncio.to_thread)
    return EventPuller(queues, sns_envelopes(settings, sns_verifier(settings)), intake, listener)


def sns_envelopes(settings: Settings, verifier: SnsVerifier) -> SnsEnvelopes:
    from sendonce.adapters.events.sns_envelopes import SnsEnvelopes
    from sendonce.adapters.events.sns_subscriptions import confirm_subscription

    def confirm(message: SnsMessage) -> None:
        try:
            credentials = aws_credentials(settings).current()
            confirm_subscription(message, credentials, settings.aws_endpoint_url_sns or None)
        except BadInput as exc:  # keys that cannot be used: the message comes again once they are corrected
            raise Unavailable(str(exc)) from exc

    return SnsEnvelopes(verifier, confirm)


def sns_verifier(settings: Settings) -> SnsVerifier:
    from sendonce.adapters.events.sns import SnsVerifier

    return SnsVerifier(frozenset(settings.sns_allowed_topic_arns), settings.sns_signing_cert_file)
