"""Mailouts that start at a time, and the one question before letters go to people, as a user meets them."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.entrypoints.views import mailout_view
from tests.acceptance.test_cli_refusals import FAILED, REFUSED, USAGE, letter, plain, told
from tests.acceptance.test_threats_people import Desk, desk
from tests.conformance.stage import Stage

__all__ = ["desk"]

RIGA = ZoneInfo("Europe/Riga")


@pytest.fixture
def mailout(desk: Desk) -> str:
    """A ready mailout to three people, on Riga's clock."""
    desk.environment["APP_TIMEZONE"] = "Europe/Riga"
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        stage.subscribe(range(3))
        return stage.mailout()


def status(desk: Desk, mailout: str) -> dict[str, Any]:
    """As --json shows it, without a process of its own."""
    with closing(open_store(desk.database_url)) as store:
        return mailout_view(Stage(store).get(mailout), store.jobs.books(mailout))


def come_due(desk: Desk, mailout: str) -> None:
    """Its time is now."""
    with closing(open_store(desk.database_url)) as store:
        store.mailouts.schedule(mailout, store.ledger.now())


def test_it_waits_for_its_time_and_the_next_worker_sends_it(desk: Desk, mailout: str) -> None:
    """The time is on the clock of APP_TIMEZONE; a worker that comes after it sends to everybody once."""
    morning = (datetime.now(RIGA) + timedelta(days=2)).replace(hour=9, minute=0, second=0, microsecond=0)
    said = desk.run("mailout", "send", mailout, "--at", f"{morning:%Y-%m-%d %H:%M}")
    assert f"It starts at {morning:%Y-%m-%d} 09:00 (Europe/Riga)" in said
    shown = status(desk, mailout)
    assert (shown["status"], shown["scheduled"]) == ("ready", True)
    assert datetime.fromisoformat(shown["send_at"]) == morning.astimezone(UTC)
    desk.run("worker", "--until-idle")
    assert status(desk, mailout)["counts"]["planned"] == 0
    come_due(desk, mailout)
    desk.run("worker", "--until-idle")
    shown = status(desk, mailout)
    assert (shown["status"], shown["counts"]["sent"], shown["scheduled"]) == ("sent", 3, False)


def test_a_tick_starts_and_sends_what_is_due(desk: Desk, mailout: str) -> None:
    come_due(desk, mailout)
    desk.run("tick", "--seconds", "20")
    assert status(desk, mailout)["counts"]["sent"] == 3


def test_cancelled_before_its_time(desk: Desk, mailout: str) -> None:
    desk.run("mailout", "send", mailout, "--at", "2999-12-01 09:00")
    assert "cancelled" in desk.run("mailout", "cancel", mailout)
    assert not status(desk, mailout)["scheduled"]


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("2020-01-01 09:00", REFUSED, "2020-01-01 07:00 UTC has passed: it is "),
        ("tomorrow", USAGE, "is not a time"),
        ("2999-13-01 09:00", USAGE, "is not a time"),
    ],
)
def test_no_time_to_wait_for(desk: Desk, mailout: str, at: str, code: int, said: str) -> None:
    """The past is refused, and what is no time."""
    assert said in told(desk, "mailout", "send", mailout, "--at", at, code=code)
    assert not status(desk, mailout)["scheduled"]


def test_a_doubtful_hour_is_settled_and_said(desk: Desk, mailout: str) -> None:
    """The clocks of Riga go forward at three: half past three is half past four."""
    said = told(desk, "mailout", "send", mailout, "--at", "2099-03-29 03:30", code=0)
    assert "does not exist in Europe/Riga" in said
    assert "(Europe/Riga)" in desk.run("mailout", "status", mailout)


def test_the_letters_own_time(desk: Desk, mailout: str) -> None:
    """Sending honours it, until --now overrules it; a time that has passed makes no mailout."""
    text = plain(subject="Later\nsend_at: 2999-12-01T09:00Z")
    later = desk.json("mailout", "create", letter(desk, text))["id"]
    assert not status(desk, later)["scheduled"]
    assert desk.json("mailout", "send", later)["scheduled"]
    assert desk.json("mailout", "send", later, "--now")["status"] == "sent"
    by_the_clock = letter(desk, plain(subject="Later\nsend_at: 2999-12-01 09:00"))
    assert desk.json("mailout", "create", by_the_clock)["send_at"] == "2999-12-01T07:00:00+00:00"
    past = letter(desk, plain(subject="x\nsend_at: 2020-12-01 09:00"))
    assert "has passed" in told(desk, "mailout", "create", past, code=REFUSED)
    never = letter(desk, plain(subject="x\nsend_at: soon"))
    assert "send_at" in told(desk, "mailout", "create", never, code=USAGE)
    told(desk, "mailout", "send", mailout, "--now", "--at", "2999-12-01 09:00", code=USAGE)


