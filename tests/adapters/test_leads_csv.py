"""Leads in a CSV file: one bad line costs nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.adapters.sources.leads_csv import read_leads
from sendonce.domain.people.subscribers import BadRow

GOOD = "ann@one.example,Ann,One\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"bob@two.example,B\x00b,Two\n", "it contains a NUL byte"),
        (b"bob@two.example,B\x1bb,Two\n", "it contains the control character U+001B"),
        (b'bob@two.example,"Bob\nBcc: x@y.example",Two\n', "the name has a line break in it"),
        (b'bob@two.example,Bob,"Two\r\nBcc: x@y.example"\n', "the company has a line break in it"),
        (b"bob@two.example,Bob,Two,more\n", "it has 4 cells, but the first line names 3 columns"),
        (b"bob@two.example,B\xffb,Two\n", "it is not UTF-8"),
        (b"bob@two.example," + b"x" * 1001 + b",Two\n", "name has 1001 characters"),
        (b"bob,Bob,Two\n", "'bob' is not an address"),
    ],
)
def test_a_bad_line_is_told_and_the_others_are_read(tmp_path: Path, line: bytes, says: str) -> None:
    file = tmp_path / "leads.csv"
    file.write_bytes(b"email,name,company\n" + line + GOOD.encode())
    bad, good = sorted(read_leads(file, {}, "utf-8"), key=lambda row: not isinstance(row, BadRow))
    assert isinstance(bad, BadRow)
    assert (bad.line, says in bad.reason) == (2, True), bad.reason
    assert not isinstance(good, BadRow)
    assert (good.address.text, good.company) == ("ann@one.example", "One")


def test_three_hundred_columns_are_variables(tmp_path: Path) -> None:
    file = tmp_path / "leads.csv"
    titles, values = (",".join(f"{word} {n}" for n in range(300)) for word in ("Column", "value"))
    file.write_text(f"E-mail,{titles}\nann@one.example,{values}\n")
    (lead,) = read_leads(file, {})
    assert not isinstance(lead, BadRow)
    assert len(lead.fields) == 300
    assert lead.fields["column_299"] == "value 299"
