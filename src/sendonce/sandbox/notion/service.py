"""The door of this Notion: who may ask, how often, and for what."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any
from uuid import UUID

from sendonce.sandbox.http_server import Reply, Request, json_reply
from sendonce.sandbox.notion.contents import Contents
from sendonce.sandbox.notion.faults import NotionDice, is_after
from sendonce.sandbox.notion.files import Files
from sendonce.sandbox.notion.objects import Objects
from sendonce.sandbox.notion.refusals import NotionRefusal, invalid
from sendonce.sandbox.notion.seeds import Seeds, plant
from sendonce.sandbox.notion.workspace import BOT, open_workspace

VERSIONS = ("2025-09-03", "2026-03-11")
_MAX_BODY = 500 * 1024
_ID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class NotionSettings:
    """``requests`` in any ``window`` seconds; ``file_seconds`` is how long a file's link lives."""

    directory: Path
    token: str
    requests: int
    window: float
    file_seconds: float
    tables: bool
    seed: int


class Notion:
    def __init__(self, settings: NotionSettings) -> None:
        self.settings = settings
        self.dice = NotionDice(settings.seed)
        self.files = Files(settings.directory, settings.file_seconds)
        self.workspace, is_new = open_workspace(settings.directory)
        self.contents = Contents(self.workspace, Objects(self.workspace, self.files.link))
        self.seeds = Seeds()
        if is_new:
            plant(self.contents, self.files, with_tables=settings.tables)
            self.workspace.save()
        self.asked: Counter[str] = Counter()
        self.answered: Counter[int] = Counter()
        self._window_ends = 0.0
        self._left = 0

    def environment(self, endpoint: str) -> dict[str, str]:
        """The variables that point a product at this Notion."""
        tables = {"NOTION_LETTERS_ID": self.seeds.letters, "NOTION_ERRORS_ID": self.seeds.errors}
        return {
            "NOTION_API_URL": endpoint,
            "NOTION_TOKEN": self.settings.token,
            **(tables if self.settings.tables else {}),
        }

    async def answer(self, request: Request) -> Reply:
        what = f"{request.method} {request.path}"
        self.asked[f"{request.method} {_ID.sub('{id}', request.path)}"] += 1
        if delay := self.dice.latency():
            await asyncio.sleep(delay)
        fault = self.dice.throw(what)
        carried_out = Reply() if fault and not is_after(fault) else self._carry_out(request)
        reply = self.dice.reply(fault, carried_out) if fault else carried_out
        self.answered[reply.status] += 1
        return reply

    def _carry_out(self, request: Request) -> Reply:
        try:
            self._admit(request)
            action = self._action(request)
            shown = action()
        except NotionRefusal as refusal:
            return refusal.reply()
        if request.method != "GET":
            self.workspace.save()
        return json_reply(shown)

    def _admit(self, request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {self.settings.token}":
            raise NotionRefusal(401, "API token is invalid.")
        version = request.headers.get("notion-version")
        if version is None:
            raise NotionRefusal(400, "Notion-Version header should be defined.", "missing_version")
        if version not in VERSIONS:
            raise invalid(
                f"Notion-Version header failed validation: it should be one of {', '.join(VERSIONS)}."
            )
        now = time.monotonic()
        if now >= self._window_ends:
            self._window_ends, self._left = now + self.settings.window, self.settings.requests
        if self._left <= 0:
            wait = str(ceil(self._window_ends - now))
            reason = {"rate_limit_reason": "connection_limit"}
            raise NotionRefusal(
                429, "You have been rate limited.", headers=(("Retry-After", wait),), additional_data=reason
            )
        self._left -= 1

    def _action(self, request: Request) -> Callable[[], dict[str, Any]]:
        """What to call for a request, or a refusal for a path that there is not."""
        parts = request.path.removeprefix("/v1/").strip("/").split("/")
        shape = "/".join("{id}" if _dashed(part) else part for part in parts)
        identity = next((found for part in parts if (found := _dashed(part))), "")
        it = self.contents
        body = _json(request)
        asked = request.parameters()
        actions: dict[str, Callable[[], dict[str, Any]]] = {
            "GET users/me": lambda: _ME,
            "POST search": lambda: it.search(body),
            "POST pages": lambda: it.create_page(body),
            "GET pages/{id}": lambda: it.page(identity),
            "PATCH pages/{id}": lambda: it.update_page(identity, body),
            "GET blocks/{id}": lambda: it.block(identity),
            "DELETE blocks/{id}": lambda: it.delete_block(identity),
            "GET blocks/{id}/children": lambda: it.children(identity, asked),
            "PATCH blocks/{id}/children": lambda: it.append_children(identity, body),
            "POST databases": lambda: it.create_database(body),
            "GET databases/{id}": lambda: it.database(identity),
            "PATCH databases/{id}": lambda: it.update_database(identity, body),
            "POST data_sources": lambda: it.create_data_source(body),
            "GET data_sources/{id}": lambda: it.data_source(identity),
            "PATCH data_sources/{id}": lambda: it.update_data_source(identity, body),
            "POST data_sources/{id}/query": lambda: it.query(identity, body),
        }
        action = actions.get(f"{request.method} {shape}")
        if action is None:
            raise NotionRefusal(
                400, f"Invalid request URL: {request.method} {request.path}.", "invalid_request_url"
            )
        return action


_ME = {
    "object": "user",
    "id": BOT,
    "type": "bot",
    "name": "sandbox",
    "avatar_url": None,
    "bot": {"owner": {"type": "workspace", "workspace": True}, "workspace_name": "sandbox"},
}


def _dashed(part: str) -> str:
    return str(UUID(part)) if _ID.fullmatch(part) else ""


def _json(request: Request) -> dict[str, Any]:
    if request.method in ("GET", "DELETE"):
        return {}
    if len(request.body) > _MAX_BODY:
        raise NotionRefusal(413, "Request body too large.", "validation_error")
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as exc:
        raise NotionRefusal(400, "Error parsing JSON body.", "invalid_json") from exc
    if not isinstance(body, dict):
        raise invalid("body failed validation: body should be an object.")
    return body
