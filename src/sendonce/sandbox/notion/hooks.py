"""What Notion posts: the button in a page, and the webhooks of an integration."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from sendonce.errors import BadInput
from sendonce.sandbox.notion.contents import Contents
from sendonce.sandbox.notion.workspace import BOT, PERSON
from sendonce.sandbox.settings import loopback_target
from sendonce.sandbox.webhook import WebhookConnection

_AUTOMATION = "a0a0a0a0-0000-4000-8000-000000000001"


class Hooks:
    """A call that is not answered with 2xx pauses the automation until somebody resumes it, as in Notion."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self.paused = False
        self.token = ""

    async def press(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """Press the button in a page: ``{"page", "url", "headers"?, "event_id"?}``."""
        if self.paused:
            return {"status": None, "paused": True, "error": "Paused: POST /sandbox/notion/resume."}
        event_id = str(wish.get("event_id") or uuid.uuid4())
        source = {
            "type": "automation",
            "automation_id": _AUTOMATION,
            "action_id": str(uuid.uuid5(uuid.UUID(_AUTOMATION), "action")),
            "event_id": event_id,
            "user_id": PERSON,
            "attempt": 1,
        }
        body = json.dumps(
            {"source": source, "data": self._contents.page(_text(wish, "page"))}, ensure_ascii=False
        )
        status = await _post(_text(wish, "url"), _headers(wish), body.encode())
        self.paused = status is None or not 200 <= status < 300
        return {"status": status, "paused": self.paused, "event_id": event_id}

    async def subscribe(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """The handshake of an integration webhook: ``{"url"}``. The token is what the owner pastes back."""
        self.token = f"secret_{secrets.token_urlsafe(32)}"
        body = json.dumps({"verification_token": self.token}).encode()
        return {"status": await _post(_text(wish, "url"), [], body), "verification_token": self.token}

    async def tell(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """A signed event: ``{"page", "url", "type"?, "author"?: "person" or "bot", "id"?, "timestamp"?,
        "changed"?}``. As in Notion, an event tells of all that a person wrote since the last one."""
        author = "bot" if wish.get("author") == "bot" else "person"
        page = self._contents.page(_text(wish, "page"))
        event = {
            "id": str(wish.get("id") or uuid.uuid4()),
            "timestamp": str(wish.get("timestamp") or page["last_edited_time"]),
            "type": str(wish.get("type") or "page.properties_updated"),
            "entity": {"id": page["id"], "type": "page"},
            "data": {"parent": page["parent"], "updated_properties": self._changed(page, wish)},
            "authors": [{"id": BOT if author == "bot" else PERSON, "type": author}],
            "attempt_number": 1,
            "api_version": "2026-03-11",
        }
        body = json.dumps(event).encode()
        digest = hmac.new(self.token.encode(), body, hashlib.sha256).hexdigest()
        headers = [("X-Notion-Signature", f"sha256={digest}")]
        return {"status": await _post(_text(wish, "url"), headers, body), "id": event["id"]}

    def _changed(self, page: Mapping[str, Any], wish: Mapping[str, Any]) -> list[str]:
        untold: list[str] = self._contents.workspace.pages[page["id"]].pop("untold", [])
        named = wish.get("changed")
        if not isinstance(named, list):
            return untold
        return [str(page["properties"][name]["id"]) for name in named if name in page["properties"]]


def _text(wish: Mapping[str, Any], name: str) -> str:
    value = wish.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{name} is {value!r}: give a text.")
    return value


def _headers(wish: Mapping[str, Any]) -> list[tuple[str, str]]:
    given = wish.get("headers") or {}
    if not isinstance(given, dict):
        raise BadInput('headers must be an object such as {"X-Mailout-Token": "…"}.')
    return [(str(name), str(value)) for name, value in given.items()]


async def _post(url: str, headers: list[tuple[str, str]], body: bytes) -> int | None:
    """The status, or None where nobody answers."""
    connection = WebhookConnection()
    try:
        return await connection.post(
            loopback_target(url), [("Content-Type", "application/json"), *headers], body
        )
    except OSError:
        return None
    finally:
        await connection.close()
