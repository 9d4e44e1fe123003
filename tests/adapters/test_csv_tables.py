"""CSV files for people are their owner's to read, and are written to no other place than the one named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.adapters.files.csv_tables import CsvTable
from sendonce.errors import BadInput


def write(path: Path) -> None:
    with CsvTable(path, ("email",), even_if_empty=True) as table:
        table.write(("ann@example.com",))


def test_a_link_that_appears_in_time_is_not_followed(tmp_path: Path) -> None:
    """Also where nobody looked before: the file is opened so that it cannot be followed."""
    victim, link = tmp_path / "victim", tmp_path / "out.csv"
    victim.write_text("precious")
    link.symlink_to(victim)
    with pytest.raises(BadInput, match="is a symbolic link"):
        write(link)
    assert victim.read_text() == "precious"


def test_a_table_is_private_also_where_the_file_was_not(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("of before")
    path.chmod(0o644)
    write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text("utf-8-sig") == '"email"\n"ann@example.com"\n'
