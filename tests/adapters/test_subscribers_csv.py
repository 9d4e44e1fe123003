"""CSV imports: streamed, and every bad line is told with its number."""

from __future__ import annotations

import json
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.files.csv_cells import all_harmless, harmless, unguarded
from sendonce.adapters.sources.subscribers_csv import read_subscribers
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.people_columns import (
    ReadChunk,
    attributes_text,
    attributes_texts,
    plain_addresses,
    suppression_keys,
)
from sendonce.domain.people.subscribers import BadRow
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.domain.people.told_states import StateRules, Told
from sendonce.errors import BadInput

R = SuppressionReason
Person = tuple[int, str, str | None, dict[str, str]]


def read(tmp_path: Path, content: str | bytes, **how: object) -> list[ReadChunk]:
    path = tmp_path / "list.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_subscribers(path, **how))  # type: ignore[arg-type]


def good(chunks: list[ReadChunk]) -> list[Person]:
    """Line, address, name and attributes of each person, in the order of the lines."""
    people = [
        (line, email, name, json.loads(values))
        for chunk in chunks
        for line, email, name, values in zip(
            chunk.lines, chunk.people.emails, chunk.people.names, chunk.people.attributes, strict=True
        )
    ]
    return sorted(people, key=lambda person: person[0])


def bad_rows(chunks: list[ReadChunk]) -> list[BadRow]:
    return [row for chunk in chunks for row in chunk.bad]


def bad(chunks: list[ReadChunk]) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in bad_rows(chunks)]


def denied(chunks: list[ReadChunk]) -> dict[str, SuppressionReason]:
    return {key: denial.reason for chunk in chunks for key, denial in chunk.people.denials.items()}


def line_numbers(chunks: list[ReadChunk]) -> list[int]:
    return sorted([person[0] for person in good(chunks)] + [row.line for row in bad_rows(chunks)])


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


