"""/sandbox/yandex: look inside, make a service account's key, inject faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sendonce.errors import BadInput
from sendonce.sandbox.http_server import Reply, Request, json_reply
from sendonce.sandbox.yandex.faults import OperationFault, SubmitFault, YandexFaults
from sendonce.sandbox.yandex.service import Yandex

PREFIX = "/sandbox/yandex"
_PAGE = """\
Yandex Search API v2, deferred, on this machine.

folder    {folder}
API key   {key}

Look:    GET  /sandbox/yandex/stats    /sandbox/yandex/operations
Key:     POST /sandbox/yandex/key   (a service account's; the file is {key_file})
Token:   DELETE /sandbox/yandex/tokens   (all that were given out are good no more)
Faults:  GET, POST, DELETE /sandbox/yandex/faults
         {{"submits": ["reset_after", "ok"], "operations": ["bad_base64"], "pending_seconds": 0}}
         shares from 0 to 1: {submits}; {operations}
"""


class YandexControl:
    def __init__(self, yandex: Yandex) -> None:
        self._yandex = yandex

    def answer(self, request: Request) -> Reply:
        if request.method != "GET" and "origin" in request.headers:
            # Only browsers send Origin: no web page may steer this world behind its owner's back.
            return json_reply({"error": "Requests from web pages are refused."}, 403)
        try:
            return self._act(request)
        except BadInput as exc:
            return json_reply({"error": str(exc)}, 400)

    def _act(self, request: Request) -> Reply:
        name = request.path.removeprefix(PREFIX).strip("/")
        if (request.method, name) == ("GET", ""):
            return self._page()
        it = self._yandex
        actions: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "stats"): self._stats,
            ("GET", "operations"): lambda: [asdict(each) for each in it.log],
            ("POST", "key"): it.iam.make_key,
            ("DELETE", "tokens"): it.iam.issued.clear,
            ("GET", "faults"): it.dice.plan.describe,
            ("POST", "faults"): lambda: self._set_faults(it.dice.plan.changed(_json_object(request))),
            ("DELETE", "faults"): lambda: self._set_faults(YandexFaults()),
        }
        action = actions.get((request.method, name))
        if action is None:
            return json_reply({"error": f"Nothing at {request.path}; GET {PREFIX} tells what there is."}, 404)
        return json_reply(action())

    def _set_faults(self, plan: YandexFaults) -> dict[str, Any]:
        self._yandex.dice.plan = plan
        return plan.describe()

    def _stats(self) -> dict[str, Any]:
        it = self._yandex
        return {
            "accepted": len(it.log),
            "asked": dict(it.asked),
            "answered": {str(status): count for status, count in it.answered.items()},
            "faults": dict(it.dice.injected),
        }

    def _page(self) -> Reply:
        it = self._yandex
        text = _PAGE.format(
            folder=it.settings.folder_id,
            key=it.settings.api_key,
            key_file=it.iam.key_file,
            submits=", ".join(SubmitFault),
            operations=", ".join(OperationFault),
        )
        return Reply(body=text.encode(), content_type="text/plain; charset=utf-8")


def _json_object(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body or b"{}")
    except ValueError as exc:
        raise BadInput(f"The body is not JSON: {exc}.") from exc
    if not isinstance(body, dict):
        raise BadInput("The body is not a JSON object.")
    return body
