"""POST /ses-events: what SNS brings from SES.

The status code is a message to SNS: 2xx means that the event was seen to, 5xx that it is to come again.
A 4xx makes SNS drop the event, so only what is not from a topic of ours gets one.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from sendonce.adapters.events.ses_events import read_notification
from sendonce.adapters.events.sns import SnsMessage, SnsRefused
from sendonce.adapters.events.sns_certificates import CERTIFICATE_SECONDS, CertificateUnknown
from sendonce.adapters.events.sns_subscriptions import confirm_subscription
from sendonce.domain.engine.event_route import ATTEND_EVERY
from sendonce.entrypoints.http.access import Gate
from sendonce.entrypoints.http.answers import error_answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.entrypoints.http.slow_lane import SlowLane
from sendonce.errors import BadInput, Unavailable
from sendonce.flows.engine.record_event import record_told
from sendonce.flows.engine.repeat import shortages
from sendonce.wiring.events import sns_verifier
from sendonce.wiring.transports import aws_credentials

log = logging.getLogger(__name__)


async def attend_to_events(service: Service) -> None:
    """Note, as long as the service runs, that events are taken: only then a missing one proves anything."""
    if service.settings.ses_events_queue_url:
        return  # a worker takes them from there
    try:
        while True:
            try:
                with shortages():
                    await service.in_writer(service.listener.attend)
            except Unavailable as exc:
                log.warning("the event route cannot be noted", extra={"fields": {"error": str(exc)}})
            await asyncio.sleep(ATTEND_EVERY)
    finally:
        await service.in_writer(service.listener.leave)


async def _learnt(unknown: CertificateUnknown) -> None:
    """Wait for a certificate without a thread: those that verify are few, and most messages need none."""
    with suppress(TimeoutError):
        learning = asyncio.shield(asyncio.wrap_future(unknown.learning))
        await asyncio.wait_for(learning, CERTIFICATE_SECONDS)


class SesEventEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._verifier = sns_verifier(service.settings)
        # Who knows a topic of ours and forges. Other failures must not slow down SNS at the same address.
        self._forgers = Gate()
        self._slow_lane = SlowLane()

    async def post(self, request: Request) -> Response:
        body = await self._body(request)
        try:
            return await self._take(request, body)
        except BaseException:  # also the end of the service: nobody answers SNS then
            self._service.listener.broke()  # SNS gets a 5xx, and may give the event up
            raise

    async def _body(self, request: Request) -> bytes:
        """The body of a request. One that is too long or too slow may have been an event, unless it does
        not even say that it is of a topic of ours."""
        try:
            return await read_body(request)
        except BaseException:
            if request.headers.get("x-amz-sns-topic-arn") in self._service.settings.sns_allowed_topic_arns:
                self._service.listener.broke()
            raise

    async def _take(self, request: Request, body: bytes) -> Response:
        try:
            message = await self._verified(request, body)
        except SnsRefused as refusal:
            return self._turn_away(request, refusal)
        if message.type == "Notification":
            verdict = await self._service.in_writer(self._record, message)
        elif message.type == "SubscriptionConfirmation":
            verdict = await self._service.in_verifier(self._confirm, message)
        else:
            verdict = await self._service.in_writer(self._note_unsubscription, message)
        return json_answer({"verdict": verdict})

    async def _verified(self, request: Request, body: bytes) -> SnsMessage:
        """Parse only what names a topic of ours, and little for a peer that failed too often."""
        self._verifier.screen(body, request.headers)
        try:
            return await self._verify(request, body)
        except CertificateUnknown as unknown:
            await _learnt(unknown)
        try:
            return await self._verify(request, body)
        except Unavailable:
            self._forgers.tolerates(request)  # most probably a made-up address
            raise

    async def _verify(self, request: Request, body: bytes) -> SnsMessage:
        verify = partial(self._service.in_verifier, self._verifier.verify_now, body, request.headers)
        try:
            if not self._forgers.has_had_enough_of(request):
                return await verify()
            async with self._slow_lane.turn():
                return await verify()
        except SnsRefused:
            self._forgers.tolerates(request)
            raise

    def _turn_away(self, request: Request, refusal: SnsRefused) -> Response:
        """The cause is for the log; a stranger learns nothing, and cannot fill the log either."""
        if self._service.gate.tolerates(request):
            log.warning("SNS message refused", extra={"fields": {"error": str(refusal)}})
        return error_answer(refusal.http_status, "The message was refused.")

    def _record(self, message: SnsMessage) -> str:
        service = self._service
        service.listener.heard_from(message.topic_arn)
        told = read_notification(message.message, message.message_id, message.topic_arn)
        return record_told(service.store.events, service.metrics, service.listener, told)

    def _confirm(self, message: SnsMessage) -> str:
        settings = self._service.settings
        try:
            credentials = aws_credentials(settings).current()
            confirm_subscription(message, credentials, settings.aws_endpoint_url_sns or None)
        except BadInput as exc:  # keys that cannot be used: SNS may come again once they are corrected
            raise Unavailable(str(exc)) from exc
        self._service.listener.heard_from(message.topic_arn)
        log.info("SNS subscription confirmed", extra={"fields": {"topic": message.topic_arn}})
        return "confirmed"

    def _note_unsubscription(self, message: SnsMessage) -> str:
        """Nothing is done about it: whoever ended the subscription may have meant it."""
        self._service.listener.ended(message.topic_arn)
        log.warning(
            "the SNS subscription was ended: no more delivery events come from this topic",
            extra={"fields": {"topic": message.topic_arn}},
        )
        return "noted"