@pytest.mark.parametrize(
    ("before", "delimiter"),
    [
        ("\n \r\n\n", ","),
        (";;\n", ";"),
        ("sep=;\n", ";"),
        ("\r\nSEP=,\r\n\r\n", ","),
        ('"sep=|"\n', "|"),
        ("sep=\t\r\n", "\t"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_comes_before_the_titles_is_passed_over(
    tmp_path: Path, before: str, delimiter: str, mark: str
) -> None:
    """Blank lines and Excel's word on the delimiter, which may be any; the lines are counted all the same."""
    cells = [["email", "name", "town"], ["a@example.com", "Ann", "Riga"], ["nobody", "", ""]]
    rows = read(tmp_path, mark + before + "\n".join(delimiter.join(row) for row in cells))
    first = before.count("\n") + 2
    assert good(rows) == [(first, "a@example.com", "Ann", {"town": "Riga"})]
    assert [line for line, _ in bad(rows)] == [first + 1]


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
    assert all(row.raw.isprintable() for row in bad_rows(rows))
    assert "\\xc8\\xe2" in bad_rows(rows)[2].raw


@pytest.mark.parametrize("following", [3, 200])
def test_an_unclosed_quote_costs_one_line(tmp_path: Path, following: int) -> None:
    lines = [f"user{n}@example.com,User" for n in range(following)]
    rows = read(tmp_path, "\n".join(["email,name", "a@example.com,A", 'b@example.com,"B', *lines]))
    assert bad(rows) == [(3, "a quote is not closed")]
    assert line_numbers(rows) == list(range(2, following + 4))


def test_a_cell_may_have_lines_of_its_own(tmp_path: Path) -> None:
    rows = read(tmp_path, 'email,note\na@example.com,"one\ntwo\nthree"\nb@example.com,x\n')
    assert [(row[0], row[3]) for row in good(rows)] == [(2, {"note": "one\ntwo\nthree"}), (5, {"note": "x"})]


def test_giant_cells_and_lines_are_refused_alone(tmp_path: Path) -> None:
    content = f"email,note\na@example.com,{'x' * 200_000}\nb@example.com,{'y' * 3_000_000}\nc@example.com,z\n"
    rows = read(tmp_path, content)
    assert line_numbers(rows) == [2, 3, 4]
    assert [line for line, _ in bad(rows)] == [2, 3]
    assert good(rows)[0][1] == "c@example.com"
    assert all(len(row.raw) <= 200 for row in bad_rows(rows))


def test_a_giant_line_inside_an_unclosed_quote_is_still_one_line(tmp_path: Path) -> None:
    content = f'email,note\na@example.com,"x\n{"y" * 600_000}\nc@example.com,z\n'
    rows = read(tmp_path, content)
    assert line_numbers(rows) == [2, 3, 4]
    assert good(rows) == [(4, "c@example.com", None, {"note": "z"})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"sep=;\n\n", "is empty"),
        (b"name,city\nAnn,Rome\n", "has no e-mail column: its first line names name, city"),
        (b"a@example.com,Ann\n", "has no e-mail column"),
        ("email,prénom\n".encode("latin-1"), "give --encoding"),
        (b"email,name\x00\n", "is not text"),
        (b"email" + b",x" * 1000 + b"\n", "has 1001 columns"),
        (b"email" + b",x" * 1_000_000 + b"\n", "first line"),
    ],
    ids=range(9),
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
    """Twice the rows take the memory of one block all the same."""
    peaks = []
    for count in (40_000, 80_000):
        path = tmp_path / "long.csv"
        path.write_text("email,name\n" + "".join(f"user{n}@example.com,Иван\n" for n in range(count)))
        tracemalloc.start()
        assert sum(len(chunk.people) for chunk in read_subscribers(path)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 30_000_000


RUSSIAN = "Электронная почта;Имя;Город\nivan@example.com;Иван;Ижевск\nolga@example.com;Ольга;Орёл\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1251"])
def test_the_encoding_is_found_out(tmp_path: Path, encoding: str) -> None:
    """With a byte order mark or without, in the encodings that spreadsheets write."""
    rows = read(tmp_path, RUSSIAN.encode(encoding))
    assert good(rows) == [
        (2, "ivan@example.com", "Иван", {"город": "Ижевск"}),
        (3, "olga@example.com", "Ольга", {"город": "Орёл"}),
    ]


def test_a_name_that_tells_the_encoding_may_come_late(tmp_path: Path) -> None:
    plain = "".join(f"user{n}@example.com,User\n" for n in range(20_000))
    content = f"email,name\n{plain}last@example.com,Яков\n".encode("cp1251")
    assert good(read(tmp_path, content))[-1] == (20_002, "last@example.com", "Яков", {})


def test_the_encoding_can_be_forced(tmp_path: Path) -> None:
    content = "email,name\na@example.com,Zoë\n".encode("latin-1")
    assert good(read(tmp_path, content, encoding="latin-1"))[0][2] == "Zoë"
    with pytest.raises(BadInput, match="There is no encoding 'klingon'"):
        read(tmp_path, content, encoding="klingon")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('"email","name","First name"', "A"),
        ("Email address,First Name,Last Name", "A"),
        ("E-mail адрес;ФИО;Имя", "B"),
        ("Адрес электронной почты\tИмя подписчика\tx", "A"),
        ("Эл. почта,Полное имя,x", "A"),
        ("subscriber_email,full_name,x", "A"),
    ],
)
def test_titles_of_exports_are_known(tmp_path: Path, header: str, name: str) -> None:
    """English and Russian, GetResponse's among them; a first name is preferred to a full one."""
    mark = next(mark for mark in ";\t," if mark in header)
    rows = read(tmp_path, f"{header}\n" + mark.join(["a@example.com", "A", "B"]) + "\n")
    assert [person[2] for person in good(rows)] == [name]


def test_columns_can_be_named(tmp_path: Path) -> None:
    """--map wins over what the titles say, gives attributes a name, and a wrong title is told."""
    content = "email,Work mail,Кто,Город\nold@example.com,new@example.com,Ann,Riga\n"
    wanted = {"email": "Work mail", "name": "кто", "city": "Город"}
    assert good(read(tmp_path, content, columns=wanted)) == [
        (2, "new@example.com", "Ann", {"email_2": "old@example.com", "city": "Riga"})
    ]
    with pytest.raises(BadInput, match="has no column 'Mail': its first line names email, Work mail"):
        read(tmp_path, content, columns={"email": "Mail"})


