"""What Notion posts to us: signed events of the integration, and unsigned presses of a button.

A button, or an automation, posts ``{"source": …, "data": {page}}`` without a signature; the secret comes in a
header. An integration webhook begins with a verification token in a body of its own. The owner copies it into
Notion and into NOTION_WEBHOOK_TOKEN, and from then on each body is signed with it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sendonce.adapters.notion.values import property_id, read_time
from sendonce.domain.engine.strict_json import strict_object
from sendonce.domain.mailouts.page_ids import page_id
from sendonce.errors import BadInput

SIGNATURE_HEADER = "X-Notion-Signature"
_SIGNATURE = re.compile(r"sha256=[0-9a-fA-F]{64}")
_TOKEN = re.compile(r"[\x21-\x7e]{8,300}")


@dataclass(frozen=True, slots=True)
class Handshake:
    """The first post: whoever set up the webhook pastes this token into Notion. It is a secret."""

    verification_token: str

    def __repr__(self) -> str:
        return "Handshake(…)"


@dataclass(frozen=True, slots=True)
class NotionEvent:
    """A signal that something changed; what it is now must be read. ``id`` is the same in all its retries.

    ``changed`` are the ids of the properties that changed, None where Notion does not say; ``at`` is when.
    """

    id: str
    type: str
    entity_type: str
    entity_id: str
    by_bots_only: bool
    at: datetime | None = None
    changed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """``event_id`` is the same when Notion tries again; ``page`` is the page object as Notion sent it."""

    page_id: str
    event_id: str | None
    page: Mapping[str, Any]


def is_signed(body: bytes, header: str | None, verification_token: str) -> bool:
    """Whether the header is the signature of the raw body. Without a token nothing is."""
    if not verification_token or header is None or not _SIGNATURE.fullmatch(header):
        return False
    digest = hmac.new(verification_token.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"sha256={digest}", header.lower())


def read_handshake(body: bytes) -> Handshake | None:
    """The verification token, if this body is nothing but that. Anybody can post one: it proves nothing."""
    content = strict_object(body, "The Notion webhook")
    token = content.get("verification_token")
    if len(content) != 1 or not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    return Handshake(token)


def read_event(body: bytes) -> NotionEvent:
    """The event in a body whose signature is good."""
    content = strict_object(body, "The Notion webhook")
    entity, authors = content.get("entity"), content.get("authors")
    if not isinstance(entity, dict) or not isinstance(content.get("id"), str):
        raise BadInput("The Notion webhook has no id or no entity.")
    kinds = [it.get("type") for it in (authors if isinstance(authors, list) else []) if isinstance(it, dict)]
    return NotionEvent(
        id=content["id"],
        type=str(content.get("type")),
        entity_type=str(entity.get("type")),
        entity_id=page_id(str(entity.get("id"))),
        # What we write ourselves comes back as an event, too.
        by_bots_only=bool(kinds) and all(kind == "bot" for kind in kinds),
        at=read_time(content.get("timestamp")),
        changed=_changed(content.get("data")),
    )


def _changed(data: Any) -> frozenset[str] | None:
    listed = data.get("updated_properties") if isinstance(data, dict) else None
    if not isinstance(listed, list) or not listed:
        return None
    return frozenset(property_id(it) for it in listed)


def is_button_press(content: Mapping[str, Any]) -> bool:
    """Whether a parsed body is of the shape that a button or an automation posts."""
    return isinstance(content.get("data"), dict) and isinstance(content.get("source"), dict)


def read_button_press(content: Mapping[str, Any]) -> ButtonPress:
    """The page whose button was pressed, from a parsed body. Raises BadInput where no page is in it."""
    source, data = content.get("source"), content.get("data")
    if not isinstance(source, dict) or not isinstance(data, dict) or not isinstance(data.get("id"), str):
        raise BadInput('The body is not what a Notion button posts: {"source": {…}, "data": {"id": …}}.')
    if data.get("object", "page") != "page":
        raise BadInput(f"The Notion button is on a {str(data['object'])[:30]!r}: it must be on a page.")
    event_id = source.get("event_id")
    return ButtonPress(page_id(data["id"]), event_id if isinstance(event_id, str) else None, data)
