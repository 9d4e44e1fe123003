"""CSV imports: streamed, and every bad line is told with its number."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from sendonce.adapters.sources.subscribers_csv import BadRow, SubscriberRow, read_subscribers
from sendonce.errors import BadInput


def read(tmp_path: Path, content: str | bytes) -> list[SubscriberRow | BadRow]:
    path = tmp_path / "list.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_subscribers(path))


def good(rows: list[SubscriberRow | BadRow]) -> list[tuple[int, str, str | None, dict[str, str]]]:
    return [(r.line, r.address.text, r.name, r.attributes) for r in rows if isinstance(r, SubscriberRow)]


def bad(rows: list[SubscriberRow | BadRow]) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in rows if isinstance(row, BadRow)]


def test_columns_are_found_by_their_titles(tmp_path: Path) -> None:
    rows = read(
        tmp_path, "City,E-Mail,Имя,Дата рождения\nТверь, Ivan@Example.COM ,Иван,1 мая\n,b@example.com,,\n"
    )
    assert good(rows) == [
        (2, "Ivan@example.com", "Иван", {"city": "Тверь", "дата_рождения": "1 мая"}),
        (3, "b@example.com", None, {}),
    ]
    assert bad(rows) == []


@pytest.mark.parametrize("title", ["email", "EMAIL", " e-mail ", "Mail", "почта", "Почта"])
def test_the_email_column_has_many_titles(tmp_path: Path, title: str) -> None:
    assert len(good(read(tmp_path, f"{title},first name\na@example.com,Ann\n"))) == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiter_byte_order_mark_and_line_ends(tmp_path: Path, delimiter: str, mark: str, end: str) -> None:
    cells = [["email", '"name, or; so"', "name"], ["a@example.com", "x", '"Ann, B; C\tD"'], ["b@example.com"]]
    content = mark + end.join(delimiter.join(row) for row in cells)
    assert good(read(tmp_path, content)) == [
        (2, "a@example.com", "Ann, B; C\tD", {"name_or_so": "x"}),
        (3, "b@example.com", None, {}),
    ]


def test_titles_that_repeat_or_lack_lose_no_data(tmp_path: Path) -> None:
    rows = read(tmp_path, "email,name,first name,city,City,,mail\na@example.com,A,B,C,D,E,F\n")
    assert good(rows) == [
        (2, "a@example.com", "A", {"first_name": "B", "city": "C", "city_2": "D", "mail": "F"}),
    ]


def test_bad_lines_are_told_and_cost_nothing_but_themselves(tmp_path: Path) -> None:
    content = b"\n".join(
        [
            b"email,name",
            b"a@example.com,Ann",
            b"not an address,Bob",
            b"nul@example.com,N\x00l",
            b"cp1251@example.com,\xc8\xe2\xe0\xed",
            b"bell@example.com,\x07",
            b'break@example.com,"two',
            b'lines"',
            b"many@example.com,a,b,c",
            b'quote@example.com,"a"b',
            b"",
            b" , ",
            b",no address",
            "z@example.com,Зоя".encode(),
        ]
    )
    rows = read(tmp_path, content)
    assert [row[:3] for row in good(rows)] == [(2, "a@example.com", "Ann"), (14, "z@example.com", "Зоя")]
    reasons = bad(rows)
    assert [line for line, _ in reasons] == [3, 4, 5, 6, 7, 9, 10, 13]
    for (_, reason), word in zip(
        reasons,
        ["no @", "NUL", "UTF-8", "U+0007", "line break", "4 cells", "closing quote", "empty"],
        strict=True,
    ):
        assert word in reason
    assert all(row.raw.isprintable() for row in rows if isinstance(row, BadRow))
    assert "\\xc8\\xe2" in rows[3][1]  # type: ignore[operator]


@pytest.mark.parametrize("following", [3, 200])
def test_an_unclosed_quote_costs_one_line(tmp_path: Path, following: int) -> None:
    lines = [f"user{n}@example.com,User" for n in range(following)]
    rows = read(tmp_path, "\n".join(["email,name", "a@example.com,A", 'b@example.com,"B', *lines]))
    assert bad(rows) == [(3, "a quote is not closed")]
    assert [row.line for row in rows] == list(range(2, following + 4))


def test_a_cell_may_have_lines_of_its_own(tmp_path: Path) -> None:
    rows = read(tmp_path, 'email,note\na@example.com,"one\ntwo\nthree"\nb@example.com,x\n')
    assert [(row[0], row[3]) for row in good(rows)] == [(2, {"note": "one\ntwo\nthree"}), (5, {"note": "x"})]


def test_giant_cells_and_lines_are_refused_alone(tmp_path: Path) -> None:
    content = f"email,note\na@example.com,{'x' * 200_000}\nb@example.com,{'y' * 3_000_000}\nc@example.com,z\n"
    rows = read(tmp_path, content)
    assert [row.line for row in rows] == [2, 3, 4]
    assert [line for line, _ in bad(rows)] == [2, 3]
    assert good(rows)[0][1] == "c@example.com"
    assert all(len(row.raw) <= 200 for row in rows if isinstance(row, BadRow))


def test_a_giant_line_inside_an_unclosed_quote_is_still_one_line(tmp_path: Path) -> None:
    content = f'email,note\na@example.com,"x\n{"y" * 600_000}\nc@example.com,z\n'
    rows = read(tmp_path, content)
    assert [row.line for row in rows] == [2, 3, 4]
    assert good(rows) == [(4, "c@example.com", None, {"note": "z"})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"name,city\nAnn,Rome\n", "has no e-mail column: its first line names name, city"),
        (b"a@example.com,Ann\n", "has no e-mail column"),
        ("email,имя\n".encode("utf-16"), "is not UTF-8"),
        ("почта,имя\n".encode("cp1251"), "is not UTF-8"),
        (b"email" + b",x" * 1000 + b"\n", "has 1001 columns"),
        (b"email" + b",x" * 1_000_000 + b"\n", "first line"),
    ],
    ids=range(8),
)
def test_a_file_that_is_no_list_is_refused_with_a_way_out(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        read(tmp_path, content)
    assert message in str(refusal.value)
    assert "list.csv" in str(refusal.value)


def test_a_missing_file_and_a_directory_are_told(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(BadInput, match="Cannot read"):
            list(read_subscribers(path))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("email,name\n" + "".join(f"user{n}@example.com,Иван\n" for n in range(50_000)))
    tracemalloc.start()
    count = sum(1 for _ in read_subscribers(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 2_000_000