# -- questions -------------------------------------------------------------------------------------


def waits_for_a_key(pid: int) -> bool:
    """Whether the process sleeps in read(0, …), by what the kernel tells of it."""
    call = Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()
    return call[:2] == ["0", "0x0"]


def _sit_down_at(terminal: int) -> None:
    """A person's shell minds Ctrl-C, also where these tests run in the background of one that does not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.login_tty(terminal)


def on_a_terminal(desk: Desk, *arguments: str, answer: str, after: str = "") -> tuple[int, str]:
    """The command with a person at the keyboard: the exit code, and the screen.

    The answer is typed once ``after`` is on the screen and the program waits for a key. Python may not notice
    a signal that comes just before.
    """
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sendonce", *arguments],
        env={**desk.environment, "TERM": "dumb"},
        cwd=desk.folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=lambda: _sit_down_at(terminal),
    )
    os.close(terminal)
    screen, typed = b"", False
    ends = time.monotonic() + 60
    while (left := ends - time.monotonic()) > 0:
        if not typed and after.encode() in screen and (not after or waits_for_a_key(process.pid)):
            os.write(master, answer.encode())
            typed = True
        if not select.select([master], [], [], min(left, 1.0 if typed else 0.01))[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux says EIO when the other side has closed
            break
        if not piece:
            break
        screen += piece
    os.close(master)
    return process.wait(timeout=60), screen.decode()


def test_on_a_terminal_it_asks_once_with_the_number(desk: Desk, mailout: str) -> None:
    """No is the default: nothing is started. Yes sends."""
    code, screen = on_a_terminal(desk, "mailout", "send", mailout, answer="\n")
    assert (code, status(desk, mailout)["status"]) == (FAILED, "ready")
    assert "Send to 3 people? [y/N]" in screen
    assert "Nothing was sent." in screen
    code, screen = on_a_terminal(desk, "mailout", "send", mailout, answer="y\n")
    assert (code, status(desk, mailout)["counts"]["sent"]) == (0, 3)
    assert screen.count("[y/N]") == 1


def test_a_large_number_is_easy_to_read(desk: Desk, mailout: str) -> None:
    many = [NewSubscriber(parse_address(f"reader{number}@example.com")) for number in range(1_000)]
    with closing(open_store(desk.database_url)) as store:
        store.subscribers.upsert(DEFAULT_TENANT, many)
    screen = on_a_terminal(desk, "mailout", "send", mailout, answer="n\n")[1]
    assert "Send to 1,003 people? [y/N]" in screen


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_leaving_the_question_unanswered_is_a_no(desk: Desk, mailout: str, key: str) -> None:
    """Ctrl-C and Ctrl-D at the question: the answer says that nothing happened."""
    code, screen = on_a_terminal(desk, "mailout", "send", mailout, answer=key, after="[y/N]")
    assert (code, status(desk, mailout)["status"]) == (FAILED, "ready")
    assert "\nNothing was sent." in screen
    assert "Aborted" not in screen


def test_cancelling_asks_too(desk: Desk, mailout: str) -> None:
    code, screen = on_a_terminal(desk, "mailout", "cancel", mailout, answer="n\n")
    assert (code, status(desk, mailout)["cancelled"]) == (FAILED, False)
    assert "for good? [y/N]" in screen
    assert on_a_terminal(desk, "mailout", "cancel", mailout, "--yes", answer="")[0] == 0


@pytest.mark.parametrize("flag", ["--yes", "--json"])
def test_nobody_is_asked_who_said_so_before(desk: Desk, mailout: str, flag: str) -> None:
    code, screen = on_a_terminal(desk, "mailout", "send", mailout, flag, answer="")
    assert code == 0
    assert "[y/N]" not in screen
