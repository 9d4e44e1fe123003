"""The IMAP account against a real server: Debian's Dovecot, with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

import pytest

from sendonce.adapters.imap.account import ImapAccount, ImapSettings
from sendonce.errors import Unavailable
from tests.adapters.dovecot import PASSWORD, USER, Dovecot, running_dovecot

pytestmark = pytest.mark.long

MONTH = timedelta(days=30)
JOB = "0198f3a2-7c11-7d00-8000-3f2a9c5e1b70"


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    with running_dovecot() as running:
        yield running


def account(
    dovecot: Dovecot, security: Literal["tls", "starttls", "plain"] = "tls", password: str = PASSWORD
) -> ImapAccount:
    port = dovecot.tls_port if security == "tls" else dovecot.port
    return ImapAccount(ImapSettings("localhost", port, security, USER, password, ca_file=dovecot.ca_file))


def letter(subject: str) -> bytes:
    return f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nhi\r\n".encode()


@pytest.mark.parametrize("security", ["tls", "starttls", "plain"])
def test_messages_are_read(dovecot: Dovecot, security: Literal["tls", "starttls", "plain"]) -> None:
    dovecot.deliver(letter("one"))
    dovecot.deliver(letter("two"))
    with account(dovecot, security).opened() as opened:
        folder = opened.folder("INBOX")
        uids = list(folder.younger_than(MONTH))
        assert folder.uid_next == uids[-1] + 1
        assert list(folder.after(uids[-2])) == uids[-1:]
        assert list(folder.after(uids[-1])) == []
        fetched = dict(folder.fetch([*uids[-2:], uids[-1] + 100]))
    assert [fetched[uid].count(b"Subject: ") for uid in uids[-2:]] == [1, 1]


def test_a_wrong_password_is_refused(dovecot: Dovecot) -> None:
    with pytest.raises(Unavailable, match=r"refused the sign-in.*IMAP_PASSWORD"):
        account(dovecot, password="guessed").opened().__enter__()


def test_messages_stay_unseen(dovecot: Dovecot) -> None:
    dovecot.deliver(letter("unseen"))
    with account(dovecot).opened() as opened:
        folder = opened.folder("INBOX")
        assert list(folder.fetch(folder.younger_than(MONTH)))
    assert dovecot.seen() == []


def test_a_certificate_of_a_stranger_is_refused(dovecot: Dovecot) -> None:
    settings = ImapSettings("localhost", dovecot.tls_port, "tls", USER, PASSWORD)
    with pytest.raises(Unavailable, match=r"not trusted: .*SMTP_CA_FILE"):
        ImapAccount(settings).opened().__enter__()


def test_a_sent_letter_is_found_by_its_job(dovecot: Dovecot) -> None:
    raw = letter("sent").replace(b"<sent@x>", f"<{JOB}@example.com>".encode())
    dovecot.deliver(raw, "Отправленные")
    with account(dovecot).opened_sent() as sent:
        assert sent.holds(JOB)
        assert not sent.holds(JOB.replace("3", "4"))


def test_a_lost_index_is_another_validity(dovecot: Dovecot) -> None:
    with account(dovecot).opened() as opened:
        before = opened.folder("INBOX").uid_validity
    dovecot.renumber()
    with account(dovecot).opened() as opened:
        folder = opened.folder("INBOX")
        assert folder.uid_validity != before
        assert list(folder.fetch(folder.younger_than(MONTH)))
