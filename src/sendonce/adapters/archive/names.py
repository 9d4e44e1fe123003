"""How records are called in every archive: ``<kind>/<day>/<name>.gz``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

_IS_KIND = re.compile("[a-z][a-z0-9-]*").fullmatch
is_day = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


def checked_kind(kind: str) -> str:
    if not _IS_KIND(kind):
        raise ValueError(f"{kind!r} is no kind of record: small letters, digits and dashes make one.")
    return kind


def day_of(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def file_name(name: str) -> str:
    """Names come from outside too: whatever is in one, it is a file of this day and not a hidden one."""
    return quote(name, safe="").replace(".", "%2E", 1 if name.startswith(".") else 0) + ".gz"
