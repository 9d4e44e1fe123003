"""What requests do: each method carries out one endpoint and returns the object to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sendonce.sandbox.notion import rich_text
from sendonce.sandbox.notion.objects import Objects
from sendonce.sandbox.notion.properties import change_columns, find_column, new_column, stored_value
from sendonce.sandbox.notion.queries import matches, paginate, sort
from sendonce.sandbox.notion.refusals import NotionRefusal, invalid, missing
from sendonce.sandbox.notion.workspace import BOT, Record, Workspace

_MOST_BLOCKS = 100
_MOST_ROWS = 10_000
# What the API does not let anybody make.
_NOT_MADE = ("child_page", "child_database", "unsupported", "link_preview", "template", "meeting_notes")


class Contents:
    def __init__(self, workspace: Workspace, objects: Objects) -> None:
        self.workspace = workspace
        self.objects = objects

    # Pages

    def page(self, identity: str) -> Record:
        return self.objects.page(self._shared(self.workspace.pages, identity, "page"))

    def create_page(self, body: Mapping[str, Any], identity: str = "", author: str = BOT) -> Record:
        parent = self._page_parent(body.get("parent"))
        page = self.workspace.new_record(parent, identity, author)
        page["values"] = self._values(parent, _mapping(body, "properties"))
        self._check_blocks(body.get("children", []))
        self.workspace.pages[page["id"]] = page
        if parent["type"] == "page_id":
            self.workspace.children.setdefault(parent["page_id"], []).append(page["id"])
        page["values"].setdefault("title", [])
        self.append(page["id"], body.get("children", []))
        return self.objects.page(page)

    def update_page(self, identity: str, body: Mapping[str, Any], author: str = BOT) -> Record:
        page = self._shared(self.workspace.pages, identity, "page")
        trash = body.get("in_trash", body.get("archived"))
        if page["in_trash"] and trash is not False and body.get("properties"):
            raise invalid("Can't edit block that is archived. You must unarchive the block before editing.")
        values = self._values(page["parent"], _mapping(body, "properties"))
        page["values"].update(values)
        if author != BOT:
            page["untold"] = sorted({*page.get("untold", []), *values})
        if isinstance(trash, bool):
            page["in_trash"] = trash
        self.workspace.touch(page)
        return self.objects.page(page)

    def _page_parent(self, parent: Any) -> Record:
        given = parent if isinstance(parent, dict) else {}
        if "data_source_id" in given:
            source = self._shared(self.workspace.data_sources, given["data_source_id"], "data source")
            database = source["parent"]["database_id"]
            return {"type": "data_source_id", "data_source_id": source["id"], "database_id": database}
        if "database_id" in given:
            database = self._shared(self.workspace.databases, given["database_id"], "database")
            sources = self.objects.database(database)["data_sources"]
            if len(sources) != 1:
                raise invalid("Databases with multiple data sources are not supported here: name one.")
            return self._page_parent({"data_source_id": sources[0]["id"]})
        if "page_id" in given:
            page = self._shared(self.workspace.pages, given["page_id"], "page")
            return {"type": "page_id", "page_id": page["id"]}
        raise invalid("body failed validation: body.parent should be defined, instead was `undefined`.")

    def _values(self, parent: Record, given: Mapping[str, Any]) -> dict[str, Any]:
        source = self.workspace.data_sources.get(parent.get("data_source_id", ""))
        columns = source["properties"] if source else {"title": new_column("title", {"title": {}})}
        values = {}
        for name, value in given.items():
            column = find_column(columns, name)
            if column is None:
                raise invalid(f"{name} is not a property that exists.")
            values[column["id"]] = stored_value(column, value)
        return values

    # Blocks

    def block(self, identity: str) -> Record:
        self._exists_shared(identity, "block")
        return self.objects.block(identity)

    def children(self, identity: str, asked: Mapping[str, Any]) -> Record:
        self._exists_shared(identity, "block")
        listed = [self.objects.block(child) for child in self.workspace.children.get(identity, [])]
        return paginate([block for block in listed if not block["in_trash"]], asked, "block")

    def append_children(self, identity: str, body: Mapping[str, Any]) -> Record:
        self._exists_shared(identity, "block")
        blocks = body.get("children")
        if not isinstance(blocks, list):
            raise invalid("body failed validation: body.children should be defined.")
        self._check_blocks(blocks)
        made = self.append(identity, blocks)
        return paginate([self.objects.block(block) for block in made], {}, "block")

    def _check_blocks(self, blocks: Any) -> None:
        """Refuse bad blocks before anything is made."""
        if not isinstance(blocks, list) or len(blocks) > _MOST_BLOCKS:
            raise invalid("body failed validation: body.children should be an array of at most 100 blocks.")
        for block in blocks:
            self._check_blocks(self._new_block(block, {}, False)[1])

    def append(self, parent: str, blocks: Any, *, any_type: bool = False) -> list[str]:
        """Put blocks at the end, with their children. ``any_type`` is for what only the app can make."""
        on_page = parent in self.workspace.pages
        place = (
            {"type": "page_id", "page_id": parent} if on_page else {"type": "block_id", "block_id": parent}
        )
        made = []
        for block in blocks:
            record, nested = self._new_block(block, place, any_type)
            self.workspace.blocks[record["id"]] = record
            self.workspace.children.setdefault(parent, []).append(record["id"])
            made.append(record["id"])
            if nested:
                self.append(record["id"], nested, any_type=any_type)
        return made

    def _new_block(self, block: Any, place: Record, any_type: bool) -> tuple[Record, Any]:
        given = block if isinstance(block, dict) else {}
        known = ("object", "id", "parent", "type", "children", "has_children", "in_trash", "archived")
        kind = given.get("type") or next((key for key in given if key not in known), None)
        body = given.get(kind) if isinstance(kind, str) else None
        if not isinstance(body, dict) or (kind in _NOT_MADE and not any_type):
            raise invalid(f"body failed validation: a block of type {kind!r} cannot be made.")
        body = dict(body)
        nested = given.get("children") or (body.pop("children", []) if not any_type else [])
        if "rich_text" in body:
            body["rich_text"] = rich_text.stored(body["rich_text"], f"{kind}.rich_text")
        record = self.workspace.new_record(place, str(given.get("id", "")) if any_type else "")
        return {**record, "type": kind, "body": body}, nested

    def delete_block(self, identity: str) -> Record:
        record = self._exists_shared(identity, "block")
        record["in_trash"] = True
        self.workspace.touch(record)
        return self.objects.block(identity)

    # Databases and data sources

    def database(self, identity: str) -> Record:
        return self.objects.database(self._shared(self.workspace.databases, identity, "database"))

    def create_database(self, body: Mapping[str, Any], identity: str = "", source_id: str = "") -> Record:
        parent = self._page_parent(body.get("parent"))
        if parent["type"] != "page_id":
            raise invalid("body failed validation: body.parent.page_id should be defined.")
        if "properties" in body:
            raise invalid("body failed validation: properties go into initial_data_source since 2025-09-03.")
        database = self.workspace.new_record(parent, identity)
        database["title"] = rich_text.stored(body.get("title", []), "title")
        wishes = _mapping(_mapping(body, "initial_data_source"), "properties")
        self._new_source(database, dict(wishes) or {"Name": {"title": {}}}, database["title"], source_id)
        self.workspace.databases[database["id"]] = database
        self.workspace.children.setdefault(parent["page_id"], []).append(database["id"])
        return self.objects.database(database)

    def update_database(self, identity: str, body: Mapping[str, Any]) -> Record:
        database = self._shared(self.workspace.databases, identity, "database")
        if "title" in body:
            database["title"] = rich_text.stored(body["title"], "title")
        if isinstance(body.get("in_trash"), bool):
            database["in_trash"] = body["in_trash"]
        self.workspace.touch(database)
        return self.objects.database(database)

    def create_data_source(self, body: Mapping[str, Any]) -> Record:
        given = _mapping(body, "parent").get("database_id")
        database = self._shared(self.workspace.databases, given, "database")
        title = rich_text.stored(body.get("title", []), "title")
        return self.objects.data_source(
            self._new_source(database, dict(_mapping(body, "properties")), title, "")
        )

    def _new_source(self, database: Record, columns: dict[str, Any], title: Any, identity: str) -> Record:
        source = self.workspace.new_record({"type": "database_id", "database_id": database["id"]}, identity)
        source["title"] = title
        source["properties"] = change_columns({}, columns)
        self.workspace.data_sources[source["id"]] = source
        return source

    def data_source(self, identity: str) -> Record:
        return self.objects.data_source(self._shared(self.workspace.data_sources, identity, "data source"))

    def update_data_source(self, identity: str, body: Mapping[str, Any]) -> Record:
        source = self._shared(self.workspace.data_sources, identity, "data source")
        source["properties"] = change_columns(source["properties"], dict(_mapping(body, "properties")))
        if "title" in body:
            source["title"] = rich_text.stored(body["title"], "title")
        self.workspace.touch(source)
        return self.objects.data_source(source)

    def query(self, identity: str, body: Mapping[str, Any]) -> Record:
        source = self._shared(self.workspace.data_sources, identity, "data source")
        columns = source["properties"]
        pages = [
            self.objects.page(page)
            for page in self.workspace.pages.values()
            if page["parent"].get("data_source_id") == source["id"]
            and page["in_trash"] is bool(body.get("in_trash", False))
        ]
        if "filter" in body:
            pages = [page for page in pages if matches(page, columns, body["filter"])]
        listed = paginate(sort(pages, columns, body.get("sorts"))[:_MOST_ROWS], body, "page_or_data_source")
        if len(pages) > _MOST_ROWS and not listed["has_more"]:
            listed["request_status"] = {"type": "incomplete"}
        return listed

    def search(self, body: Mapping[str, Any]) -> Record:
        wanted = str(body.get("query", "")).casefold()
        kind = _mapping(body, "filter").get("value")
        found = [self.objects.page(it) for it in self.workspace.pages.values() if not it["in_trash"]]
        found += [self.objects.data_source(it) for it in self.workspace.data_sources.values()]
        shown = [
            it
            for it in found
            if kind in (None, it["object"])
            and wanted in _title(it).casefold()
            and self.workspace.is_shared(it["id"])
        ]
        shown.sort(key=lambda it: str(it["last_edited_time"]), reverse=True)
        return paginate(shown, body, "page_or_data_source")

    def _shared(self, kind: dict[str, Record], identity: Any, word: str) -> Record:
        wanted = _dashed(identity)
        if wanted not in kind or not self.workspace.is_shared(wanted):
            raise missing(word, str(identity))
        return kind[wanted]

    def _exists_shared(self, identity: str, word: str) -> Record:
        record = self.workspace.find(identity)
        if (
            record is None
            or identity in self.workspace.data_sources
            or not self.workspace.is_shared(identity)
        ):
            raise missing(word, identity)
        return record


def _dashed(identity: Any) -> str:
    try:
        return str(UUID(str(identity)))
    except ValueError:
        raise invalid(f"body failed validation: {identity!r:.60} should be a valid uuid.") from None


def _title(shown: Record) -> str:
    if shown["object"] == "data_source":
        return rich_text.plain(shown["title"])
    titles = (it["title"] for it in shown["properties"].values() if it["type"] == "title")
    return rich_text.plain(next(titles, []))


def _mapping(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotionRefusal(400, f"body failed validation: body.{name} should be an object.")
    return value
