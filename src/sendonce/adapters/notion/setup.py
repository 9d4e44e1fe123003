"""Makes the two tables under a page, or checks those that are there. Running it again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sendonce.adapters.notion.answers import ReplyLost
from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import CANCELLED, ERRORS, LETTERS, TableNames, folded
from sendonce.adapters.notion.tables import Table, open_table
from sendonce.domain.mailouts.page_ids import page_id
from sendonce.errors import BadInput, Unavailable

# Draft grey, ready blue, and so on: the colours that Notion gives its own status columns.
_COLOURS = {
    "draft": "gray",
    "ready": "blue",
    "sending": "yellow",
    "sent": "green",
    "failed": "red",
    "cancelled": "brown",
}


@dataclass(frozen=True, slots=True)
class TableReport:
    """``id`` is for NOTION_LETTERS_ID or NOTION_ERRORS_ID; it is empty where there is no table.

    ``is_usable`` is False where a column is missing that nothing works without.
    """

    role: str
    title: str
    id: str = ""
    data_source_id: str = ""
    created: bool = False
    added: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class SetupReport:
    tables: tuple[TableReport, ...]

    @property
    def is_fine(self) -> bool:
        return not any(table.problems for table in self.tables)

    def environment(self) -> dict[str, str]:
        """What to put into .env."""
        names = {"letters": "NOTION_LETTERS_ID", "errors": "NOTION_ERRORS_ID"}
        return {names[table.role]: table.id for table in self.tables if table.id}


@dataclass(frozen=True, slots=True)
class SetupWish:
    """``parent`` is the page under which missing tables are made; ids of tables that exist come first.

    With ``change=False`` nothing is made or altered: what is missing is reported.
    """

    parent: str = ""
    letters_id: str = ""
    errors_id: str = ""
    language: str = "ru"
    change: bool = True
    letters: TableNames = field(default=LETTERS)
    errors: TableNames = field(default=ERRORS)


def set_up(client: NotionClient, wish: SetupWish) -> SetupReport:
    """Find, make and check both tables. Raises NotFound where the parent page is not shared with us."""
    letters = _Role(client, wish, "letters", wish.letters_id, wish.letters, {})
    told = letters.report()
    # Errors point to their letters, so the data source of the letters must be known by now.
    errors = _Role(client, wish, "errors", wish.errors_id, wish.errors, {"letter": told.data_source_id})
    return SetupReport((told, errors.report()))


def check_table(client: NotionClient, wish: SetupWish, role: str) -> TableReport:
    """Look at one of the tables, by its id, and change nothing."""
    looking = replace(wish, change=False)
    known, names = {
        "letters": (wish.letters_id, wish.letters),
        "errors": (wish.errors_id, wish.errors),
    }[role]
    return _Role(client, looking, role, known, names, {}).report()


class _Role:
    """One of the two tables."""

    def __init__(
        self,
        client: NotionClient,
        wish: SetupWish,
        role: str,
        known_id: str,
        names: TableNames,
        relations: Mapping[str, str],
    ) -> None:
        self._client = client
        self._wish = wish
        self._role = role
        self._names = names
        self._known_id = known_id
        self._relations = relations
        self._title = names.title.in_language(wish.language)

    def report(self) -> TableReport:
        found = self._known_id or self._search()
        created = not found and self._wish.change
        if created:
            found = self._create()
        if not found:
            problem = f"There is no table {self._title!r} under the page. Run: sendonce notion setup."
            return TableReport(self._role, self._title, problems=(problem,), is_usable=False)
        table = open_table(self._client, found, self._names)
        added: tuple[str, ...] = ()
        if self._wish.change and (repairs := self._repairs(table)):
            self._client.update(f"/v1/data_sources/{table.id}", {"properties": repairs})
            added = tuple(repairs)
            table = open_table(self._client, found, self._names)
        return TableReport(
            self._role,
            table.title or self._title,
            page_id(found),
            table.id,
            created,
            added,
            tuple(self._problems(table)),
            all(key in table.columns for key, column in self._names.columns.items() if column.required),
        )

    def _search(self) -> str:
        """A table of that name right under the parent page."""
        if not self._wish.parent:
            return ""
        for block in self._client.pages(f"/v1/blocks/{page_id(self._wish.parent)}/children"):
            body = block.get("child_database")
            title = body.get("title") if isinstance(body, dict) else None
            if isinstance(title, str) and self._names.title.fits(title) and block.get("in_trash") is not True:
                return page_id(str(block.get("id")))
        return ""

    def _create(self) -> str:
        if not self._wish.parent:
            raise BadInput(
                f"There is no table {self._title!r} yet. Name the Notion page under which it shall be made: "
                "sendonce notion setup PAGE."
            )
        columns = {
            self._column_name(key): self._schema(key)
            for key, column in self._names.columns.items()
            if column.types[0] != "relation" or self._relations.get(key)
        }
        body = {
            "parent": {"type": "page_id", "page_id": page_id(self._wish.parent)},
            "title": [{"type": "text", "text": {"content": self._title}}],
            "initial_data_source": {"properties": columns},
        }
        try:
            return page_id(str(self._client.create("/v1/databases", body).get("id")))
        except ReplyLost as exc:
            if found := self._search():
                return found
            raise Unavailable(f"{exc} Run: sendonce notion setup again; it looks before it creates.") from exc

    def _column_name(self, key: str) -> str:
        return self._names.columns[key].wording.in_language(self._wish.language)

    def _schema(self, key: str) -> dict[str, Any]:
        kind = self._names.columns[key].types[0]
        if kind == "select" and key == "status":
            return {kind: {"options": [self._option(status) for status in self._names.statuses]}}
        if kind == "relation":
            return {
                kind: {
                    "data_source_id": self._relations[key],
                    "type": "single_property",
                    "single_property": {},
                }
            }
        return {kind: {}}

    def _option(self, status: Any) -> dict[str, Any]:
        name = self._names.statuses[status].in_language(self._wish.language)
        return {"name": name, "color": _COLOURS[status]}

    def _repairs(self, table: Table) -> dict[str, Any]:
        """Columns to add, and options to add to a select. A column of a wrong type is nobody's to change."""
        taken = {folded(name) for name in table.raw.get("properties", {})}
        repairs = {
            self._column_name(key): self._schema(key)
            for key, column in self._names.columns.items()
            if key not in table.columns
            and key not in table.strangers
            and folded(self._column_name(key)) not in taken
            and (column.types[0] != "relation" or self._relations.get(key))
        }
        status = table.columns.get("status")
        if status and status.type == "select" and (missing := self._missing_options(table)):
            # An option that is left out of the list would be removed, from the rows too.
            kept = table.raw["properties"][status.name]["select"]["options"]
            repairs[status.name] = {"select": {"options": [*kept, *missing]}}
        return repairs

    def _missing_options(self, table: Table) -> list[dict[str, Any]]:
        return [
            self._option(status)
            for status, wording in self._names.statuses.items()
            if not any(wording.fits(option) for option in table.columns["status"].options)
        ]

    def _problems(self, table: Table) -> list[str]:
        found = []
        for key, stranger in table.strangers.items():
            wanted = " or ".join(self._names.columns[key].types)
            found.append(
                f"Column {stranger.name!r} of {table.title!r} is of type {stranger.type}: make it {wanted} "
                "in Notion (Edit property, Type), or rename it and run the setup again."
            )
        for key, column in self._names.columns.items():
            if key not in table.columns and key not in table.strangers and not column.has_default:
                need = "is needed" if column.required else "is missing, so nothing is told there"
                found.append(
                    f"Column {self._column_name(key)!r} ({column.types[0]}) of {table.title!r} {need}. "
                    "Run: sendonce notion setup."
                )
        if "status" in table.columns:
            found += [
                f"Column {table.columns['status'].name!r} of {table.title!r} has no option "
                f"{option['name']!r}: add it in Notion (Edit property, Options)."
                for option in self._missing_options(table)
                # A cancelled mailout is shown as sent or failed where there is no option for it.
                if not self._names.statuses[CANCELLED].fits(option["name"])
            ]
        return found
