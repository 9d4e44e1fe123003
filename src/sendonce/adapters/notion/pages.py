"""A letter in Notion: its properties and the tree of its blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import LETTERS, Column, TableNames
from sendonce.adapters.notion.values import (
    PageTime,
    property_id,
    read_date,
    read_flag,
    read_page_time,
    read_text,
    read_time,
)
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.domain.mailouts.page_ids import page_id
from sendonce.errors import BadInput, NotFound, Unavailable

Block = dict[str, Any]

# Pages of their own, and things that no letter can show: their insides are not read.
_CLOSED = {
    "child_page",
    "child_database",
    "link_to_page",
    "template",
    "meeting_notes",
    "transcription",
    "unsupported",
}


@dataclass(frozen=True, slots=True)
class LetterPage:
    """``status`` is None where the page's ``status_name`` is none that we know; ids are dashed.

    ``status_property`` and ``test_property`` are the ids of these columns, as events name them.
    ``from_name``, ``reply_to`` and ``language`` are empty where the usual ones are meant.
    """

    id: str
    url: str
    title: str
    subject: str
    preheader: str
    status: MailoutStatus | None
    status_name: str
    is_test: bool
    sent_at: datetime | None
    last_edited_at: datetime | None
    in_trash: bool
    data_source_id: str | None
    database_id: str | None
    status_property: str = ""
    test_property: str = ""
    from_name: str = ""
    reply_to: str = ""
    language: str = ""
    send_at: PageTime | None = None

    def belongs_to(self, table_id: str) -> bool:
        """Whether the page is a row of this database or data source."""
        return page_id(table_id) in (self.data_source_id, self.database_id)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a letter may have. 102 KB is all that Gmail shows, and a thousand blocks are far more."""

    blocks: int = 2000
    depth: int = 30
    requests: int = 600


@dataclass(frozen=True, slots=True)
class BlockTree:
    """Blocks as Notion gives them, each with its ``children``; ``warnings`` are for the author."""

    blocks: list[Block]
    warnings: tuple[str, ...] = ()


def read_letter(client: NotionClient, page: str, names: TableNames = LETTERS) -> LetterPage:
    """The properties of a page. A page outside of the table has no status, and its title is the subject."""
    return letter_of(client.get(f"/v1/pages/{page_id(page)}"), names)


def letter_of(page: Mapping[str, Any], names: TableNames = LETTERS) -> LetterPage:
    """The same from a page object at hand, such as the one in a button's webhook."""
    properties = page.get("properties")
    given = properties if isinstance(properties, dict) else {}
    found = {key: _find(given, column) for key, column in names.columns.items()}
    title, status_name = read_text(found["title"]), read_text(found["status"])
    parent = page.get("parent")
    parent = parent if isinstance(parent, dict) else {}
    return LetterPage(
        id=page_id(str(page.get("id"))),
        url=str(page.get("url") or ""),
        title=title,
        subject=read_text(found["subject"]) or title,
        preheader=read_text(found["preheader"]),
        status=names.status_named(status_name),
        status_name=status_name,
        is_test=read_flag(found["is_test"]),
        sent_at=read_date(found["sent_at"]),
        last_edited_at=read_time(page.get("last_edited_time")),
        in_trash=page.get("in_trash") is True or page.get("archived") is True,
        data_source_id=_id_or_none(parent.get("data_source_id")),
        database_id=_id_or_none(parent.get("database_id")),
        status_property=_property_of(found["status"]),
        test_property=_property_of(found["is_test"]),
        from_name=read_text(found["from_name"]),
        reply_to=read_text(found["reply_to"]),
        language=read_text(found["language"]),
        send_at=read_page_time(found["send_at"]),
    )


def _property_of(value: Any) -> str:
    return property_id(value.get("id")) if isinstance(value, dict) else ""


def _find(properties: Mapping[str, Any], column: Column) -> Any:
    for name, value in properties.items():
        kind = value.get("type") if isinstance(value, dict) else None
        if kind in column.types and (kind == "title" or column.wording.fits(name)):
            return value
    return None


def _id_or_none(value: Any) -> str | None:
    return page_id(value) if isinstance(value, str) else None


def read_blocks(client: NotionClient, page: str, limits: Limits | None = None) -> BlockTree:
    """All blocks of a page, at any depth, in the order of the page.

    Raises BadInput for a page that is too large to be a letter, and Unavailable when it was changed while
    it was being read.
    """
    return _Reader(client, limits or Limits()).read(page_id(page))


@dataclass(frozen=True, slots=True)
class _Visit:
    """A block whose children are to be read from ``source``, below the blocks in ``above``."""

    block: Block
    source: str
    above: frozenset[str]
    synced: bool


class _Reader:
    """Reads level by level. What is read once for a synced block is not read again for its next copy."""

    def __init__(self, client: NotionClient, limits: Limits) -> None:
        self._client = client
        self._limits = limits
        self._known: dict[str, list[Block]] = {}
        self._blocks = 0
        self._warnings: list[str] = []

    def read(self, page: str) -> BlockTree:
        root: Block = {"id": page}
        waiting = deque([_Visit(root, page, frozenset(), False)])
        while waiting:
            visit = waiting.popleft()
            if len(visit.above) > self._limits.depth:
                raise BadInput(f"The page {page} is nested more than {self._limits.depth} levels deep.")
            children = self._children(visit, is_page=visit.block is root)
            visit.block["children"] = children
            self._blocks += len(children)
            if self._blocks > self._limits.blocks:
                raise BadInput(
                    f"The page {page} has more than {self._limits.blocks} blocks: too many for a letter. "
                    "Shorten it, or link to a page on the web."
                )
            waiting.extend(self._below(visit, children))
        return BlockTree(root["children"], tuple(dict.fromkeys(self._warnings)))

    def _below(self, visit: _Visit, children: list[Block]) -> list[_Visit]:
        above = visit.above | {visit.source}
        visits = []
        for block in children:
            source, synced = _source_of(block)
            if source is None:
                continue
            if source in above:
                self._warnings.append("A synced block contains itself: the inner copy is left out.")
                continue
            visits.append(_Visit(block, source, above, synced))
        return visits

    def _children(self, visit: _Visit, *, is_page: bool) -> list[Block]:
        if visit.source not in self._known:
            if len(self._known) >= self._limits.requests:
                raise BadInput(f"The page has more than {self._limits.requests} nested lists: too many.")
            try:
                self._known[visit.source] = list(self._fetch(visit.source))
            except NotFound as exc:
                if is_page:
                    raise
                if not visit.synced:
                    raise Unavailable("The page was changed while it was being read. Try again.") from exc
                self._warnings.append(
                    "A synced block is left out: share the page of its original with the integration."
                )
                self._known[visit.source] = []
        return [{**block, "children": []} for block in self._known[visit.source]]

    def _fetch(self, source: str) -> list[Block]:
        found: list[Block] = []
        for block in self._client.pages(f"/v1/blocks/{source}/children"):
            if block.get("in_trash") is True or block.get("archived") is True:
                continue
            found.append(block)
            if len(found) > self._limits.blocks:
                break
        return found


def _source_of(block: Block) -> tuple[str | None, bool]:
    """Where the children of a block are read from, and whether that is another, synced block."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind in _CLOSED:
        return None, False
    body = block.get(kind)
    origin = body.get("synced_from") if kind == "synced_block" and isinstance(body, dict) else None
    if isinstance(origin, dict) and isinstance(origin.get("block_id"), str):
        return page_id(origin["block_id"]), True
    if block.get("has_children") is not True or not isinstance(block.get("id"), str):
        return None, False
    return page_id(block["id"]), False
