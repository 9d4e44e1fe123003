"""The ways in which people write the id of a page in Notion: with dashes, without, or as its link."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from sendonce.errors import BadInput

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_AT_THE_END = re.compile(rf"(?:^|[^0-9a-z])({_ID.pattern})/?$", re.IGNORECASE)
_LONGEST = 2000


def page_id(text: str) -> str:
    """The id in its dashed form. Raises BadInput with what a good one looks like."""
    wanted = text.strip()
    if len(wanted) <= _LONGEST:
        if _ID.fullmatch(wanted):
            return str(UUID(wanted))
        if found := _in_link(wanted):
            return str(UUID(found))
    raise BadInput(
        f"{text[:100]!r} is not a Notion page. Give its link (••• → Copy link), or the 32 digits at the end "
        "of the link."
    )


def looks_like_page(text: str) -> bool:
    try:
        page_id(text)
    except BadInput:
        return False
    return True


def _in_link(link: str) -> str | None:
    """A page that is open beside its table is in the link's ``p``; the path then names the table."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https"):
        return None
    for peeked in parse_qs(parts.query).get("p", ()):
        if _ID.fullmatch(peeked):
            return peeked
    found = _AT_THE_END.search(parts.path)
    return found[1] if found else None
