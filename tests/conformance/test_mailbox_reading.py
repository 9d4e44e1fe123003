"""Reading the sending mailbox: what comes back takes effect once, and only on letters that are ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import ClaimedJob, JobState
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor, answered_topic
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import Unavailable
from sendonce.flows.engine.read_mailbox import MailboxReader, Reading, ReadingRules
from sendonce.ports.engine import Leases
from tests.conformance.stage import ACCEPTED, DOUBTED, Stage, address

SECRET = b"a secret of ours"
OURS = "news@bakery.example"
K = MailKind


@dataclass
class Folder:
    """A folder without a server. ``raws`` are its messages in the order of their numbers."""

    raws: list[bytes] = field(default_factory=list)
    uid_validity: int = 1
    fetched: list[int] = field(default_factory=list)

    @property
    def uid_next(self) -> int:
        return len(self.raws) + 1

    @uid_next.setter
    def uid_next(self, value: int) -> None: ...

    def younger_than(self, age: timedelta) -> Sequence[int]:
        return range(1, self.uid_next)

    def after(self, uid: int) -> Sequence[int]:
        return range(uid + 1, self.uid_next)

    def fetch(self, uids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        for uid in uids:
            self.fetched.append(uid)
            yield uid, self.raws[uid - 1]


@dataclass
class Account:
    inbox: Folder
    name: str = "news@imap.example"

    @contextmanager
    def opened(self) -> Iterator[Account]:
        yield self

    def folder(self, name: str) -> Folder:
        assert name == "INBOX"
        return self.inbox


class Scene:
    """A letter that was sent, the mailbox that its answers come to, and who reads that."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store = stage.store
        stage.running(2)
        self.job, self.other = stage.claim().claimed
        for job in (self.job, self.other):
            stage.settle(job, ACCEPTED)
        self.inbox = Folder()

    def of_letter(self, job_id: str) -> object:
        return self.store.suppressions.unsubscribe(job_id)

    def of_address(self, asked: Address) -> object:
        return self.store.suppressions.add(DEFAULT_TENANT, asked, SuppressionReason.UNSUBSCRIBED)

    def read(self, *doors: str, leases: Leases | None = None) -> Reading:
        rules = ReadingRules(("INBOX",), frozenset({OURS}), (SECRET,), doors)
        return MailboxReader(Account(self.inbox), self.store, self, rules, leases).run()

    def arrives(self, raw: str) -> None:
        self.inbox.raws.append(raw.replace("\n", "\r\n").encode())

    def found(self) -> list[tuple[MailKind, str | None]]:
        return [(mail.kind, mail.job_id) for mail in reversed(self.store.mailbox_log.all())]

    def is_suppressed(self, number: int = 0) -> bool:
        return self.store.suppressions.covers(DEFAULT_TENANT, address(number)) is not None


@pytest.fixture
def scene(stage: Stage) -> Scene:
    return Scene(stage)


def bounce(
    job: ClaimedJob, status: str = "5.1.1", said: str = "no such user", token: str | None = None
) -> str:
    token = sign_token(job.id, SECRET) if token is None else token
    return f"""Return-Path: <>
From: MAILER-DAEMON@mx.example
Subject: Undelivered Mail
Date: Mon, 09 Nov 2026 10:00:00 +0000
Message-ID: <{status}.{said.replace(" ", ".")}@mx.example>
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; {job.recipient}
Action: {"delayed" if status.startswith("4") else "failed"}
Status: {status}
Diagnostic-Code: smtp; 550 {status} {said}

--b
Content-Type: text/rfc822-headers

From: {OURS}
Message-ID: <{job.id}@bakery.example>
List-Unsubscribe: <https://mail.bakery.example/unsubscribe?token={token}>
X-Sendonce-Job: {job.id}

--b--
"""


def answer(job: ClaimedJob | None, words: str, sender: str | None = None, subject: str = "Re: news") -> str:
    thread = f"In-Reply-To: <{job.id}@bakery.example>\n" if job else ""
    author = sender or (job.recipient if job else "somebody@example.org")
    own_id = f"<{words.encode().hex()}@example.org>"
    return f"From: {author}\nSubject: {subject}\nMessage-ID: {own_id}\n{thread}\n{words}\n"


def test_a_hard_bounce_ends_the_writing(scene: Scene) -> None:
    scene.arrives(bounce(scene.job))
    assert scene.read().kinds == {K.BOUNCE: 1}
    assert scene.stage.job(scene.job).bounced_at is not None
    assert scene.stage.subscriber(0).status == SubscriberStatus.BOUNCED
    assert (scene.is_suppressed(0), scene.is_suppressed(1)) == (True, False)
    (mail,) = scene.store.mailbox_log.all(job_id=scene.job.id)
    assert (mail.bounce, mail.code, mail.recipient) == ("hard", "5.1.1", scene.job.recipient)


