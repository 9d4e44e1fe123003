"""Where in a file a field stands that should not be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sendonce.domain.people.given_fields import UnknownField
from sendonce.errors import BadInput


@contextmanager
def naming_the_line(file: Path, source: str) -> Iterator[None]:
    """Turn UnknownField into BadInput with the file and the line."""
    try:
        yield
    except UnknownField as exc:
        line = _line_with(source, exc.field)
        raise BadInput(f"{file}{f', line {line}' if line else ''}: {exc}") from exc


def _line_with(source: str, field: str) -> int | None:
    """The line of the first key, in JSON or TOML, that is spelled so; None if it is written in escapes."""
    name = re.escape(field)
    found = re.search(rf"""["']{name}["']\s*[:=]|^\s*{name}\s*=|^\s*\[+\s*{name}\s*\]""", source, re.M)
    return source.count("\n", 0, found.end()) + 1 if found else None
