"""What becomes of a letter, told in Notion. Every verb may be repeated.

The status is written with absolute values, so a replay is harmless. A row of «Ошибки» carries a key of ours:
when the reply to its creation was lost, it is looked up by that key before it is created again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sendonce.adapters.notion.answers import ReplyLost
from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import ERRORS, LETTERS, TableNames
from sendonce.adapters.notion.tables import Table, TableCache, status_option, with_fresh_columns
from sendonce.adapters.notion.values import read_text
from sendonce.adapters.notion.words import MORE, MORE_TITLE, fill
from sendonce.domain.mailouts.page_ids import page_id
from sendonce.errors import NotFound, RefusedByRule

MOST_ERROR_ROWS = 50
"""How many rows a mailout gets in «Ошибки»; all of its errors are in the CSV."""


@dataclass(frozen=True, slots=True)
class LetterCounts:
    planned: int = 0
    sent: int = 0
    delivered: int = 0
    bounced: int = 0
    complained: int = 0
    unsubscribed: int = 0
    failed: int = 0
    in_doubt: int = 0


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """``key`` is the same whenever the same error is told; ``page`` is the letter's page."""

    key: str
    page: str
    email: str
    kind: str
    message: str
    code: str = ""
    time: datetime | None = None
    title: str = ""


def rest_row(mailout_id: str, page: str, hidden: int, csv: str, language: str = "ru") -> ErrorRow:
    """The row after the last that is shown. ``csv`` tells where all are: a link or a command."""
    title, message = fill(MORE_TITLE, language, count=hidden), fill(MORE, language, count=hidden, csv=csv)
    return ErrorRow(f"{mailout_id}:rest", page, "", "", message, title=title)


class NotionReports:
    def __init__(
        self,
        client: NotionClient,
        letters_id: str,
        errors_id: str,
        letters: TableNames = LETTERS,
        errors: TableNames = ERRORS,
    ) -> None:
        self._client = client
        self._names = letters
        self._letters = TableCache(client, letters_id, letters)
        self._errors = TableCache(client, errors_id, errors)

    def set_status(
        self,
        page: str,
        status: str | None,
        *,
        instead: str = "",
        reason: str = "",
        counts: LetterCounts | None = None,
        sent_at: datetime | None = None,
        warnings: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Write the state of a letter. Returns the columns that the table does not have.

        ``status`` is that of a mailout, or "cancelled"; a table that cannot show it gets ``instead``.

        Status, ``sent_at`` and counts are left as they are where they are None; the reason and the warnings
        are always written, so that those of an earlier try do not stay.
        """
        values: dict[str, Any] = {"reason": reason, "warnings": "\n".join(warnings)}
        if counts is not None:
            values.update(asdict(counts))
        if sent_at is not None:
            values["sent_at"] = sent_at
        target = f"/v1/pages/{page_id(page)}"

        def write(table: Table) -> tuple[str, ...]:
            wanted = values | (
                {"status": status_option(table, self._names, status, instead)} if status else {}
            )
            self._client.update(target, {"properties": table.properties(wanted)})
            return tuple(name for name in wanted if name not in table.columns)

        return with_fresh_columns(self._letters, write)

    def letters_language(self) -> str:
        """ "ru" or "en": in what language the table of letters is kept."""
        return self._letters.get().language

    def errors_language(self) -> str:
        return self._errors.get().language

    def rows_of(self, mailout_id: str) -> dict[str, list[str]]:
        """The rows whose key begins with the mailout: their pages by the key, the oldest first."""
        return self._look_up(self._errors.get(), {"starts_with": mailout_id})

    def update_row(self, page: str, row: ErrorRow) -> None:
        def write(table: Table) -> None:
            self._client.update(f"/v1/pages/{page}", {"properties": table.properties(_row_values(row))})

        with_fresh_columns(self._errors, write)

    def has_row(self, page: str) -> bool:
        """Whether a row is there. Notion refuses to change one that is in the trash, and does not say why."""
        try:
            return self._client.get(f"/v1/pages/{page}").get("in_trash") is not True
        except NotFound:
            return False

    def trash_row(self, page: str) -> None:
        self._client.update(f"/v1/pages/{page}", {"in_trash": True})

    def put_error_row(self, row: ErrorRow, *, may_exist: bool = True) -> str:
        """Create the row or bring it up to date; the id of its page.

        ``may_exist=False`` on the very first try saves the look. Raises ReplyLost when the reply to the
        creation was lost and the row is not to be seen yet: try again later, with ``may_exist=True``.
        """
        return with_fresh_columns(self._errors, lambda table: self._put(table, row, may_exist))

    def _put(self, table: Table, row: ErrorRow, may_exist: bool) -> str:
        properties = table.properties(_row_values(row))
        existing = self._find(table, row.key) if may_exist else []
        if not existing:
            return self._create(table, row.key, properties)
        for duplicate in existing[1:]:
            # A slow creation can turn up after we looked for it in vain.
            self._client.update(f"/v1/pages/{duplicate}", {"in_trash": True})
        self._client.update(f"/v1/pages/{existing[0]}", {"properties": properties})
        return existing[0]

    def _create(self, table: Table, key: str, properties: Mapping[str, Any]) -> str:
        parent = {"type": "data_source_id", "data_source_id": table.id}
        try:
            created = self._client.create("/v1/pages", {"parent": parent, "properties": properties})
        except ReplyLost:
            found = self._find(table, key)
            if not found:
                raise
            return found[0]
        return page_id(str(created.get("id")))

    def _find(self, table: Table, key: str) -> list[str]:
        """The rows with this key, the oldest first."""
        return self._look_up(table, {"equals": key}).get(key, [])

    def _look_up(self, table: Table, condition: dict[str, str]) -> dict[str, list[str]]:
        column = table.columns.get("key")
        if column is None:
            raise RefusedByRule(
                f"The Notion table {table.title!r} has no text column for the key of an error. "
                "Run: sendonce notion setup."
            )
        query = {
            "filter": {"property": column.name, "rich_text": condition},
            "sorts": [{"timestamp": "created_time", "direction": "ascending"}],
        }
        found: dict[str, list[str]] = {}
        for row in self._client.pages(f"/v1/data_sources/{table.id}/query", query):
            if row.get("in_trash") is not True:
                properties = row.get("properties")
                key = read_text(properties.get(column.name) if isinstance(properties, dict) else None)
                found.setdefault(key, []).append(page_id(str(row.get("id"))))
        return found


def _row_values(row: ErrorRow) -> dict[str, Any]:
    return {
        "title": row.title or ": ".join(part for part in (row.kind, row.email) if part),
        "letter": page_id(row.page),
        "email": row.email,
        "kind": row.kind,
        "message": row.message,
        "code": row.code,
        "time": row.time,
        "key": row.key,
    }
