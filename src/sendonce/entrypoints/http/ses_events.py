"""POST /ses-events: what SNS brings from SES.

The status code is a message to SNS: 2xx means that the event was seen to, 5xx that it is to come again.
A 4xx makes SNS drop the event, so only what is not from a topic of ours gets one.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import cache, partial

from starlette.requests import Request
from starlette.responses import Response

from sendonce.domain.engine.event_route import ATTEND_EVERY
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.entrypoints.http.access import Gate
from sendonce.entrypoints.http.answers import error_answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.entrypoints.http.slow_lane import SlowLane
from sendonce.errors import CertificateUnknown, NotGenuine, Unavailable
from sendonce.flows.engine.shortages import shortages
from sendonce.flows.engine.take_events import EventIntake
from sendonce.wiring.events import sns_envelopes, sns_verifier

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
        await asyncio.wait_for(learning, unknown.patience)


@cache
def _verdict_answer(verdict: str) -> Response:
    """There are few, and a response keeps nothing of its request."""
    return json_answer({"verdict": verdict})


# Up to this length a message is read in the loop: handing it to a thread and back takes longer.
_SHORT = 16 * 1024


class SesEventEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._verifier = sns_verifier(service.settings)
        self._envelopes = sns_envelopes(service.settings, self._verifier)
        self._intake = EventIntake(service.store.events, service.listener, service.metrics, service.in_writer)
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
        except NotGenuine as refusal:
            return self._turn_away(request, refusal)
        if message.type == "Notification" and len(body) <= _SHORT:
            told = self._envelopes.told_by(message)
        else:
            told = await self._service.in_verifier(self._envelopes.told_by, message)
        return _verdict_answer(await self._intake.take(told))

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
        verify = partial(self._verifier.verify_now, body, request.headers)
        try:
            if self._forgers.has_had_enough_of(request):
                async with self._slow_lane.turn():
                    return await self._service.in_verifier(verify)
            return verify() if len(body) <= _SHORT else await self._service.in_verifier(verify)
        except NotGenuine:
            self._forgers.tolerates(request)
            raise

    def _turn_away(self, request: Request, refusal: NotGenuine) -> Response:
        """The cause is for the log; a stranger learns nothing, and cannot fill the log either."""
        if self._service.gate.tolerates(request):
            log.warning("SNS message refused", extra={"fields": {"error": str(refusal)}})
        return error_answer(refusal.http_status, "The message was refused.")
