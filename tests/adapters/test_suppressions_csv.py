"""Files of opt-outs: the address column is found, reasons are kept, and no address is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.adapters.sources.suppressions_csv import FoundOptOut, read_suppressions
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import BadInput

R = SuppressionReason


def read(tmp_path: Path, content: str, name: str = "out.csv", **columns: str) -> list[FoundOptOut]:
    path = tmp_path / name
    path.write_text(content)
    return list(read_suppressions(path, columns=columns))


@pytest.mark.parametrize(
    "content",
    [
        "a@example.com\nb@example.com\n",
        "a@example.com;Ann\n\nb@example.com;Bob\n",
        "Ann,a@example.com\nBob,b@example.com\n",
        "address\na@example.com\nb@example.com\n",
        "id,Name,E-mail\n1,Ann,a@example.com\n2,Bob,b@example.com\n",
        "Имя;Электронная почта\nАнна;a@example.com\nБорис;b@example.com\n",
        "created,EmailAddress,Origin\nx,a@example.com,y\nx,b@example.com,y\n",
        '"name","mail"\n"A""x","a@example.com"\n"B","b@example.com"\n',
    ],
)
def test_the_addresses_are_found(tmp_path: Path, content: str) -> None:
    """With titles in English or Russian, in any place, or without any."""
    assert [each.text for each in read(tmp_path, content)] == ["a@example.com", "b@example.com"]


def test_a_broken_line_keeps_its_address_and_its_number(tmp_path: Path) -> None:
    """Of a record that is no CSV, too: an opt-out that is lost is a letter too many."""
    found = read(tmp_path, 'name,email\n"A"b,a@example.com\nB,b@example.com\nC,"c@example.com\nnobody\n')
    assert [(each.line, each.text) for each in found] == [
        (2, "a@example.com"),
        (3, "b@example.com"),
        (4, "c@example.com"),
        (5, "nobody"),
    ]


@pytest.mark.parametrize(
    ("titles", "cells", "reason", "note"),
    [
        ("address,reason", "bounce", R.BOUNCE, "out.csv: bounce"),
        ("email,status", "Unsubscribed", R.UNSUBSCRIBED, "out.csv"),
        ("EmailAddress,SuppressionReason", "SpamComplaint", R.COMPLAINT, "out.csv: SpamComplaint"),
        ("EmailAddress,SuppressionReason", "HardBounce", R.BOUNCE, "out.csv: HardBounce"),
        ("email,unsubscribed_at", "2024-05-01", R.UNSUBSCRIBED, "out.csv"),
        ("почта,Причина", "Отписался сам", R.UNSUBSCRIBED, "out.csv: Отписался сам"),
        ("email,reason", "550 no such user", R.MANUAL, "out.csv: 550 no such user"),
        ("email,status", "active", R.MANUAL, "out.csv"),
        ("email,name", "Ann", R.MANUAL, "out.csv"),
    ],
)
def test_reasons_are_kept(tmp_path: Path, titles: str, cells: str, reason: R, note: str) -> None:
    """Those that can be read as what they are, any other as a plain no with its words in the note."""
    (found,) = read(tmp_path, f"{titles}\na@example.com,{cells}\n")
    assert (found.text, found.reason, found.note, found.scope) == ("a@example.com", reason, note, None)


def test_an_export_of_ours_comes_in_as_it_was(tmp_path: Path) -> None:
    content = (
        '"address","scope","reason","note","created_at"\n'
        '"\'+eve@example.com","*","complaint","said so,\nby phone","2024-01-01"\n'
        '"bob@example.com","default","manual","","2024-01-01"\n'
    )
    assert read(tmp_path, content) == [
        FoundOptOut(2, "+eve@example.com", R.COMPLAINT, "said so,\nby phone", "*"),
        FoundOptOut(4, "bob@example.com", R.MANUAL, "out.csv: manual", None),
    ]


def test_the_column_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no column with addresses: .* --map email="):
        read(tmp_path, "who,what\nann,x\n")
    (found,) = read(tmp_path, "who,what\nann@example.com,x\n", email="Who")
    assert found.text == "ann@example.com"
