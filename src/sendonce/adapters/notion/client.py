"""The verbs of Notion's API, with our own policy of retries.

Reading, and changing something to an absolute value, may be asked any number of times. Creating may not:
when the reply to it is lost, ``ReplyLost`` tells the caller to look first. (The official client repeats
429 and 503 only, and gives up at once on 409, 502, 504 and 529.)
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from sendonce.adapters.notion.answers import (
    Fate,
    NotionBusy,
    ReplyLost,
    fate_of,
    out_of_tries,
    read_object,
    refusal,
)
from sendonce.adapters.notion.pace import Pace, Policy
from sendonce.adapters.notion.wire import Answer, NotSent, Wire, read_api_address
from sendonce.adapters.web.deadlines import Deadline
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.errors import BadInput, SendonceError, Unavailable

API_VERSION = "2026-03-11"
API_URL = "https://api.notion.com"
PAGE_SIZE = 100


class NotionClient:
    """May be used by several threads; their requests take turns on one connection."""

    def __init__(
        self,
        token: str,
        api_url: str = API_URL,
        *,
        policy: Policy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if not token.isascii() or not token.isprintable() or not token.strip():
            raise BadInput(
                "NOTION_TOKEN is empty or not one line of ASCII. Copy the internal integration secret from "
                "notion.so/my-integrations."
            )
        self._policy = policy or Policy()
        self._address = read_api_address(api_url)
        self._wire = Wire(self._address, tls)
        self._turn = threading.Lock()
        self._pace = Pace(self._policy)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Notion-Version": API_VERSION,
            "Accept": "application/json",
            "User-Agent": "sendonce",
        }

    @property
    def is_stand_in(self) -> bool:
        """Whether the API is on this machine: then so may be the files that it links to."""
        return self._address.loopback

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path, None)

    def search(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A POST that changes nothing."""
        return self._ask("POST", path, body)

    def update(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A PATCH with absolute values: doing it twice is doing it once."""
        return self._ask("PATCH", path, body)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A POST that makes something new. Raises ReplyLost when it is unknown whether it did."""
        return self._ask("POST", path, body, creates=True)

    def pages(self, path: str, body: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """All items of a paginated list: by GET, or by POST where there is a ``body``.

        A page may hold fewer items than asked for, even none; only ``has_more`` tells the end.
        """
        cursor: dict[str, str | int] = {}
        seen: set[str] = set()
        while True:
            if body is None:
                answer = self.get(path, page_size=PAGE_SIZE, **cursor)
            else:
                answer = self.search(path, {**body, "page_size": PAGE_SIZE, **cursor})
            items = answer.get("results")
            yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()
            following = answer.get("next_cursor")
            if not answer.get("has_more") or not isinstance(following, str):
                return
            if following in seen:
                raise Unavailable(f"Notion's list at {path} goes in circles. Try again.")
            seen.add(following)
            cursor = {"start_cursor": following}

    def close(self) -> None:
        with self._turn:
            self._wire.close()

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None, *, creates: bool = False
    ) -> dict[str, Any]:
        what = f"{method} {path.partition('?')[0]}"
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        patience = Deadline(self._policy.patience)
        for retry in range(self._policy.tries):
            queue = self._pace.wait_for_turn()
            _wait(patience, queue, NotionBusy(f"Notion asks to wait {queue:.0f} s.", queue))
            try:
                return self._try_once(method, path, content, what, creates, patience)
            except _Passing as passing:
                if retry + 1 >= self._policy.tries:
                    raise passing.trouble from passing.__cause__
                pause = self._policy.pause_before(retry) if passing.wait is None else passing.wait
                _wait(patience, pause, passing.trouble)
        raise AssertionError("the last try returns or raises")

    def _try_once(
        self, method: str, path: str, content: bytes | None, what: str, creates: bool, patience: Deadline
    ) -> dict[str, Any]:
        """The answer. Raises _Passing for what may go better next time, and what is final as it is."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if content is not None else {})}
        try:
            with self._own_turn(patience):
                deadline = Deadline(min(self._policy.request_seconds, patience.left()))
                answer = self._wire.exchange(method, path, headers, content, fresh=creates, deadline=deadline)
        except (NotSent, TimeoutError) as exc:
            raise _Passing(Unavailable(f"Notion cannot be reached ({exc}). Try again.")) from exc
        except NoAnswer as exc:
            if creates:
                raise ReplyLost(f"Notion's reply to {what} was lost ({exc}).") from exc
            raise _Passing(Unavailable(f"Notion does not answer ({what}; {exc}). Try again.")) from exc
        return self._read(answer, what, creates)

    def _read(self, answer: Answer, what: str, creates: bool) -> dict[str, Any]:
        fate = fate_of(answer)
        if fate is Fate.REFUSED:
            raise refusal(answer, what)
        if fate is Fate.UNKNOWN and creates:
            raise ReplyLost(f"Notion answered {answer.status} to {what}: it may have done it or not.")
        if fate is not Fate.DONE:
            if answer.retry_after is not None:
                self._pace.close_for(answer.retry_after)
            raise _Passing(out_of_tries(answer, what), answer.retry_after)
        try:
            return read_object(answer, what)
        except Unavailable as exc:
            if creates:
                raise ReplyLost(str(exc)) from exc
            raise _Passing(exc) from exc

    @contextmanager
    def _own_turn(self, patience: Deadline) -> Iterator[None]:
        """The connection, when the other threads let go of it in time."""
        if not self._turn.acquire(timeout=patience.left()):
            raise TimeoutError("other requests are still waiting for an answer")
        try:
            yield
        finally:
            self._turn.release()


def _wait(patience: Deadline, seconds: float, trouble: SendonceError) -> None:
    """Wait, or raise the trouble at once where that would take longer than anybody wants to."""
    try:
        too_long = seconds > patience.left()
    except TimeoutError:
        too_long = True
    if too_long:
        raise trouble
    if seconds > 0:
        time.sleep(seconds)


class _Passing(Exception):
    """A trouble that may be over at the next try, after ``wait`` seconds where Notion said how long."""

    def __init__(self, trouble: SendonceError, wait: float | None = None) -> None:
        super().__init__(str(trouble))
        self.trouble = trouble
        self.wait = wait
