"""Yandex Search API v2, deferred: a request is posted, and its answer is fetched from the operation later.

Yandex promises no idempotency for a submission, and operations cannot be listed. So a POST is made once, and
what is not surely refused or accepted is of unknown fate.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from sendonce.adapters.search.exchanges import Answer, Exchanges, NotSent, Unanswered
from sendonce.adapters.search.serp_xml import read_serp
from sendonce.adapters.search.yandex_auth import Authority, NoToken
from sendonce.domain.engine.strict_json import storable
from sendonce.domain.prospecting.quotas import Limit
from sendonce.domain.prospecting.search_answers import (
    Accepted,
    Failed,
    FateUnknown,
    Fetch,
    Gone,
    NotNow,
    NotTaken,
    Pending,
    ProviderTerms,
    Ready,
    Refused,
    SearchRequest,
    SerpPage,
    Submission,
)

PAGE_SIZE = 100
# Submitting and fetching are counted apart. 600 in a minute is ten in a second, and costs nothing to keep.
SUBMITTING = (Limit(10, 1.0), Limit(600, 60.0), Limit(35_000, 3600.0))
FETCHING = (Limit(10, 1.0), Limit(600, 60.0))
RESULTS_LIVE = timedelta(hours=12)

# Codes of google.rpc that one operation may fail with and the next one may not: cancelled, unknown, deadline,
# exhausted, aborted, internal, unavailable.
_PASSING = frozenset((1, 2, 4, 8, 10, 13, 14))
_NOT_TAKEN = {
    401: "Yandex refuses the credentials: check YANDEX_CLOUD_API_KEY, or what you use instead of it.",
    403: "Yandex refuses access: give the service account the role search-api.webSearch.user, and check "
    "YANDEX_CLOUD_FOLDER_ID and the folder's billing.",
    404: "Yandex knows no such address: check YANDEX_SEARCH_URL and YANDEX_OPERATION_URL.",
    429: "Yandex takes no more requests at the moment.",
    503: "Yandex Search is not available at the moment.",
}
# Wrong credentials do not mend themselves within a minute.
_BY_SETTINGS = frozenset((401, 403, 404))
_PAUSES = {401: 600.0, 403: 600.0, 404: 600.0, 429: 2.0, 503: 30.0}
_MOST_SAID = 200
_GARBLED = NotNow("Yandex's answer is garbled.", "garbled", for_all=False)


@dataclass(frozen=True, slots=True)
class YandexAddresses:
    search: str
    operation: str
    folder_id: str


def yandex_terms(first_poll: timedelta) -> ProviderTerms:
    return ProviderTerms(
        page_size=PAGE_SIZE,
        first_poll=first_poll,
        results_live=RESULTS_LIVE,
        submitting=SUBMITTING,
        fetching=FETCHING,
    )


class YandexSearch:
    """ports.SearchProvider"""

    name = "yandex"

    def __init__(
        self, addresses: YandexAddresses, authority: Authority, exchanges: Exchanges, first_poll: timedelta
    ) -> None:
        self._addresses = addresses
        self._authority = authority
        self._exchanges = exchanges
        self.terms = yandex_terms(first_poll)

    async def submit(self, request: SearchRequest) -> Submission:
        body = json.dumps(self._body(request), ensure_ascii=False).encode()
        try:
            answer = await self._ask("POST", f"{self._addresses.search}/v2/web/searchAsync", body)
        except NoToken as exc:
            return NotTaken(str(exc), "no token", by_settings=exc.refused)
        except NotSent as exc:
            return NotTaken(str(exc), "unreachable")
        except Unanswered as exc:
            return FateUnknown(str(exc), "unanswered")
        return _submission(answer)

    async def fetch(self, provider_id: str) -> Fetch:
        url = f"{self._addresses.operation}/operations/{quote(provider_id, safe='')}"
        try:
            answer = await self._ask("GET", url)
        except NoToken as exc:
            return NotNow(str(exc), "no token", by_settings=exc.refused)
        except (NotSent, Unanswered) as exc:
            return NotNow(str(exc), "unreachable")
        return _fetched(answer)

    def read(self, data: bytes) -> SerpPage:
        return read_serp(data)

    async def close(self) -> None:
        await self._exchanges.close()

    async def _ask(self, method: str, url: str, body: bytes | None = None) -> Answer:
        """Asked again only where a token is refused and there is a new one: then nothing was carried out."""
        shown = await self._authority.header()
        answer = await self._exchanges.ask(method, url, body, shown)
        if answer.status != 401:
            return answer
        self._authority.refused(shown)
        renewed = await self._authority.header()
        return answer if renewed == shown else await self._exchanges.ask(method, url, body, renewed)

    def _body(self, request: SearchRequest) -> dict[str, Any]:
        """Numbers are strings: so protobuf writes int64 in JSON. Yandex is not to search for other words."""
        region = {"region": request.region_code} if request.region_code else {}
        return {
            "query": {
                "searchType": "SEARCH_TYPE_RU",
                "queryText": request.text,
                "familyMode": "FAMILY_MODE_MODERATE",
                "page": str(request.page),
                "fixTypoMode": "FIX_TYPO_MODE_OFF",
            },
            "sortSpec": {"sortMode": "SORT_MODE_BY_RELEVANCE", "sortOrder": "SORT_ORDER_DESC"},
            "groupSpec": {
                "groupMode": "GROUP_MODE_DEEP",
                "groupsOnPage": str(PAGE_SIZE),
                "docsInGroup": "1",
            },
            "maxPassages": "2",
            "l10n": "LOCALIZATION_RU",
            "folderId": self._addresses.folder_id,
            "responseFormat": "FORMAT_XML",
            **region,
        }


def _submission(answer: Answer) -> Submission:
    code = str(answer.status)
    if answer.status == 200:
        provider_id = _object(answer.body).get("id")
        if isinstance(provider_id, str) and 0 < len(provider_id) <= 200 and provider_id.isprintable():
            return Accepted(provider_id)
        return FateUnknown("Yandex answered 200 without the id of an operation.", code)
    if answer.status in _NOT_TAKEN:
        pause = answer.retry_after or _PAUSES[answer.status]
        return NotTaken(_said(answer), code, pause, by_settings=answer.status in _BY_SETTINGS)
    if 400 <= answer.status < 499:
        return Refused(_said(answer), code)
    return FateUnknown(_said(answer), code)


def _fetched(answer: Answer) -> Fetch:
    if answer.status == 404:
        return Gone("Yandex does not know this operation any more.")
    if answer.status != 200:
        pause = answer.retry_after or _PAUSES.get(answer.status)
        by_settings = answer.status in _BY_SETTINGS
        return NotNow(_said(answer), str(answer.status), pause, by_settings=by_settings)
    operation = _object(answer.body)
    if error := operation.get("error"):
        return _failure(error)
    if operation.get("done") is True:
        return _ready(operation)
    # What is no operation at all is the trouble of this answer, not a request that takes its time.
    return Pending() if "id" in operation else _GARBLED


def _ready(operation: Mapping[str, Any]) -> Fetch:
    response = operation.get("response")
    raw = response.get("rawData") if isinstance(response, dict) else None
    if not isinstance(raw, str) or not raw:
        return _GARBLED
    try:
        return Ready(base64.b64decode(raw, validate=True))
    except ValueError:  # binascii.Error is one, and so is text that is not ASCII
        return _GARBLED


def _failure(error: Any) -> Fetch:
    given = error if isinstance(error, dict) else {}
    code = given.get("code")
    reason = f"Yandex could not search: {_line(given.get('message')) or 'no reason given'}"
    return Failed(reason, str(code), passing=not isinstance(code, int) or code in _PASSING)


def _said(answer: Answer) -> str:
    """Our advice, then Yandex's own words."""
    words = _line(_object(answer.body).get("message"))
    advice = _NOT_TAKEN.get(answer.status, f"Yandex answered HTTP {answer.status}.")
    return f"{advice} (It said: {words})" if words else advice


def _line(text: Any) -> str:
    return storable(" ".join(str(text or "").split()))[:_MOST_SAID]


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
