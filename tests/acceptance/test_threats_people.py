"""Hostile lists, names and addresses, through the command line to the letters that come out."""

from __future__ import annotations

import csv
import email
import email.policy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from tests.nursery import run_program

LETTER = """\
---
subject: "News for {{ name | default: 'you' }}"
---

Hello, **{{ name | default: "you" }}**!
Your town is {{ town | default: "far away" }}.
"""
HEADERS = {
    *("date", "from", "to", "subject", "message-id", "mime-version", "content-type"),
    *("list-unsubscribe", "list-unsubscribe-post", "list-id", "x-sendonce-job", "auto-submitted"),
    *("precedence", "feedback-id", "reply-to"),
}


class Desk:
    """The command line with a database and a maildir of its own: nothing leaves the folder."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.database_url = database_url
        self.environment = {
            "PYTHONUTF8": "1",
            "DATABASE_URL": database_url,
            "STATE_DIR": str(folder / "state"),
            "MAILDIR_PATH": str(folder / "maildir"),
            "RATE_LIMIT_PER_SEC": "0",
            "UNSUBSCRIBE_SECRET": "u",
            "COLUMNS": "300",
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        done = run_program(arguments, self.environment, self.folder, seconds=120)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def import_rows(self, rows: list[list[str]], *arguments: str) -> Any:
        file = self.folder / "list.csv"
        with file.open("w", encoding="utf-8", newline="") as sheet:
            csv.writer(sheet).writerows([["email", "name", "town"], *rows])
        return self.json("subscribers", "import", str(file), *arguments)

    def send(self) -> Any:
        (self.folder / "letter.md").write_text(LETTER, encoding="utf-8")
        mailout = self.json("mailout", "create", "letter.md")["id"]
        return self.json("mailout", "send", mailout)["counts"]

    def counts(self) -> dict[str, int]:
        with closing(open_store(self.database_url)) as store:
            return store.subscribers.count(DEFAULT_TENANT)

    def letters(self) -> Iterator[EmailMessage]:
        for file in sorted((self.folder / "maildir" / "new").iterdir()):
            message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            yield message


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str) -> Desk:
    with closing(open_store(sqlite_url)) as store:  # the file is a copy, which has to be taken into use
        store.ledger.adopt(store.fingerprint(), 0, "the tests")
    return Desk(tmp_path, sqlite_url)


HOSTILE = [
    "x\r\nBcc: victim@example.org",
    "x\nBcc: victim@example.org",
    "x\rBcc: victim@example.org",
    "x\u2028Bcc: victim@example.org",
    "x\u0085Bcc: victim@example.org",
    "=?utf-8?q?a=0ABcc:_victim=40example.org?=",
    "a@b.example, victim@example.org",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "{{7*7}}",
    "{{ town }}",
    "\u202egnirts",
    "\x1b[31mred",
    "\n.\r\nMAIL FROM:<victim@example.org>",
    '=HYPERLINK("http://evil.example","x")',
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1,2)",
    "\t=1+1",
    "\r=1+1",
    "'; DROP TABLE subscribers; --",
    "%s %n {0} ${x}",
]


def test_a_hostile_name_is_sent_as_words_or_not_at_all(desk: Desk) -> None:
    """Imported or told with its line; in letters no header too many, no markup, nothing worked out."""
    rows = [[f"p{number}@example.com", name, name] for number, name in enumerate(HOSTILE)]
    report = desk.import_rows(rows)
    assert report["inserted"] + report["invalid"] == len(HOSTILE)
    counts = desk.send()
    assert counts["planned"] == report["inserted"] == counts["sent"] + counts["failed"]
    assert counts["sent"] > 5
    recipients = []
    by_name = {}
    for message in desk.letters():
        assert {name.lower() for name in message} <= HEADERS
        assert all(len(message.get_all(name, [])) == 1 for name in message)
        (to,) = message["to"].addresses
        recipients.append(to.addr_spec)
        assert to.domain == "example.com"
        html = _part(message, "html")
        assert not re.search(r"<script|<svg|onerror=[^&]*>|<img", html)
        by_name[HOSTILE[int(to.username[1:])]] = _part(message, "plain")
    assert len(recipients) == len(set(recipients)) == counts["sent"]
    assert "Your town is {{7*7}}." in by_name["{{7*7}}"]
    assert "Your town is {{ town }}." in by_name["{{ town }}"]
    assert "<script>alert(1)</script>" in by_name["<script>alert(1)</script>"]


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    text: str = part.get_content()
    return text


def test_tables_for_people_hold_no_formulas_and_no_escapes(desk: Desk) -> None:
    """Every cell of an export is text to a spreadsheet; a terminal is moved by none; JSON has the values."""
    rows = [[f"p{number}@example.com", name, name] for number, name in enumerate(HOSTILE)]
    desk.import_rows(rows)
    desk.run("subscribers", "export", "-o", "out.csv")
    with (desk.folder / "out.csv").open(encoding="utf-8", newline="") as sheet:
        cells = [cell for row in csv.reader(sheet) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    shown = desk.run("subscribers", "list")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", shown)
    names = {person["name"] for person in desk.json("subscribers", "list")["subscribers"]}
    assert '=HYPERLINK("http://evil.example","x")' in names


SPELLINGS = [
    "USER@Example.com",
    "user@EXAMPLE。com",
    '"user"@example.com',
    "ｕｓｅｒ@example.com",
    "user+tag@example.com",
    "u.s.e.r+x@gmail.com",
    "user@googlemail.com",
    "user@exämple.com",
    "user@XN--EXMPLE-CUA.com",
]


def test_who_has_said_no_is_not_written_to_under_any_spelling(desk: Desk) -> None:
    """Suppressed once; then a list with other spellings of the same mailboxes is imported and sent to."""
    with closing(open_store(desk.database_url)) as store:
        for text in ("user@example.com", "user@gmail.com", "user@xn--exmple-cua.com"):
            store.suppressions.add(DEFAULT_TENANT, parse_address(text), SuppressionReason.MANUAL)
    desk.import_rows([[spelling, "User", ""] for spelling in SPELLINGS] + [["other@example.com", "", ""]])
    assert desk.counts()["active"] == 1
    assert desk.send()["sent"] == 1
    assert [message["to"].addresses[0].addr_spec for message in desk.letters()] == ["other@example.com"]


LOOK_ALIKES = [
    "user@\u0430pple.com",
    "us\u200ber@example.com",
    "user@exa\u00admple.com",
    "a@b.com, c@d.com",
    "alice@ok.org <bob@evil.com>",
]


def test_look_alikes_and_invisible_characters_are_told_with_their_line(desk: Desk) -> None:
    """A Cyrillic letter in a Latin domain, a zero-width space, a soft hyphen, a second address."""
    report = desk.import_rows([["good@example.com", "", ""], *([text, "", ""] for text in LOOK_ALIKES)])
    assert (report["inserted"], report["invalid"]) == (1, len(LOOK_ALIKES))
    assert [row["line"] for row in report["invalid_lines"]] == list(range(3, 3 + len(LOOK_ALIKES)))


def test_who_was_erased_stays_gone_after_the_next_import(desk: Desk) -> None:
    """No file, the database's own included, names them any more; a list that does makes nobody active."""
    desk.import_rows([["jane.roe@example.com", "Jane", "Riga"], ["other@example.com", "", ""]])
    desk.run("erase", "Jane.Roe@example.com", "--yes")
    (desk.folder / "list.csv").unlink()
    database = Path(desk.database_url.removeprefix("sqlite:///"))
    files = [*_files(desk.folder), *_files(database.parent)]
    assert database in files
    assert not [file for file in files if b"jane.roe" in file.read_bytes().lower()]
    desk.import_rows([["jane.roe@example.com", "Jane", "Riga"]])
    assert desk.counts() == {"active": 1, "unsubscribed": 1}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_line_of_a_million_cells_costs_that_line(desk: Desk) -> None:
    """And so does a quote that is never closed; the rest of the list is imported in little memory."""
    file = desk.folder / "list.csv"
    with file.open("w", encoding="utf-8") as sheet:
        sheet.write("email,name\na@example.com,A\n")
        sheet.write("b@example.com" + ",x" * 1_000_000 + "\n")
        sheet.write('c@example.com,"C\n' + "d@example.com,D\n")
    report = desk.json("subscribers", "import", "list.csv")
    assert (report["inserted"], report["invalid"]) == (2, 2)
    assert [row["line"] for row in report["invalid_lines"]] == [3, 4]


