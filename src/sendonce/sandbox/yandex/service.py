"""The door of this Yandex: who may ask, how often, and for what."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sendonce.sandbox.http_server import Ending, Reply, Request, json_reply
from sendonce.sandbox.yandex.faults import OperationFault, SubmitFault, YandexDice
from sendonce.sandbox.yandex.iam import Iam
from sendonce.sandbox.yandex.operations import Accepted, OperationLog
from sendonce.sandbox.yandex.refusals import YandexRefusal
from sendonce.sandbox.yandex.serp import NOTHING_FOUND, answer_xml, error_xml, found_sites, page_of
from sendonce.sandbox.yandex.sites import findable

SEARCH, OPERATIONS, TOKENS = "/v2/web/searchAsync", "/operations/", "/iam/v1/tokens"
_RESULTS_LIVE = 12 * 3600.0
_REFUSALS = {
    SubmitFault.UNAUTHORIZED: (401, 16, "Token is invalid or has expired."),
    SubmitFault.FORBIDDEN: (403, 7, "Permission to [resource-manager.folder] denied"),
    SubmitFault.THROTTLED: (429, 8, "The limit on requests per second was exceeded."),
    SubmitFault.UNAVAILABLE: (503, 14, "Service is unavailable."),
}
_OPERATION_ERRORS = {
    OperationFault.INTERNAL: (13, "Internal error"),
    OperationFault.INVALID: (3, "Request is invalid"),
}
_DEEP = 200_000
# Seconds, longer than anybody waits.
_SILENCE = 120.0


@dataclass(frozen=True, slots=True)
class YandexSettings:
    """An answer is there after ``pending_seconds``. ``rate`` per second is for submissions, and for polls."""

    directory: Path
    api_key: str
    folder_id: str
    pending_seconds: float
    rate: int
    token_seconds: float
    seed: int


class Yandex:
    """``results`` are what there is to find: the URL, the title and the snippet of each."""

    def __init__(
        self, settings: YandexSettings, results: Iterable[tuple[str, str, str]], now: Callable[[], float]
    ) -> None:
        self.settings = settings
        self.sites = [findable(*result) for result in results]
        self.dice = YandexDice(settings.seed)
        self.log = OperationLog(settings.directory)
        self.iam = Iam(settings.directory, settings.token_seconds, now)
        self.asked: Counter[str] = Counter()
        self.answered: Counter[int] = Counter()
        self._now = now
        self._submits: deque[float] = deque()
        self._fetches: deque[float] = deque()

    def environment(self, endpoint: str) -> dict[str, str]:
        """The variables that point a product at this Yandex."""
        return {
            "YANDEX_SEARCH_URL": endpoint,
            "YANDEX_OPERATION_URL": endpoint,
            "YANDEX_IAM_URL": endpoint,
            "YANDEX_CLOUD_FOLDER_ID": self.settings.folder_id,
            "YANDEX_CLOUD_API_KEY": self.settings.api_key,
            "SEARCH_WINDOW": "00:00-23:59",
            "SEARCH_FIRST_POLL_SECONDS": f"{self.settings.pending_seconds:g}",
        }

    def serves(self, path: str) -> bool:
        return path in (SEARCH, TOKENS) or path.startswith(OPERATIONS)

    async def answer(self, request: Request) -> Reply:
        try:
            reply = await self._answer(request)
        except YandexRefusal as refusal:
            reply = refusal.reply()
        self.answered[reply.status] += 1
        return reply

    async def _answer(self, request: Request) -> Reply:
        if (request.method, request.path) == ("POST", TOKENS):
            self.asked["tokens"] += 1
            return self.iam.exchange(request.body)
        if (request.method, request.path) == ("POST", SEARCH):
            self.asked["submits"] += 1
            return await self._submit(request)
        if request.method == "GET" and request.path.startswith(OPERATIONS):
            self.asked["fetches"] += 1
            return self._fetch(request)
        raise YandexRefusal(404, 5, "Not found")

    async def _submit(self, request: Request) -> Reply:
        fault = self.dice.for_submit()
        if fault in _REFUSALS:
            raise YandexRefusal(*_REFUSALS[fault])
        if fault is SubmitFault.RESET_BEFORE:
            return Reply(ending=Ending.RESET)
        self._admit(request, self._submits)
        accepted = self._accepted(_search_of(request.body, self.settings.folder_id))
        reply = json_reply(_operation(accepted, done=False))
        if fault is SubmitFault.SILENCE_AFTER:
            await asyncio.sleep(_SILENCE)
        if fault is SubmitFault.RESET_AFTER:
            return replace(reply, ending=Ending.RESET)
        if fault is SubmitFault.GARBAGE_AFTER:
            return replace(reply, ending=Ending.GARBAGE)
        if fault is SubmitFault.ERROR_AFTER:
            raise YandexRefusal(500, 13, "Internal error")
        return reply

    def _accepted(self, search: dict[str, Any]) -> Accepted:
        accepted = Accepted(
            id=f"spp{secrets.token_hex(8)}", at=self._now(), fault=self.dice.for_operation(), **search
        )
        self.log.add(accepted)
        return accepted

    def _fetch(self, request: Request) -> Reply:
        self._admit(request, self._fetches)
        accepted = self.log.get(request.path.removeprefix(OPERATIONS))
        age = self._now() - accepted.at if accepted else 0.0
        if accepted is None or age > _RESULTS_LIVE or accepted.fault == OperationFault.EXPIRED:
            raise YandexRefusal(404, 5, "Operation is not found")
        pending = self.dice.plan.pending_seconds
        if age < (self.settings.pending_seconds if pending is None else pending):
            return json_reply(_operation(accepted, done=False))
        if accepted.fault == OperationFault.STUCK:
            return json_reply(_operation(accepted, done=False))
        return json_reply({**_operation(accepted, done=True), **self._outcome(accepted)})

    def _outcome(self, accepted: Accepted) -> dict[str, Any]:
        if accepted.fault in _OPERATION_ERRORS:
            code, message = _OPERATION_ERRORS[OperationFault(accepted.fault)]
            return {"error": {"code": code, "message": message, "details": []}}
        raw = base64.b64encode(self.xml_of(accepted).encode()).decode()
        if accepted.fault == OperationFault.BAD_BASE64:
            raw = f"{raw[:40]}!не base64!"
        kind = "type.googleapis.com/yandex.cloud.searchapi.v2.WebSearchResponse"
        return {"response": {"@type": kind, "rawData": raw}}

    def xml_of(self, accepted: Accepted) -> str:
        shown = page_of(found_sites(accepted.text, self.sites), accepted.page, accepted.size)
        text, page = accepted.text, accepted.page
        match accepted.fault:
            case OperationFault.NOTHING:
                return error_xml(text, page, *NOTHING_FOUND)
            case OperationFault.XML_ERROR:
                return error_xml(text, page, 20, "Внутренняя ошибка сервера")
            case OperationFault.XML_REFUSAL:
                return error_xml(text, page, 48, "Тип поиска не поддерживается")
            case OperationFault.DEEP_XML:
                return "<a>" * _DEEP
            case OperationFault.DOCTYPE:
                return '<!DOCTYPE a [<!ENTITY b "c">]>' + answer_xml(text, shown, page)
        if not shown:
            return error_xml(text, page, *NOTHING_FOUND)
        whole = answer_xml(text, shown, page)
        return whole[: len(whole) // 2] if accepted.fault == OperationFault.CUT_XML else whole

    def _admit(self, request: Request, recent: deque[float]) -> None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        known = (scheme == "Api-Key" and shown == self.settings.api_key) or (
            scheme == "Bearer" and self.iam.knows(shown)
        )
        if not known:
            raise YandexRefusal(401, 16, "Token is invalid or has expired.")
        now = time.monotonic()
        while recent and recent[0] <= now - 1.0:
            recent.popleft()
        if len(recent) >= self.settings.rate:
            raise YandexRefusal(429, 8, "The limit on requests per second was exceeded.")
        recent.append(now)


def _operation(accepted: Accepted, *, done: bool) -> dict[str, Any]:
    created = datetime.fromtimestamp(accepted.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"createdAt": created, "modifiedAt": created}
    return {
        "done": done,
        "id": accepted.id,
        "description": "WEB search async",
        "createdBy": "sandbox",
        **times,
    }


_KNOWN = {
    *("query", "sortSpec", "groupSpec", "maxPassages", "region", "l10n", "folderId", "responseFormat"),
    *("userAgent", "metadata", "period"),
}


def _search_of(body: bytes, folder_id: str) -> dict[str, Any]:
    """What is asked for. protobuf's JSON takes no name that it does not know."""
    try:
        wish = json.loads(body)
        query = wish["query"]
        text, page = query["queryText"], int(query.get("page", "0"))
        size = int(wish.get("groupSpec", {}).get("groupsOnPage", "20"))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise YandexRefusal(400, 3, f"Request is malformed: {exc!r}") from exc
    _check_search(wish, text, page, size)
    if wish.get("folderId") != folder_id:
        raise YandexRefusal(403, 7, f"Permission to folder {wish.get('folderId')} denied")
    return {"text": text, "region": str(wish.get("region", "")), "page": page, "size": size}


def _check_search(wish: Mapping[str, Any], text: Any, page: int, size: int) -> None:
    if unknown := set(wish) - _KNOWN:
        raise YandexRefusal(400, 3, f"Unknown fields: {', '.join(sorted(unknown))}")
    if not isinstance(text, str) or not 0 < len(text) <= 400 or len(text.split()) > 40:
        raise YandexRefusal(400, 3, "query.query_text: invalid length")
    if page < 0 or not 1 <= size <= 100:
        raise YandexRefusal(400, 3, "query.page or group_spec.groups_on_page: out of range")
    if wish.get("responseFormat") != "FORMAT_XML":
        raise YandexRefusal(400, 3, "This stand-in answers in FORMAT_XML only.")
