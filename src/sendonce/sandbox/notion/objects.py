"""Pages, blocks, databases and data sources as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sendonce.sandbox.notion import rich_text
from sendonce.sandbox.notion.properties import empty_value
from sendonce.sandbox.notion.workspace import Record, Workspace

FileLink = Callable[[str], dict[str, str]]
"""The name of a file to a fresh link with its expiry time."""


class Objects:
    def __init__(self, workspace: Workspace, link: FileLink) -> None:
        self._workspace = workspace
        self._link = link

    def page(self, page: Record) -> Record:
        return {
            "object": "page",
            **_envelope(page),
            "icon": None,
            "cover": None,
            "is_locked": False,
            "properties": self._page_properties(page),
            "url": _url(page["id"], rich_text.plain(page["values"].get("title", []))),
            "public_url": None,
        }

    def _page_properties(self, page: Record) -> dict[str, Any]:
        source = self._workspace.data_sources.get(page["parent"].get("data_source_id", ""))
        if source is None:
            return {"title": {"id": "title", "type": "title", "title": page["values"].get("title", [])}}
        return {name: self._property(page, column) for name, column in source["properties"].items()}

    def _property(self, page: Record, column: dict[str, Any]) -> dict[str, Any]:
        kind = column["type"]
        if kind in ("created_time", "last_edited_time", "created_by", "last_edited_by"):
            value = page[kind]
        else:
            value = page["values"].get(column["id"], empty_value(column))
        if kind == "files":
            value = [self._file(item) for item in value]
        more = {"has_more": False} if kind == "relation" else {}
        return {"id": column["id"], "type": kind, kind: value, **more}

    def database(self, database: Record) -> Record:
        sources = [
            {"id": identity, "name": rich_text.plain(source["title"])}
            for identity, source in self._workspace.data_sources.items()
            if source["parent"]["database_id"] == database["id"] and not source["in_trash"]
        ]
        return {
            "object": "database",
            **_envelope(database),
            "title": database["title"],
            "description": [],
            "icon": None,
            "cover": None,
            "is_inline": database.get("is_inline", False),
            "is_locked": False,
            "data_sources": sources,
            "url": _url(database["id"], ""),
            "public_url": None,
        }

    def data_source(self, source: Record) -> Record:
        database = self._workspace.databases[source["parent"]["database_id"]]
        return {
            "object": "data_source",
            **_envelope(source),
            "database_parent": database["parent"],
            "title": source["title"],
            "description": [],
            "icon": None,
            "properties": source["properties"],
            "url": _url(database["id"], ""),
        }

    def block(self, identity: str) -> Record:
        """A block; a page or a table on a page shows there as a block, too, with its own id."""
        record = self._workspace.blocks.get(identity)
        if record is not None:
            body = self._file(record["body"]) if record["type"] in _WITH_FILE else record["body"]
            return self._block(record, record["type"], body)
        page = self._workspace.pages.get(identity)
        if page is not None:
            return self._block(page, "child_page", {"title": rich_text.plain(page["values"]["title"])})
        database = self._workspace.databases[identity]
        return self._block(database, "child_database", {"title": rich_text.plain(database["title"])})

    def _block(self, record: Record, kind: str, body: Any) -> Record:
        has_children = bool(self._workspace.children.get(record["id"])) or (
            kind == "synced_block" and body.get("synced_from") is not None
        )
        return {
            "object": "block",
            **_envelope(record),
            "has_children": has_children,
            "type": kind,
            kind: body,
        }

    def _file(self, body: Any) -> Any:
        """A file of this workspace gets a new link each time somebody asks."""
        if isinstance(body, dict) and body.get("type") == "file" and "name_here" in body["file"]:
            return {**body, "file": self._link(body["file"]["name_here"])}
        return body


_WITH_FILE = ("image", "video", "audio", "pdf", "file")


def _envelope(record: Record) -> Record:
    names = ("id", "parent", "created_time", "last_edited_time", "created_by", "last_edited_by", "in_trash")
    return {**{name: record[name] for name in names}, "archived": record["in_trash"]}


def _url(identity: str, title: str) -> str:
    words = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in title).strip("-")
    return f"https://www.notion.so/{words + '-' if words else ''}{identity.replace('-', '')}"
