"""Property values: Notion's JSON to ours and back, within Notion's limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.errors import BadInput

# developers.notion.com, request limits. Text is counted as JavaScript does, in UTF-16 units.
MOST_TEXT = 2000
MOST_EMAIL = 200
MOST_OPTION = 100


def property_id(value: object) -> str:
    """The id of a property; Notion writes it percent-encoded in some places."""
    return unquote(value) if isinstance(value, str) else ""


def plain_text(pieces: Any) -> str:
    """Titles and texts are arrays: a bold word in the middle makes three pieces."""
    if not isinstance(pieces, list):
        return ""
    texts = (piece.get("plain_text") for piece in pieces if isinstance(piece, dict))
    return "".join(text for text in texts if isinstance(text, str))


def read_text(value: Any) -> str:
    """The text of a title, rich_text, select, status, e-mail or URL property; empty where there is none."""
    if not isinstance(value, dict):
        return ""
    content = value.get(str(value.get("type")))
    if isinstance(content, dict):
        content = content.get("name")
    if isinstance(content, str):
        return content.strip()
    return plain_text(content).strip()


def read_flag(value: Any) -> bool:
    return isinstance(value, dict) and value.get("checkbox") is True


def read_date(value: Any) -> datetime | None:
    date = value.get("date") if isinstance(value, dict) else None
    return read_time(date.get("start") if isinstance(date, dict) else None)


@dataclass(frozen=True, slots=True)
class PageTime:
    """A date as it was put in: with an hour or without, with an offset, with a zone, or with neither."""

    text: str
    zone: str = ""

    def moment(self, usual: ZoneInfo) -> datetime:
        """``usual`` is the zone where none is named. Raises BadInput for a day without an hour."""
        try:
            written = datetime.fromisoformat(self.text)
            zone = ZoneInfo(self.zone) if self.zone else usual
        except (ValueError, OSError, ZoneInfoNotFoundError) as exc:
            raise BadInput(f"The time to send at, {self.text[:40]!r}, is not a time: set it again.") from exc
        if len(self.text) <= len("2026-12-01"):
            raise BadInput(f"The time to send at has no hour: {self.text}. Add one in Notion: Include time.")
        return (written if written.tzinfo else written.replace(tzinfo=zone)).astimezone(UTC)


def read_page_time(value: Any) -> PageTime | None:
    date = value.get("date") if isinstance(value, dict) else None
    if not isinstance(date, dict) or not isinstance(date.get("start"), str):
        return None
    zone = date.get("time_zone")
    return PageTime(date["start"], zone if isinstance(zone, str) else "")


def read_time(text: Any) -> datetime | None:
    """A moment; a date without an hour is its midnight in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def write(kind: str, value: Any) -> dict[str, Any]:
    """The JSON that sets a property of type ``kind``; None clears it."""
    match kind:
        case "title" | "rich_text":
            pieces = [{"type": "text", "text": {"content": clip(value, MOST_TEXT)}}] if value else []
            return {kind: pieces}
        case "select" | "status":
            # Notion splits option names at commas and refuses them.
            return {kind: {"name": clip(value.replace(",", " "), MOST_OPTION)} if value else None}
        case "date":
            return {kind: {"start": value.astimezone(UTC).isoformat(timespec="seconds")} if value else None}
        case "email":
            return {kind: clip(value, MOST_EMAIL) if value else None}
        case "relation":
            return {kind: [{"id": value}] if value else []}
        case _:
            return {kind: value}


def clip(text: str, most: int) -> str:
    """At most so many UTF-16 units, with an ellipsis where something was cut."""
    if _units(text) <= most:
        return text
    room = most - 1
    for end, letter in enumerate(text):
        room -= _units(letter)
        if room < 0:
            return text[:end] + "…"
    return text


def _units(text: str) -> int:
    return len(text) + sum(letter > "\uffff" for letter in text)