@pytest.mark.parametrize(
    "token", ["", "A" * 44, sign_token("01900000-0000-7000-8000-000000000000", b"theirs")]
)
def test_a_bounce_without_our_signature_suppresses_nobody(scene: Scene, token: str) -> None:
    """Anybody can write a bounce: a Message-ID is no secret."""
    scene.arrives(bounce(scene.job, token=token))
    scene.read()
    assert scene.found() == [(K.BOUNCE, None)]
    assert scene.stage.job(scene.job).bounced_at is None
    assert not scene.is_suppressed()


def test_the_job_of_the_signature_counts_and_not_the_named_recipient(scene: Scene) -> None:
    """A receiver has the token of its own letter, and might name somebody else."""
    own = sign_token(scene.other.id, SECRET)
    scene.arrives(bounce(scene.job, token=own))
    scene.read()
    assert (scene.is_suppressed(0), scene.is_suppressed(1)) == (False, True)


def test_a_filter_is_no_fault_of_the_mailbox(scene: Scene) -> None:
    """It does not even count as a soft bounce, of which five in a row end the writing."""
    scene.arrives(bounce(scene.job, "5.7.1", "blocked as spam"))
    scene.read()
    (event,) = scene.store.events.all(job_id=scene.job.id)
    assert (event.kind, event.bounce_type, event.code) == (EventKind.BOUNCE, "undetermined", "5.7.1")
    assert not scene.is_suppressed()


def test_a_delay_is_told_and_changes_nothing(scene: Scene) -> None:
    scene.arrives(bounce(scene.job, "4.4.1", "timed out"))
    scene.read()
    assert [event.kind for event in scene.store.events.all()] == [EventKind.DEFERRED]
    assert scene.stage.job(scene.job).bounced_at is None


def test_a_bounce_is_evidence_that_a_letter_in_doubt_was_taken(stage: Stage) -> None:
    stage.running(2)
    scene = object.__new__(Scene)
    scene.stage, scene.store, scene.inbox = stage, stage.store, Folder()
    scene.job, _ = stage.claim().claimed
    stage.settle(scene.job, DOUBTED)
    scene.arrives(bounce(scene.job))
    scene.read()
    assert stage.state(scene.job) == JobState.SENT


def test_who_asks_to_be_left_alone_is(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "Please unsubscribe me."))
    scene.arrives(answer(None, "unsubscribe", address(1).text, subject="unsubscribe"))
    assert scene.read().kinds == {K.OPT_OUT: 2}
    assert (scene.is_suppressed(0), scene.is_suppressed(1)) == (True, True)
    assert scene.stage.subscriber(0).status == SubscriberStatus.UNSUBSCRIBED


def test_who_asks_from_another_address_is_left_alone_at_both(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "Please unsubscribe me.", sender=address(1).text))
    scene.read()
    assert (scene.is_suppressed(0), scene.is_suppressed(1)) == (True, True)


def test_a_report_of_an_opt_out_counts_with_our_signature_only(scene: Scene) -> None:
    report = (
        "From: desk@isp.example\nMessage-ID: <{0}@isp.example>\n"
        "Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n--b\n"
        "Content-Type: message/feedback-report\n\nFeedback-Type: opt-out\nOriginal-Rcpt-To: <{1}>\n\n--b\n"
        "Content-Type: message/rfc822\n\nMessage-ID: <{2}@bakery.example>\n{3}\n\n--b--\n"
    )
    job = scene.job
    scene.arrives(report.format("one", job.recipient, job.id, "Subject: x"))
    scene.read()
    assert not scene.is_suppressed()
    token = sign_token(job.id, SECRET)
    signed = f"List-Unsubscribe: <https://mail.bakery.example/unsubscribe?token={token}>"
    scene.arrives(report.format("two", job.recipient, job.id, signed))
    scene.read()
    assert scene.is_suppressed()


def test_replies_are_noted_with_their_letter_and_without_their_words(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "My phone number is 5551234."))
    scene.arrives(answer(None, "What about my order?", subject="a question"))
    assert scene.read().ours == 1
    assert scene.found() == [(K.REPLY, scene.job.id), (K.OTHER, None)]
    assert "5551234" not in repr(scene.store.mailbox_log.all())


def test_what_we_wrote_ourselves_is_no_answer(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "unsubscribe me", sender=OURS))
    scene.read()
    assert [kind for kind, _ in scene.found()] == [K.OTHER]
    assert not scene.is_suppressed()


def test_each_message_is_read_once(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "one"))
    assert scene.read().messages == 1
    scene.arrives(answer(scene.job, "two"))
    assert scene.read().messages == 1
    assert scene.read().messages == 0
    assert scene.inbox.fetched == [1, 2]


