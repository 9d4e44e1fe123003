"""Filters, sorts, and lists in pages of a hundred."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sendonce.sandbox.notion.properties import find_column, plain_value
from sendonce.sandbox.notion.refusals import invalid

Row = dict[str, Any]

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda have, want: bool(have == want),
    "does_not_equal": lambda have, want: bool(have != want),
    "contains": lambda have, want: want in (have or ""),
    "starts_with": lambda have, want: str(have or "").startswith(want),
    "is_empty": lambda have, want: (have in (None, "", [])) is want,
    "is_not_empty": lambda have, want: (have not in (None, "", [])) is want,
    "greater_than": lambda have, want: have is not None and have > want,
    "less_than": lambda have, want: have is not None and have < want,
    "after": lambda have, want: have is not None and _moment(have) > _moment(want),
    "before": lambda have, want: have is not None and _moment(have) < _moment(want),
}


def matches(page: Row, columns: dict[str, Any], wish: Any) -> bool:
    """Whether a page object passes a filter."""
    if not isinstance(wish, dict):
        raise invalid("body failed validation: body.filter should be an object.")
    if "and" in wish:
        return all(matches(page, columns, part) for part in wish["and"])
    if "or" in wish:
        return any(matches(page, columns, part) for part in wish["or"])
    if "timestamp" in wish:
        return _passes(page[wish["timestamp"]], wish[wish["timestamp"]])
    column = find_column(columns, str(wish.get("property")))
    if column is None:
        raise invalid(f"Could not find property with name or id: {wish.get('property')}")
    kind = column["type"]
    if kind not in wish:
        raise invalid(f"database property {kind} does not match filter {sorted(set(wish) - {'property'})}")
    value = page["properties"][column["name"]][kind]
    return _passes(plain_value(kind, value), wish[kind])


def _passes(have: Any, condition: Mapping[str, Any]) -> bool:
    for name, want in condition.items():
        if name not in _TESTS:
            raise invalid(f"body failed validation: there is no filter condition {name!r} here.")
        if not _TESTS[name](have, want):
            return False
    return True


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def sort(pages: list[Row], columns: dict[str, Any], wishes: Any) -> list[Row]:
    """By the first wish first; without any the newest comes first."""
    ordered = sorted(pages, key=lambda page: str(page["created_time"]), reverse=True)
    for wish in reversed(wishes or []):
        ordered.sort(key=_key(columns, wish), reverse=wish.get("direction") == "descending")
    return ordered


def _key(columns: dict[str, Any], wish: Mapping[str, Any]) -> Callable[[Row], Any]:
    if "timestamp" in wish:
        return lambda page: page[wish["timestamp"]]
    column = find_column(columns, str(wish.get("property")))
    if column is None:
        raise invalid(f"Could not find sort property with name or id: {wish.get('property')}")
    kind, name = column["type"], column["name"]

    def key(page: Row) -> Any:
        value = plain_value(kind, page["properties"][name][kind])
        return (value is not None, value)

    return key


def paginate(items: list[Row], asked: Mapping[str, Any], kind: str) -> Row:
    """One page of a list. The cursor is the id of the first item of the next page."""
    try:
        size = int(asked.get("page_size", 100))
    except (TypeError, ValueError):
        size = 0
    if not 1 <= size <= 100:
        raise invalid(
            f"body failed validation: page_size should be from 1 to 100: {asked.get('page_size')!r}."
        )
    start = 0
    if cursor := asked.get("start_cursor"):
        places = [place for place, item in enumerate(items) if item["id"] == cursor]
        if not places:
            raise invalid(f"The start_cursor provided is invalid: {cursor}")
        start = places[0]
    rest = items[start + size :]
    return {
        "object": "list",
        "results": items[start : start + size],
        "next_cursor": rest[0]["id"] if rest else None,
        "has_more": bool(rest),
        "type": kind,
        kind: {},
    }
