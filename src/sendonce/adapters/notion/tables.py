"""Databases, data sources and their columns.

The link of a table shows the id of its database; rows belong to a data source in it. Both ids are taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import TableNames
from sendonce.adapters.notion.values import plain_text, write
from sendonce.domain.engine.letters import language_of
from sendonce.domain.mailouts.page_ids import page_id
from sendonce.errors import BadInput, NotFound, RefusedByRule

_FRESH_SECONDS = 300.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ColumnFound:
    """A column as it is in a table."""

    name: str
    type: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A data source: ``columns`` are those that we know, by our names; ``strangers`` have a wrong type."""

    id: str
    database_id: str
    title: str
    columns: Mapping[str, ColumnFound]
    strangers: Mapping[str, ColumnFound]
    raw: Mapping[str, Any]

    @property
    def language(self) -> str:
        """That of its columns' names: "ru" or "en"."""
        names = [column.name for column in self.columns.values()]
        russian = sum(language_of(name) == "ru" for name in names)
        return "ru" if 2 * russian >= len(names) else "en"

    def properties(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What sets these values; a value whose column is not there is left out."""
        return {
            self.columns[name].name: write(self.columns[name].type, value)
            for name, value in values.items()
            if name in self.columns
        }


def data_source_ids(client: NotionClient, wanted: str) -> tuple[str, list[tuple[str, str]]]:
    """The database of an id (of a database or of a data source), and the data sources: ids and names."""
    uuid = page_id(wanted)
    try:
        database = client.get(f"/v1/databases/{uuid}")
    except (NotFound, BadInput):
        source = client.get(f"/v1/data_sources/{uuid}")
        return str(_part(source, "parent").get("database_id", "")), [(uuid, plain_text(source.get("title")))]
    sources = database.get("data_sources")
    return uuid, [
        (str(source.get("id")), str(source.get("name")))
        for source in (sources if isinstance(sources, list) else [])
        if isinstance(source, dict)
    ]


def open_table(client: NotionClient, wanted: str, names: TableNames) -> Table:
    """The table with its columns. Raises RefusedByRule where the database has not exactly one data source."""
    database, sources = data_source_ids(client, wanted)
    if len(sources) != 1:
        listed = "; ".join(f"{source} ({name})" for source, name in sources) or "none"
        raise RefusedByRule(
            f"The Notion database {wanted!r} has {len(sources)} data sources, and one is needed. "
            f"Give the id of one of them instead: {listed}."
        )
    source = client.get(f"/v1/data_sources/{sources[0][0]}")
    columns, strangers = _match(_part(source, "properties"), names)
    title = plain_text(source.get("title"))
    return Table(sources[0][0], database, title, columns, strangers, source)


def _match(
    properties: Mapping[str, Any], names: TableNames
) -> tuple[dict[str, ColumnFound], dict[str, ColumnFound]]:
    """The columns that fit by name and type, and those that fit by name only."""
    found = [_column(name, value) for name, value in properties.items() if isinstance(value, dict)]
    columns: dict[str, ColumnFound] = {}
    strangers: dict[str, ColumnFound] = {}
    for key, column in names.columns.items():
        # There is exactly one title, whatever it is called.
        named = [it for it in found if it.type == "title" or column.wording.fits(it.name)]
        fit = [it for it in named if it.type in column.types]
        if fit:
            columns[key] = fit[0]
        elif named := [it for it in named if it.type != "title"]:
            strangers[key] = named[0]
    return columns, strangers


def _column(name: str, value: Mapping[str, Any]) -> ColumnFound:
    kind = str(value.get("type"))
    listed = _part(value, kind).get("options")
    options = [it.get("name") for it in (listed if isinstance(listed, list) else []) if isinstance(it, dict)]
    return ColumnFound(name, kind, tuple(it for it in options if isinstance(it, str)))


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def status_option(table: Table, names: TableNames, status: str, instead: str = "") -> str:
    """The option's name as the table has it. A select makes new options by itself; a status does not, and
    gets the one that is named ``instead``."""
    column, wording = table.columns.get("status"), names.statuses[status]
    if column is None:
        raise RefusedByRule(
            f"The Notion table {table.title!r} has no column "
            f"{names.columns['status'].wording.names[0]!r} of type Select or Status. "
            "Run: sendonce notion setup."
        )
    known = next((option for option in column.options if wording.fits(option)), None)
    if known is None and column.type == "status":
        if instead:
            return status_option(table, names, instead)
        raise RefusedByRule(
            f"The status column {column.name!r} in Notion has no option {wording.names[0]!r}. "
            "Add it in Notion: Edit property, Options."
        )
    return known or wording.in_language(table.language)


class TableCache:
    """Remembers a table for some minutes: people rename columns seldom, and Notion counts requests."""

    def __init__(self, client: NotionClient, wanted: str, names: TableNames) -> None:
        self._client = client
        self._wanted = wanted
        self._names = names
        self._lock = threading.Lock()
        self._table: Table | None = None
        self._read_at = 0.0

    def get(self, *, anew: bool = False) -> Table:
        with self._lock:
            stale = time.monotonic() - self._read_at > _FRESH_SECONDS
            if self._table is None or stale or anew:
                self._table = open_table(self._client, self._wanted, self._names)
                self._read_at = time.monotonic()
            return self._table


def with_fresh_columns(cache: TableCache, write: Callable[[Table], T]) -> T:
    """Somebody may have changed the table since we looked: look again before believing a refusal."""
    try:
        return write(cache.get())
    except (BadInput, RefusedByRule):
        return write(cache.get(anew=True))
