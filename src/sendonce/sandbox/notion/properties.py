"""Columns of a data source, and the values in them. Refuses what Notion refuses."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from sendonce.sandbox.notion import rich_text
from sendonce.sandbox.notion.refusals import invalid

_COMPUTED = ("created_time", "last_edited_time", "created_by", "last_edited_by")
_KINDS = (
    "title",
    "rich_text",
    "number",
    "select",
    "multi_select",
    "status",
    "date",
    "checkbox",
    "email",
    "url",
    "phone_number",
    "files",
    "relation",
    "people",
    *_COMPUTED,
)
_OPTIONED = ("select", "multi_select", "status")
_EMPTY: dict[str, Any] = {
    **{kind: [] for kind in ("title", "rich_text", "multi_select", "files", "relation", "people")},
    "checkbox": False,
}
Schema = dict[str, Any]


def new_column(name: str, wish: Any) -> Schema:
    """A column from ``{"number": {}}`` and the like."""
    if not isinstance(wish, dict):
        raise invalid(f"body failed validation: properties.{name} should be an object.")
    kind = wish.get("type") or next((key for key in wish if key in _KINDS), None)
    if kind not in _KINDS:
        raise invalid(f"body failed validation: properties.{name} has no type that exists: {sorted(wish)}.")
    settings = dict(wish.get(kind) or {})
    if kind in _OPTIONED:
        settings["options"] = [new_option(option) for option in settings.get("options", [])]
    if kind == "number":
        settings.setdefault("format", "number")
    if kind == "relation" and "data_source_id" not in settings:
        raise invalid(f"body failed validation: properties.{name}.relation.data_source_id should be defined.")
    identity = "title" if kind == "title" else secrets.token_urlsafe(3)
    return {"id": identity, "name": name, "description": None, "type": kind, kind: settings}


def new_option(wish: Any) -> dict[str, Any]:
    name = wish.get("name") if isinstance(wish, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= 100:
        raise invalid("body failed validation: an option's name should be of 1 to 100 characters.")
    if "," in name:
        raise invalid(f"Invalid select option, commas not allowed: {name}")
    return {
        "id": wish.get("id") or secrets.token_urlsafe(3),
        "name": name,
        "color": wish.get("color", "default"),
        "description": None,
    }


def change_columns(columns: dict[str, Schema], wishes: dict[str, Any]) -> dict[str, Schema]:
    """The columns after a PATCH: null removes, ``name`` renames, a type adds or changes."""
    changed = dict(columns)
    for key, wish in wishes.items():
        known = find_column(changed, key)
        if wish is None and known:
            del changed[known["name"]]
        elif known and isinstance(wish, dict) and set(wish) == {"name"}:
            renamed = {name: column for name, column in changed.items() if name != known["name"]}
            changed = {**renamed, wish["name"]: {**known, "name": wish["name"]}}
        elif known:
            fresh = new_column(known["name"], wish)
            if known["type"] == "status" and fresh["type"] == "status":
                raise invalid("Updating the options of a status property is not supported.")
            changed[known["name"]] = {**fresh, "id": known["id"]}
        elif wish is not None:
            changed[key] = new_column(key, wish)
    titles = [column for column in changed.values() if column["type"] == "title"]
    if len(titles) != 1:
        raise invalid("A data source has exactly one title property.")
    return changed


def find_column(columns: dict[str, Schema], key: str) -> Schema | None:
    """A column by its name or its id."""
    return columns.get(key) or next((column for column in columns.values() if column["id"] == key), None)


def stored_value(column: Schema, given: Any) -> Any:
    """What is kept for a value in a request: the part under the type's name."""
    kind, name = column["type"], column["name"]
    if not isinstance(given, dict) or kind not in given:
        raise invalid(f"{name} is expected to be {kind}.")
    if kind in _COMPUTED:
        raise invalid(f"{name} is computed and cannot be set.")
    value = given[kind]
    if kind in ("title", "rich_text"):
        return rich_text.stored(value, f"properties.{name}.{kind}")
    if value is None:
        return _EMPTY.get(kind)
    return _checked(column, kind, value)


def _checked(column: Schema, kind: str, value: Any) -> Any:
    name = column["name"]
    if kind in ("select", "status"):
        return _option(column, value)
    if kind == "multi_select":
        return [_option(column, item) for item in value]
    if kind == "date":
        return _date(name, value)
    good = {
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "checkbox": isinstance(value, bool),
        "email": isinstance(value, str) and 0 < len(value) <= 200,
        "phone_number": isinstance(value, str) and 0 < len(value) <= 200,
        "url": isinstance(value, str) and 0 < len(value) <= 2000,
    }
    if not good.get(kind, isinstance(value, list) and len(value) <= 100):
        raise invalid(
            f"body failed validation: properties.{name}.{kind} is not a good value: {value!r:.100}."
        )
    return value


def _option(column: Schema, value: Any) -> dict[str, Any]:
    """A select makes the options it does not know; a status refuses them."""
    kind = column["type"]
    options = column[kind]["options"]
    wanted = value if isinstance(value, dict) else {}
    for option in options:
        if (
            wanted.get("id", option["id"]) == option["id"]
            and wanted.get("name", option["name"]) == option["name"]
        ):
            return dict(option)
    if kind == "status":
        raise invalid(f'Invalid status option. Status option "{wanted.get("name")}" does not exist".')
    fresh = new_option(wanted)
    options.append(fresh)
    return fresh


def _date(name: str, value: Any) -> dict[str, Any]:
    try:
        datetime.fromisoformat(value["start"])
    except (TypeError, KeyError, ValueError) as exc:
        raise invalid(f"body failed validation: properties.{name}.date.start is not a date.") from exc
    return {"start": value["start"], "end": value.get("end"), "time_zone": value.get("time_zone")}


def empty_value(column: Schema) -> Any:
    return _EMPTY.get(column["type"])


def plain_value(kind: str, value: Any) -> Any:
    """A value as people would say it."""
    if kind in ("title", "rich_text"):
        return rich_text.plain(value)
    if isinstance(value, dict):
        return value.get("name", value.get("start"))
    if kind == "relation":
        return [item["id"] for item in value]
    return value


def value_from_plain(column: Schema, said: Any) -> dict[str, Any]:
    """The request's form of a value that somebody said plainly."""
    kind = column["type"]
    if kind in ("title", "rich_text"):
        return {kind: [{"text": {"content": str(said)}}] if said else []}
    if kind in ("select", "status"):
        return {kind: {"name": said} if said else None}
    if kind == "date":
        return {kind: {"start": said} if said else None}
    return {kind: said}
