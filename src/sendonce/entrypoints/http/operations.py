"""For those who run the service: health, metrics, due work on request, and the description of it all."""

from __future__ import annotations

import asyncio
import json
import logging
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.answers import answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.openapi import OPENAPI
from sendonce.entrypoints.http.service import Service
from sendonce.errors import BadInput, SendonceError
from sendonce.wiring.stores import has_our_schema

log = logging.getLogger(__name__)

# Anybody may ask whether we are ready; the database is asked no more often than this.
_READY_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_TICK_SECONDS = 10.0
_LONGEST_TICK = 300.0


class OperationEndpoints:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._ready = False
        self._asked = float("-inf")
        self._asking = asyncio.Lock()

    async def healthz(self, _request: Request) -> Response:
        return json_answer({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        async with self._asking:
            if time.monotonic() - self._asked >= _READY_SECONDS:
                self._ready = await self._ask()
                self._asked = time.monotonic()
        return json_answer({"status": "ok"}) if self._ready else json_answer({"status": "unavailable"}, 503)

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._service.in_thread(self._is_ready)
        except TimeoutError:
            log.warning("not ready: the database takes too long to answer")
            return False

    def _is_ready(self) -> bool:
        store = self._service.store
        try:
            if not has_our_schema(store):
                log.warning("the database has another schema than this program")
                return False
            store.ledger.identity()
        except SendonceError as exc:
            log.warning("not ready", extra={"fields": {"error": str(exc)}})
            return False
        return True

    async def metrics(self, request: Request) -> Response:
        self._service.require_secret(request)
        page = await self._service.in_thread(self._service.metrics.render)
        return answer(page, self._service.metrics.content_type)

    async def tick(self, request: Request) -> Response:
        self._service.require_secret(request, self._service.settings.cron_secret)
        await read_body(request)
        if self._service.tick is None:
            raise HTTPException(501, "This service was started without a part that does due work.")
        return json_answer(await self._service.tick(_seconds(request)))

    async def openapi(self, _request: Request) -> Response:
        return answer(_OPENAPI_TEXT, "application/json")


def _seconds(request: Request) -> float:
    given = request.query_params.get("seconds")
    if given is None:
        return _TICK_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_TICK:
        raise BadInput(f"seconds is {given[:20]!r}: it must be a number above 0, at most {_LONGEST_TICK:g}.")
    return seconds


_OPENAPI_TEXT = json.dumps(OPENAPI, ensure_ascii=False, indent=1).encode("utf-8")
