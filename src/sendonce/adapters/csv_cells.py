"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from typing import Any, TextIO

# A cell that begins so is taken for a formula; =HYPERLINK and DDE formulas carry data out of the sheet.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula. ``unguarded`` gives back what it was."""
    return "'" + cell if _needs_guard(cell) else cell


def unguarded(cell: str) -> str:
    """The cell that ``harmless`` made this of: without the apostrophe that it put in front, and no other."""
    return cell[1:] if cell.startswith("'") and _needs_guard(cell) else cell


def _needs_guard(cell: str) -> bool:
    # With apostrophes of its own in front of the sign it gets one more, or nobody could tell whose they are.
    return cell.lstrip("'").startswith(_FORMULA_STARTS)


def spreadsheet_writer(file: TextIO) -> Any:
    """A csv.writer for cells that went through ``harmless``: each is quoted, whatever is in it."""
    return csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
