"""Arrays as PostgreSQL writes them. psycopg's own way costs a microsecond for each element, in Python."""

from __future__ import annotations

from collections.abc import Iterable


def plain_array(elements: Iterable[object]) -> str:
    """Of numbers and ids, which need no quotes."""
    return f"{{{','.join(map(str, elements))}}}"


def text_array(elements: Iterable[str | None]) -> str:
    return f"{{{','.join([_quoted(element) for element in elements])}}}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
