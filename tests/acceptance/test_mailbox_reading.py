"""A user who sends over SMTP and reads the answers. The provider is the sandbox, all else is real."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.sandbox.mailbox import Mailbox
from tests.adapters.mailbox_stage import running_mailbox
from tests.nursery import run_program, start_sandbox

WORDS = ("bounce", "softbounce", "delay", "complaint", "ooto", "reply", "optout", "fine")
LETTER = "---\nsubject: November offers\n---\n\nDear friends, fresh bread is here.\n"


class Home:
    def __init__(self, folder: Path, database_url: str, mailbox: Mailbox) -> None:
        self.folder = folder
        self.environment = {
            "PYTHONUTF8": "1",
            **mailbox.environment(),
            "DATABASE_URL": database_url,
            "STATE_DIR": str(folder / "state"),
            "APP_BASE_URL": "https://mail.example.com",
            "UNSUBSCRIBE_SECRET": "a long secret of this house, for links",
            "MAIL_FOOTER_ADDRESS": "1 Example Street",
            "RATE_LIMIT_PER_SEC": "0",
            "BURY_INTERVAL_SECONDS": "0.3",
            "IN_DOUBT_QUIET_SECONDS": "0.5",
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        done = run_program(arguments, self.environment, self.folder)
        assert done.returncode == code, done.stderr + done.stdout
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def send(self, *people: str, code: int = 0) -> str:
        (self.folder / "people.csv").write_text("email\n" + "\n".join(people) + "\n")
        (self.folder / "letter.md").write_text(LETTER)
        self.run("subscribers", "import", "people.csv")
        mailout: str = self.json("mailout", "create", "letter.md")["id"]
        done = run_program(["mailout", "send", mailout, "--yes"], self._without_imap(), self.folder)
        assert done.returncode == code, done.stderr
        return mailout

    def _without_imap(self) -> dict[str, str]:
        """Whoever sends reads the mailbox, too, and might read half of the answers before the test does."""
        return {**self.environment, "IMAP_HOST": ""}


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with running_mailbox() as running:
        yield running


def test_what_comes_back_takes_effect(tmp_path: Path, sqlite_url: str, mailbox: Mailbox) -> None:
    home = Home(tmp_path, sqlite_url, mailbox)
    mailout = home.send(*(f"{word}+{word}@example.org" for word in WORDS))
    (read,) = home.json("mailbox", "read")
    kinds = {"bounce": 2, "delay": 1, "complaint": 1, "auto_reply": 1, "reply": 1, "opt_out": 1}
    assert read["kinds"] == kinds
    assert (read["messages"], read["ours"]) == (7, 7)
    counts = home.json("mailout", "status", mailout)["counts"]
    assert (counts["sent"], counts["bounced"], counts["complained"]) == (8, 2, 1)
    suppressed = {each["address"] for each in home.json("suppression", "list")}
    assert suppressed == {f"{word}+{word}@example.org" for word in ("bounce", "complaint", "optout")}
    assert home.json("mailbox", "read")[0]["messages"] == 0
    assert {each["kind"] for each in home.json("mailbox", "list")} == set(kinds)
    mailbox.folders["INBOX"].renumber()
    assert home.json("mailbox", "read")[0]["messages"] == 0


def test_the_sandbox_plays_the_provider(tmp_path: Path, sqlite_url: str) -> None:
    child, told = start_sandbox(["--dir", str(tmp_path / "world"), "--port", "0", "--mailbox"])
    try:
        home = Home(tmp_path, sqlite_url, Mailbox())
        home.environment |= told["environment"]
        mailout = home.send("anna+bounce@example.org")
        assert home.json("mailbox", "read")[0]["kinds"] == {"bounce": 1}
        assert home.json("mailout", "status", mailout)["counts"]["bounced"] == 1
        (taken,) = map(json.loads, Path(told["accepted_log"]).read_text(encoding="utf-8").splitlines())
        assert (taken["to"], taken["subject"]) == (["anna+bounce@example.org"], "November offers")
        assert taken["job"] in taken["message_id_header"]
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(20)


def test_people_are_told_what_to_set(tmp_path: Path, sqlite_url: str, mailbox: Mailbox) -> None:
    home = Home(tmp_path, sqlite_url, mailbox)
    assert "new messages" in home.run("mailbox", "read")
    home.environment["IMAP_PASSWORD"] = "wrong"
    assert "IMAP_PASSWORD" in home.run("mailbox", "read", code=1)
    home.environment["IMAP_HOST"] = ""
    assert "IMAP_HOST is not set" in home.run("mailbox", "read", code=2)


def test_a_lost_reply_is_settled_by_sent_letters(tmp_path: Path, sqlite_url: str, mailbox: Mailbox) -> None:
    """The provider took the letter and never said so. Its copy is evidence: it is not sent again."""
    home = Home(tmp_path, sqlite_url, mailbox)
    mailbox.smtp.lose_replies = 1
    mailout = home.send("one@example.org", code=1)
    (doubt,) = home.json("jobs", "in-doubt")
    assert doubt["search"] == f"rfc822msgid:{doubt['id']}@example.com"
    assert doubt["search"] in home.run("jobs", "in-doubt")
    assert "folder of sent letters" in doubt["why"]
    home.environment["IN_DOUBT_QUIET_SECONDS"] = "0"
    home.run("tick", "--seconds", "3")
    assert home.json("mailout", "status", mailout)["counts"]["sent"] == 1
    assert len(mailbox.folders["Sent"].messages) == 1


def test_a_sender_has_a_mailbox_of_its_own(tmp_path: Path, sqlite_url: str, mailbox: Mailbox) -> None:
    """It is read with the account of its SMTP host; the secret is named, never stored. Two senders that share
    an account have one mailbox."""
    home = Home(tmp_path, sqlite_url, mailbox)
    home.environment |= {"IMAP_HOST": "", "NEWS_PASSWORD": mailbox.password}
    smtp = ["--host", "127.0.0.1", "--port", str(mailbox.smtp_port), "--username", mailbox.address]
    home.run("tenant", "add", "acme")
    for address in ("jane@acme.example", "john@acme.example"):
        home.run(
            *("sender", "add", "--tenant", "acme", address, *smtp, "--secret-env", "NEWS_PASSWORD"),
            *("--imap-host", "127.0.0.1", "--imap-port", str(mailbox.imap_port)),
        )
    (read,) = home.json("mailbox", "read")
    assert read["mailbox"] == f"{mailbox.address}@127.0.0.1:{mailbox.imap_port}"
    (said,) = [check["what"] for check in home.json("doctor")["checks"] if check["name"] == "mailbox"]
    assert "can be read: INBOX. Last read at " in said
    refused = home.run(
        "sender", "add", "joe@acme.example", "--folder", "here", "--imap-host", "imap.example.com", code=2
    )
    assert "read with the account of its SMTP host" in refused


def test_a_mailbox_that_another_process_reads_is_left_alone(
    tmp_path: Path, postgres_url: str, mailbox: Mailbox
) -> None:
    home = Home(tmp_path, postgres_url, mailbox)
    name = f"{mailbox.address}@127.0.0.1:{mailbox.imap_port}"
    with closing(open_store(postgres_url)) as store:
        assert store.leases.take(f"mailbox/{name}", "another worker", timedelta(minutes=5))
        (read,) = home.json("mailbox", "read")
        assert (read["mailbox"], read["read_elsewhere"]) == (name, True)
        assert "another process is reading it now" in home.run("mailbox", "read")
        store.leases.leave(f"mailbox/{name}", "another worker")
    assert not home.json("mailbox", "read")[0]["read_elsewhere"]
    assert not home.json("mailbox", "read")[0]["read_elsewhere"], "its own lease is left at the end"
