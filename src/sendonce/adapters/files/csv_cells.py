"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any, TextIO

# A cell that begins so is taken for a formula; =HYPERLINK and DDE formulas carry data out of the sheet. East
# Asian versions read full-width signs alike, and what shows nothing may be dropped from in front of a sign.
# With apostrophes of its own in front it gets one more, or nobody could tell whose they are.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
)
_BLANK = rf" \u00a0\u3000{_INVISIBLE}"
_SIGN = r"=+\-@\t\r\n＝＋－＠﹢﹣﹦﹫"
_NEEDS_GUARD = re.compile(rf"'*[{_BLANK}]*[{_SIGN}]").match
_MAY_NEED_GUARD = re.compile(rf"['{_BLANK}{_SIGN}]").search
# No sheet shows them, and a terminal acts on them: escape sequences begin with U+001B or U+009B.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula and no terminal for an order.

    ``unguarded`` gives back what it was, but for control characters.
    """
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", cell)
    return "'" + shown if _NEEDS_GUARD(shown) else shown


def all_harmless(cells: Sequence[str]) -> Sequence[str]:
    """``harmless`` of each. Where nothing is to be done, as nearly always, one look at all of them tells."""
    beginnings = "".join({cell[:1] for cell in cells})
    if _MAY_NEED_GUARD(beginnings) or not "".join(cells).isprintable():
        return [harmless(cell) for cell in cells]
    return cells


def unguarded(cell: str) -> str:
    """The cell that ``harmless`` made this of: without the apostrophe that it put in front, and no other."""
    return cell[1:] if cell.startswith("'") and _NEEDS_GUARD(cell) else cell


def spreadsheet_writer(file: TextIO) -> Any:
    """A csv.writer for cells that went through ``harmless``: each is quoted, whatever is in it."""
    return csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