@pytest.mark.parametrize("more", ["", 'd@example.com,D,"two\nlines"\n'])
def test_who_opted_out_elsewhere_is_read_so(tmp_path: Path, more: str) -> None:
    """On the quick way and on the careful one, in any case; the column stays an attribute too."""
    lines = "a@example.com,A,active\nb@example.com,B, Unsubscribed \nc@bücher.example,C,bounced\n"
    content = f"email,name,status\n{lines}e@example.com,E,ACTIVE\n{more}"
    how = StateRules(values={"two\nlines": Told.ACTIVE})
    rows = read(tmp_path, content, states=how)
    assert denied(rows) == {"b@example.com": R.UNSUBSCRIBED, "c@xn--bcher-kva.example": R.BOUNCE}
    assert [person[3]["status"] for person in good(rows)][:3] == ["active", "Unsubscribed", "bounced"]
    assert bad(rows) == []


def test_a_line_that_says_no_outweighs_an_earlier_one(tmp_path: Path) -> None:
    """Whichever of two lines of an address comes first; the graver reason stands."""
    lines = ["a@example.com,active", "a@example.com,unsubscribed", "A@example.com,complained"]
    for order in (lines, lines[::-1]):
        rows = read(tmp_path, "\n".join(["email,status", *order]))
        assert denied(rows) == {"a@example.com": R.COMPLAINT}


def test_what_comes_through_a_pipe_can_be_read_twice(tmp_path: Path) -> None:
    """The look at the states comes before the import, so a pipe is kept on the disk meanwhile."""
    fifo = tmp_path / "pipe.csv"
    os.mkfifo(fifo)
    content = "email,status\na@example.com,unsubscribed\n"
    with ThreadPoolExecutor(1) as writer:
        writer.submit(fifo.write_text, content)
        assert denied(list(read_subscribers(fifo))) == {"a@example.com": R.UNSUBSCRIBED}


def test_an_export_of_ours_brings_no_attributes_of_its_own(tmp_path: Path) -> None:
    content = "email,name,status,status_updated_at,created_at,city\na@example.com,A,active,x,y,Riga\n"
    assert good(read(tmp_path, content)) == [(2, "a@example.com", "A", {"city": "Riga"})]
    assert good(read(tmp_path, content, columns={"since": "created_at"}))[0][3] == {
        "city": "Riga",
        "since": "y",
    }
    foreign = content.replace("name,status", "status,name").replace("A,active", "active,A")
    assert set(good(read(tmp_path, foreign))[0][3]) == {"status", "status_updated_at", "created_at", "city"}


def test_attributes_of_an_export_of_ours_raise_no_question(tmp_path: Path) -> None:
    """Its own status column tells the state; an attribute with such a name is an attribute."""
    titles = "email,name,status,status_updated_at,created_at,consent,attribute status,unsubscribed"
    rows = read(tmp_path, f"{titles}\na@example.com,A,active,x,y,asked by phone,VIP,never seen\n")
    assert good(rows) == [(2, "a@example.com", "A", {"status": "VIP", "unsubscribed": "never seen"})]
    assert denied(rows) == {}
    assert rows[0].people.consents == {"a@example.com": "asked by phone"}


@given(st.text("'=+-@\t\r a＝＋－＠\u200b\ufeff\u00a0", max_size=5))
def test_the_guard_of_a_cell_is_taken_off_and_nothing_else(cell: str) -> None:
    """Also where the sign is full-width, or hides behind what shows nothing."""
    assert unguarded(harmless(cell)) == cell
    shown = harmless(cell).lstrip("\u200b\ufeff\u00a0 ")
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))


@given(st.lists(st.text("'=-\t\n\x1b aж|\u200b\u3164\ufe0f\u00a0", max_size=3), max_size=4))
def test_cells_are_as_harmless_together_as_one_by_one(cells: list[str]) -> None:
    assert list(all_harmless(cells)) == [harmless(cell) for cell in cells]