# A process that is started from this large one would be counted as large as this one.
_LAUNCHER = """
import os, sys
status, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)[1:]
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.long
def test_a_file_of_two_gigabytes_is_read_in_little_memory(desk: Desk) -> None:
    """A cell of one gigabyte, then a gigabyte of lines: the first is told, the others are imported."""
    file = desk.folder / "list.csv"
    people = 1_000_000
    with file.open("wb") as sheet:
        sheet.write(b"email,name,note\n")
        sheet.write(b"giant@example.com,G,")
        for _ in range(1024):
            sheet.write(b"x" * 2**20)
        sheet.write(b"\n")
        filling = b"y" * 1000
        for start in range(0, people, 1000):
            rows = range(start, start + 1000)
            sheet.write(b"".join(b"p%d@example.com,P,%b\n" % (n % 1000, filling) for n in rows))
    assert file.stat().st_size > 2 * 10**9
    command = [sys.executable, "-m", "sendonce", "subscribers", "import", "list.csv", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *command],
        env=desk.environment,
        cwd=desk.folder,
        capture_output=True,
        check=True,
    )
    report = json.loads(done.stdout)
    assert (report["inserted"], report["duplicate"], report["invalid"]) == (1000, people - 1000, 1)
    assert report["invalid_lines"][0]["line"] == 2
    assert int(done.stderr.split()[-1]) < 300 * 1024
