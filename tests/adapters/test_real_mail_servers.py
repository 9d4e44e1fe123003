"""A worker, as a user starts it, against Postfix and Exim with their limits set low.

Each test asks the server itself what it got: every letter once, in about the time it should take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mail_servers import MailServer, exim, postfix
from tests.crash.world import until

pytestmark = pytest.mark.long


class Office:
    """A list of people, a letter to them, and the worker that sends it."""

    def __init__(self, folder: Path, server: MailServer, people: int, connections: int) -> None:
        self.people = people
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONUTF8": "1",
            "DATABASE_URL": f"sqlite:///{folder}/sendonce.db",
            "STATE_DIR": str(folder / "state"),
            "TRANSPORT": "smtp",
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(server.port),
            "SMTP_FROM_EMAIL": "news@example.org",
            "RATE_LIMIT_PER_SEC": "0",
            "CONCURRENCY": str(connections),
            "UNSUBSCRIBE_SECRET": "a-secret-for-the-links-in-letters",
            "APP_BASE_URL": "https://news.example.org",
            "MAIL_FOOTER_ADDRESS": "Riga, 1 Example Street",
        }
        names = "".join(f"reader{n}@example.net\n" for n in range(people))
        (folder / "people.csv").write_text(f"email\n{names}")
        (folder / "letter.md").write_text("---\nsubject: Hello\n---\nHello, reader.\n")
        self.run("db", "upgrade")
        self.run("subscribers", "import", "people.csv")
        self.mailout = str(json.loads(self.run("mailout", "create", "letter.md", "--json"))["id"])
        self.run("mailout", "send", self.mailout, "--detach", "--json")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "sendonce", *arguments]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def status(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.run("mailout", "status", self.mailout, "--json"))
        return shown

    def held_sender(self) -> dict[str, Any] | None:
        senders = json.loads(self.run("sender", "list", "--json"))
        return next((sender for sender in senders if sender["state"] == "held"), None)

    @contextmanager
    def working(self) -> Iterator[None]:
        with (self.folder / "worker.log").open("wb") as log:
            worker = subprocess.Popen(
                self.command("worker"), env=self.environment, cwd=self.folder, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            worker.terminate()
            assert worker.wait(15) == 0, (self.folder / "worker.log").read_text()[-3000:]

    def send_all(self, within: float) -> float:
        """Seconds that the worker took, its start included, until every letter was sent."""
        began = time.monotonic()
        with self.working():
            until(lambda: self.status()["status"] == "sent", within, "every letter is sent")
            return time.monotonic() - began


def assert_each_got_one(office: Office, server: MailServer) -> None:
    assert sorted(server.recipients()) == sorted(f"reader{n}@example.net" for n in range(office.people))
    books = office.status()["counts"]
    assert books["sent"] == books["planned"] == office.people, books


def test_postfix_that_grants_three_connections_is_as_quick_with_eight(tmp_path: Path) -> None:
    """A limit of connections costs what it must: the three that are open carry all the letters."""
    seconds = []
    for connections in (3, 8):
        folder = tmp_path / str(connections)
        folder.mkdir()
        with postfix({"smtpd_client_connection_count_limit": "3"}) as server:
            office = Office(folder, server, 2000, connections)
            seconds.append(office.send_all(within=60))
            assert_each_got_one(office, server)
    assert seconds[1] < 2 * seconds[0] + 5, seconds


def test_postfix_with_fewer_processes_than_we_have_connections_gets_every_letter(tmp_path: Path) -> None:
    """The fifth connection waits for a greeting; no letter waits with it."""
    with postfix(processes=4) as server:
        office = Office(tmp_path, server, 300, 8)
        office.send_all(within=30)
        assert_each_got_one(office, server)


def test_postfix_that_limits_letters_per_minute_gets_every_letter(tmp_path: Path) -> None:
    """450 to MAIL is throttling: nothing dies of it, and no try is used up."""
    with postfix({"smtpd_client_message_rate_limit": "30", "anvil_rate_time_unit": "5s"}) as server:
        office = Office(tmp_path, server, 120, 4)
        office.send_all(within=90)
        assert_each_got_one(office, server)
        listing = json.loads(office.run("jobs", "list", "--json", "--mailout", office.mailout))
        assert {job["tries"] for job in listing} == {0}


def test_postfix_that_refuses_the_sender_fails_nobody(tmp_path: Path) -> None:
    """Postfix refuses a sender at RCPT. The sender is held with the reason, and the list is not burnt."""
    with postfix({"smtpd_sender_restrictions": "check_sender_access static:{REJECT not this one}"}) as server:
        office = Office(tmp_path, server, 200, 8)
        with office.working():
            sender = until(office.held_sender, 30, "the sender is held")
        assert "Sender address rejected: not this one" in sender["reason"]
        books = office.status()["counts"]
        assert (books["scheduled"], books["failed"], books["sent"]) == (200, 0, 0)
        assert server.recipients() == []


def test_postfix_that_limits_new_connections_gets_every_letter(tmp_path: Path) -> None:
    """421 to a connection that came too soon is about that connection."""
    with postfix({"smtpd_client_connection_rate_limit": "6", "anvil_rate_time_unit": "5s"}) as server:
        office = Office(tmp_path, server, 1000, 4)
        office.send_all(within=90)
        assert_each_got_one(office, server)


@pytest.mark.parametrize("connections", [1, 8])
def test_exim_that_takes_forty_letters_per_connection_gets_them_without_a_rest(
    tmp_path: Path, connections: int
) -> None:
    """421 to the 41st MAIL is a limit to be learned, not a reason to wait."""
    with exim("smtp_accept_max_per_connection = 40") as server:
        office = Office(tmp_path, server, 1000, connections)
        limited = office.send_all(within=90)
        assert_each_got_one(office, server)
    other = tmp_path / "unlimited"
    other.mkdir()
    with exim("smtp_accept_max_per_connection = 0") as server:
        office = Office(other, server, 1000, connections)
        unlimited = office.send_all(within=90)
    assert limited < 2 * unlimited + 5, (limited, unlimited)


def test_exim_that_grants_three_connections_gets_every_letter(tmp_path: Path) -> None:
    """Its limit counts connections of one host; a fourth is told to go."""
    with exim("smtp_accept_max_per_host = 3") as server:
        office = Office(tmp_path, server, 600, 8)
        office.send_all(within=60)
        assert_each_got_one(office, server)


def test_postfix_that_is_restarted_in_mid_send_gets_nothing_twice(tmp_path: Path) -> None:
    """What it had taken is sent, what was on the wire is in doubt, all else is sent after it is back."""
    with postfix() as server:
        office = Office(tmp_path, server, 1500, 8)
        with office.working():
            for part in (0.2, 0.5):
                until(
                    lambda enough=part: office.status()["counts"]["sent"] > enough * 1500, 60, "letters leave"
                )
                server.restart()
            until(lambda: office.status()["status"] == "sent", 90, "the rest is sent")
        books = office.status()["counts"]
        assert books["sent"] + books["in_doubt"] == books["planned"] == 1500
        assert books["in_doubt"] <= 2 * 8
        recipients = server.recipients()
        assert len(set(recipients)) == len(recipients) >= books["sent"]