@pytest.mark.parametrize("control", ["\x1b[2J", "\x9b2J", "\x07", "\x7f", "\x85"])
def test_no_cell_moves_a_terminal(tmp_path: Path, control: str) -> None:
    """Escape sequences begin with U+001B, or with U+009B alone: refused on the way in, and out too."""
    assert harmless(f"a{control}").isprintable()
    assert "control character" in bad(read(tmp_path, f"email,name\na@example.com,{control}\n"))[0][1]


def test_the_apostrophes_of_a_foreign_file_are_its_own(tmp_path: Path) -> None:
    rows = read(tmp_path, "email,name,phone\na@example.com,'quoted','+7\n")
    assert good(rows) == [(2, "a@example.com", "'quoted'", {"phone": "'+7"})]


def test_international_domains_are_read_beside_plain_ones(tmp_path: Path) -> None:
    rows = read(tmp_path, "email\na@bücher.example\nB@Example.com\nc@почта.рф\n")
    found = [person[1] for person in good(rows)]
    assert found == ["a@xn--bcher-kva.example", "B@example.com", "c@xn--80a1acny.xn--p1ai"]


def test_records_may_cross_the_border_of_a_block(tmp_path: Path) -> None:
    """Whatever lies across the place where two readings meet is read whole, and its line is right."""
    content = "email,note\n" + "".join(f'u{n}@example.com,"one\ntwo {"x" * 90}"\n' for n in range(12_000))
    people = good(read(tmp_path, content))
    assert [person[0] for person in people] == list(range(2, 24_002, 2))
    assert {person[3]["note"] for person in people} == {"one\ntwo " + "x" * 90}


_odd = st.sampled_from(
    ["", " ", "=?", "@", ".", "-", "xn--", "ü", "A", "a", "1", "+", '"', "\t", "gmail.com"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.emails(), st.lists(_odd, max_size=8).map("".join)), max_size=6))
def test_many_addresses_are_judged_as_one_is(raws: list[str]) -> None:
    """Where the quick way has an answer, it is the answer of parse_address; keys to suppress too."""
    texts, keys = plain_addresses(raws)
    for raw, text, key in zip(raws, texts, keys, strict=True):
        if key:
            address = parse_address(raw)
            assert (address.text, address.key) == (text, key)
    known = [key for key in keys if key]
    assert suppression_keys(known, b"pepper") == [suppression_key(key, b"pepper") for key in known]


@pytest.mark.parametrize(
    "raw",
    ["a@example.com", "A.b+c@Example.COM", "x@mail.ru", "u.s.e.r+tag@googlemail.com", "o'neil@a-b.co.uk"],
)
def test_ordinary_addresses_go_the_quick_way(raw: str) -> None:
    assert plain_addresses([raw, "bad address"])[1] == [raw.lower(), ""]


_words = st.sampled_from(
    ["a@example.com", "B@Example.com", "c@пример.рф", "no", "", " ", " x ", "ё", "\t", "\\", "'"]
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(_words, min_size=1, max_size=4), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_lines_without_quotes_mean_what_they_mean_with_quotes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], end: str
) -> None:
    """The quick way to cut lines gives what the csv module gives; short, long and empty lines too."""
    folder = tmp_path_factory.mktemp("lists")
    plain = end.join(["email,name,city", *(",".join(row) for row in rows)])
    quoted = end.join(["email,name,city", *(",".join(f'"{cell}"' for cell in row) for row in rows)])
    first, second = read(folder, plain), read(folder, quoted)
    assert (good(first), bad_rows(first)) == (good(second), bad_rows(second))


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 3).flatmap(
        lambda n: st.dictionaries(_texts, st.lists(_texts, min_size=n, max_size=n), min_size=1)
    )
)
def test_attributes_of_columns_are_written_as_those_of_a_row(columns: dict[str, list[str]]) -> None:
    rows = zip(*columns.values(), strict=True)
    filled = [{key: value for key, value in zip(columns, row, strict=True) if value} for row in rows]
    assert attributes_texts(columns.items()) == [attributes_text(values) for values in filled]
