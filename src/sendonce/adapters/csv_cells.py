"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from typing import Any, TextIO

# A cell that begins so is taken for a formula; =HYPERLINK and DDE formulas carry data out of the sheet.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def spreadsheet_writer(file: TextIO) -> Any:
    """A csv.writer for cells that went through ``harmless``: each is quoted, whatever is in it."""
    return csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
