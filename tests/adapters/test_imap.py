"""The IMAP account against the sandbox's mailbox, and against servers that misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sendonce.adapters.doctor.mailbox import MailboxProbe
from sendonce.adapters.imap.account import ImapAccount, ImapSettings
from sendonce.domain.engine.checks import Verdict
from sendonce.errors import Unavailable
from sendonce.sandbox.mailbox import Mailbox
from tests.adapters.doctor_stage import ask
from tests.adapters.mailbox_stage import account_of, running_mailbox, saying

MONTH = timedelta(days=30)
JOB = "0198f3a2-7c11-7d00-8000-3f2a9c5e1b70"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with running_mailbox() as running:
        yield running


def test_new_messages_are_fetched_by_their_numbers(mailbox: Mailbox) -> None:
    inbox = mailbox.folders["INBOX"]
    for number in range(3):
        inbox.file(b"Subject: %d\r\n\r\nbody\r\n" % number)
    with account_of(mailbox).opened() as account:
        folder = account.folder("INBOX")
        assert (folder.uid_validity, folder.uid_next) == (1, 4)
        assert list(folder.younger_than(MONTH)) == [1, 2, 3]
        assert list(folder.after(1)) == [2, 3]
        assert list(folder.after(3)) == []  # although "4:*" has the last message in it
        assert [(uid, raw[:10]) for uid, raw in folder.fetch([2, 3, 99])] == [
            (2, b"Subject: 1"),
            (3, b"Subject: 2"),
        ]


def test_nothing_in_the_mailbox_is_changed(mailbox: Mailbox) -> None:
    mailbox.folders["INBOX"].file(b"Subject: x\r\n\r\n")
    with account_of(mailbox).opened() as account:
        list(account.folder("INBOX").fetch([1]))
    given = " ".join(mailbox.imap.commands).upper()
    assert "EXAMINE" in given
    assert "BODY.PEEK[]" in given
    for changing in ("SELECT", "STORE", "EXPUNGE", "DELETE", "BODY[", "APPEND", "MOVE", "COPY"):
        assert changing not in given


def test_a_huge_message_is_fetched_in_part(mailbox: Mailbox) -> None:
    mailbox.folders["INBOX"].file(b"Subject: x\r\n\r\n" + b"x" * 3_000_000)
    with account_of(mailbox).opened() as account:
        ((_, raw),) = account.folder("INBOX").fetch([1])
    assert len(raw) == 1_000_000


def test_a_letter_is_found_in_the_folder_of_sent_ones(mailbox: Mailbox) -> None:
    mailbox.folders["Sent"].file(f"Message-ID: <{JOB}@example.com>\r\n\r\nhello\r\n".encode())
    with account_of(mailbox).opened() as account:
        assert account.sent_folder() == "Sent"
        sent = account.folder("Sent")
        assert sent.holds(JOB)
        assert not sent.holds(JOB.replace("a", "b"))


def test_a_wrong_password_names_the_settings(mailbox: Mailbox) -> None:
    account = account_of(mailbox, password="guessed")
    with pytest.raises(Unavailable, match=r"refused the sign-in of news@example.com.*IMAP_PASSWORD") as told:
        account.opened().__enter__()
    assert "guessed" not in str(told.value)
    assert "guessed" not in repr(account.__dict__)


def test_an_unknown_folder_is_named(mailbox: Mailbox) -> None:
    with account_of(mailbox).opened() as account, pytest.raises(Unavailable, match=r"'Junk'.*IMAP_FOLDERS"):
        account.folder("Junk")


def test_a_server_that_is_not_there_is_unavailable() -> None:
    account = ImapAccount(ImapSettings("127.0.0.1", 1, "plain", "news@example.com", "x"))
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 does not answer"):
        account.opened().__enter__()


def test_the_doctor_opens_the_folders_and_reads_nothing(mailbox: Mailbox) -> None:
    found = ask(MailboxProbe(account_of(mailbox), ["INBOX"], files_sent=True))
    assert found["mailbox"].verdict is Verdict.OK
    assert not [command for command in mailbox.imap.commands if "FETCH" in command]
    found = ask(MailboxProbe(account_of(mailbox), ["INBOX", "Junk"], files_sent=False))
    assert found["mailbox"].verdict is Verdict.WARNING
    assert "'Junk'" in found["mailbox"].what


def greeting_only(line: bytes) -> bytes:
    return b"what\r\n"


def endless_literal(line: bytes) -> bytes:
    tag = line.split()[0]
    if b"CAPABILITY" in line:
        return b"* CAPABILITY IMAP4rev1\r\n" + tag + b" OK done\r\n"
    if b"EXAMINE" in line:
        return b"* OK [UIDVALIDITY 1] v\r\n* OK [UIDNEXT 2] n\r\n" + tag + b" OK done\r\n"
    return b"* 1 FETCH (UID 1 BODY[]<0> {99999999999}\r\n" if b"FETCH" in line else tag + b" OK done\r\n"


def test_nonsense_of_a_server_is_unavailable() -> None:
    with saying(greeting_only) as port:
        account = ImapAccount(ImapSettings("127.0.0.1", port, "plain", "a", "b"))
        with pytest.raises(Unavailable, match="answered with an error"):
            account.opened().__enter__()


def test_a_literal_beyond_what_was_asked_for_is_refused() -> None:
    with saying(endless_literal) as port:
        account = ImapAccount(ImapSettings("127.0.0.1", port, "plain", "a", "b"))
        with account.opened() as opened, pytest.raises(Unavailable, match="99999999999 bytes"):
            list(opened.folder("INBOX").fetch([1]))