def test_another_validity_means_reading_again_without_effects(scene: Scene) -> None:
    """The server numbers its messages anew. What was lifted since must not come back."""
    scene.arrives(answer(scene.job, "unsubscribe me"))
    scene.read()
    assert scene.store.suppressions.remove(DEFAULT_TENANT, address(0), "operator")
    scene.inbox.uid_validity = 2
    scene.arrives(answer(scene.other, "remove me"))
    assert scene.read().kinds == {K.OPT_OUT: 1}
    assert (scene.is_suppressed(0), scene.is_suppressed(1)) == (False, True)
    assert scene.store.mailbox_log.cursor(Account.name, "INBOX") == MailCursor(2, 2)


def test_a_crash_between_effect_and_note_is_harmless(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.arrives(bounce(scene.job, "5.2.2", "mailbox full"))
    with monkeypatch.context() as patch:
        patch.setattr(type(scene.store.mailbox_log), "keep", _unavailable)
        with pytest.raises(Unavailable):
            scene.read()
    assert len(scene.store.events.all()) == 1
    assert scene.read().messages == 1
    assert len(scene.store.events.all()) == 1


def _unavailable(*_: object, **__: object) -> int:
    raise Unavailable("the database went away")


def test_an_empty_folder_has_a_cursor_too(scene: Scene) -> None:
    scene.read()
    assert scene.store.mailbox_log.cursor(Account.name, "INBOX") == MailCursor(1, 0)


def test_only_the_doors_that_listen_are_told(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "one"))
    scene.read()
    assert scene.store.outbox.due(answered_topic("mailout"), 10) == []
    scene.arrives(answer(scene.job, "two"))
    scene.read("mailout")
    ((_, body),) = scene.store.outbox.due(answered_topic("mailout"), 10)
    assert (body["job_id"], body["kind"]) == (scene.job.id, "reply")
    assert scene.job.recipient not in repr(body)


def test_the_cursor_never_goes_back(stage: Stage) -> None:
    """Two workers may read the same mailbox."""
    kept, mail = stage.store.mailbox_log, FoundMail("key", K.OTHER)
    assert kept.keep("box", "INBOX", MailCursor(1, 9), [mail]) == 1
    assert kept.keep("box", "INBOX", MailCursor(1, 5), [mail]) == 0
    assert kept.cursor("box", "INBOX") == MailCursor(1, 9)
    assert kept.known("box", ["key", "other"]) == {"key"}
    assert kept.known("another box", ["key"]) == set()


def test_an_erased_person_is_not_in_what_was_found(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "hello"))
    scene.arrives(bounce(scene.job))
    scene.read()
    scene.store.people.erase(address(0), "operator")
    assert address(0).text not in repr(scene.store.mailbox_log.all())


def test_the_last_reading_is_kept(scene: Scene) -> None:
    """With what was found so far; a trouble takes nothing of it away, and is over with the next reading."""
    scene.arrives(answer(scene.job, "one"))
    scene.read()
    scene.arrives(answer(scene.job, "two"))
    scene.arrives(bounce(scene.other))
    scene.read()
    (read,) = scene.store.mailbox_log.readings()
    assert (read.mailbox, read.found, read.trouble) == (Account.name, {"bounce": 1, "reply": 2}, None)
    scene.store.mailbox_log.note_trouble(Account.name, "it is away")
    (failed,) = scene.store.mailbox_log.readings()
    assert (failed.read_at, failed.found, failed.trouble) == (read.read_at, read.found, "it is away")
    assert failed.failed_at is not None
    scene.read()
    (again,) = scene.store.mailbox_log.readings()
    assert (again.found, again.failed_at, again.trouble) == (read.found, None, None)


def test_a_mailbox_that_does_not_answer_is_noted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Account, "folder", _unavailable)
        with pytest.raises(Unavailable):
            scene.read()
    (read,) = scene.store.mailbox_log.readings()
    assert (read.read_at, read.trouble) == (None, "the database went away")


class Turns:
    """Leases without a database: ``given`` times this process may have one."""

    def __init__(self, given: int) -> None:
        self.given = given
        self.left: list[str] = []

    def take(self, name: str, holder: str, lasting: timedelta) -> bool:
        self.given -= 1
        return self.given >= 0

    def leave(self, name: str, holder: str) -> None:
        self.left.append(name)


def test_one_process_at_a_time_reads_a_mailbox(scene: Scene) -> None:
    scene.arrives(answer(scene.job, "one"))
    assert scene.read(leases=Turns(given=0)).elsewhere
    assert scene.inbox.fetched == []
    turns = Turns(given=9)
    assert scene.read(leases=turns).messages == 1
    assert turns.left == [f"mailbox/{Account.name}"]


def test_who_loses_the_lease_on_the_way_stops(scene: Scene) -> None:
    """It reads no further message; whoever has the lease now goes on behind the cursor."""
    for number in range(25):
        scene.arrives(answer(scene.job, f"letter {number}"))
    with pytest.raises(Unavailable, match="took too long"):
        scene.read(leases=Turns(given=2))
    assert scene.inbox.fetched == list(range(1, 11))
    assert scene.read(leases=Turns(given=9)).messages == 15
