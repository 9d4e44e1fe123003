"""The test plan names tests; each of them is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAN = (ROOT / "docs" / "explanation" / "test-plan.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PLAN)


@cache
def names_in(file: str) -> frozenset[str]:
    path = ROOT / file
    return frozenset(re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_test_on_the_page_exists() -> None:
    """A test that was renamed or removed is renamed or removed on the page too."""
    assert len(NAMED) > 100
    files = {file for file, _ in NAMED}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []
    assert [f"{file}::{name}" for file, name in NAMED if name not in names_in(file)] == []


def test_every_row_of_a_table_names_a_test() -> None:
    """A promise without a test belongs under what is not tested."""
    rows = [line for line in PLAN.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    bare = [row for row in rows if "::" not in row and not row.startswith("| what is sent")]
    assert bare == []
