"""What people and programs see: tables and lines on a terminal, nothing but JSON with ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, tzinfo
from typing import Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of

_NO_EDGE = 100_000
_SHORT_ID = 13

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def say(text: str) -> None:
    """A line for people, on stdout."""
    sys.stdout.write(text + "\n")


def say_error(text: str) -> None:
    sys.stderr.write(text + "\n")


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=_plain) + "\n")


def as_dict(value: Any) -> dict[str, Any]:
    assert is_dataclass(value)
    assert not isinstance(value, type)
    return asdict(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], zone: tzinfo | None = None
) -> None:
    """Nothing is cut off: what a narrow screen has no room for goes on in the next line.

    An id, which one copies, stays in one line. In a pipe there is no edge to keep to. A table with moments
    in it shows them by the clock of ``zone``, and says so.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [*rows]
    has_moments = any(isinstance(value, datetime) for row in rows for value in row)
    caption = f"Times are those of {zone}." if zone and has_moments else None
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for row in rows:
        table.add_row(*(Text(_cell(value, zone)) for value in row))
    Console(width=None if sys.stdout.isatty() else _NO_EDGE).print(table)


def shown_of(shown: int, total: int, one: str, many: str = "") -> str:
    """ "340 letters", or "50 of 340 letters, more with --limit" above a list that does not show all."""
    if shown >= total:
        return count_of(total, one, many)
    return f"{shown} of {count_of(total, one, many)}, more with --limit"


def _cell(value: Any, zone: tzinfo | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
    # Names come from outside: a control character must not reach the terminal.
    return "".join(c if c.isprintable() else "�" for c in str(value))


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Each id with a beginning that tells it from the others: on a screen only, a pipe gets them whole."""
    if not sys.stdout.isatty():
        return {each: each for each in ids}
    length = _SHORT_ID
    while len({each[:length] for each in ids}) < len(set(ids)):
        length += 1
    return {each: each[:length].rstrip("-") for each in ids}
