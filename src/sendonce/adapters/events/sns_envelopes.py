"""Reading what SNS brings, by HTTP or into a queue: is it genuine, and what does it say?"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sendonce.adapters.events.ses_events import read_notification
from sendonce.adapters.events.sns import SnsVerifier
from sendonce.domain.engine.queued_messages import Control, QueuedMessage, Told
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.errors import NotGenuine, RefusedByRule

log = logging.getLogger(__name__)


class SnsEnvelopes:
    """Also the EventReader of flows/engine/pull_events.

    ``confirm`` answers a SubscriptionConfirmation by a call of our own.
    """

    def __init__(self, verifier: SnsVerifier, confirm: Callable[[SnsMessage], None]) -> None:
        self._verifier = verifier
        self._confirm = confirm

    def read(self, message: QueuedMessage) -> Told:
        try:
            envelope = self._verifier.verify(message.body, {})
        except NotGenuine as exc:
            hint = (
                " Is raw message delivery on? Turn it off on the subscription." if _raw(message.body) else ""
            )
            raise RefusedByRule(f"{exc}{hint}") from exc
        return self.told_by(envelope)

    def told_by(self, envelope: SnsMessage) -> Told:
        """What a verified message says. Waits for SNS where a subscription is to be confirmed."""
        topic = envelope.topic_arn
        if envelope.type == "Notification":
            return Told(topic, read_notification(envelope.message, envelope.message_id, topic))
        if envelope.type == "SubscriptionConfirmation":
            self._confirm(envelope)
            log.info("SNS subscription confirmed", extra={"fields": {"topic": topic}})
            return Told(topic, control=Control.CONFIRMED)
        # Nothing is done about it: whoever ended the subscription may have meant it.
        log.warning(
            "the SNS subscription was ended: no more delivery events come from this topic",
            extra={"fields": {"topic": topic}},
        )
        return Told(topic, control=Control.ENDED)


def _raw(body: bytes) -> bool:
    """A message of raw delivery is the event itself, without an envelope and so without a signature."""
    return b'"eventType"' in body[:200] or b'"notificationType"' in body[:200]
