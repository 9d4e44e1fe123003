"""Golden files: each block of Notion as HTML and as text, and a whole letter."""

from __future__ import annotations

import pytest

from tests.golden.cases import HERE, golden_files

GOLDEN = golden_files()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.relative_to(HERE)))
def test_a_block_looks_as_it_did(path) -> None:  # type: ignore[no-untyped-def]
    """If the change is meant, run ``python -m tests.golden`` and look at the difference."""
    assert path.read_text(encoding="utf-8") == GOLDEN[path]


def test_no_golden_file_is_left_over() -> None:
    kept = {path for path in GOLDEN if path.parent.name == "blocks"}
    assert set((HERE / "blocks").iterdir()) == kept
