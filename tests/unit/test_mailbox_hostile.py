"""Whatever lies in a mailbox, reading it ends soon and raises nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.engine.mailbox.causes import Bounce
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.mime import MOST_BYTES, read_mail
from sendonce.flows.engine.classify_mail import classify_mail

NAMES = (
    "From",
    "Subject",
    "Content-Type",
    "Return-Path",
    "Auto-Submitted",
    "X-Failed-Recipients",
    "Precedence",
)
PIECES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            *(
                b"\r\n",
                b"\n\n",
                b"--b\r\n",
                b"--b--",
                b"=?utf-8?B?////?=",
                b"=?x?q?=FF?=",
                b"<>",
                b"550 5.1.1 ",
            ),
            b"Content-Type: multipart/report; boundary=b; report-type=delivery-status\r\n",
            *(b"Content-Type: message/delivery-status\r\n\r\n", b"Final-Recipient: rfc822; a@b.example\n"),
            *(
                b"Action: failed\n",
                b"Content-Type: message/feedback-report\n\n",
                b"user unknown ",
                b"unsubscribe me",
            ),
            *(
                b"Content-Transfer-Encoding: base64\n",
                b"Content-Type: text/html; charset=punycode\n\n",
                b"<script",
            ),
        ]
    ),
)


@given(st.lists(st.tuples(st.sampled_from(NAMES), PIECES), max_size=8), st.lists(PIECES, max_size=20))
def test_no_bytes_raise(headers: list[tuple[str, bytes]], body: list[bytes]) -> None:
    head = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers)
    it = classify_mail(head + b"\r\n" + b"".join(body))
    assert it.kind in MailKind
    assert (it.bounce is None) == (it.kind is not MailKind.BOUNCE)
    assert it.reason is None or (len(it.reason) <= 300 and it.reason.isprintable())


def nested(depth: int) -> bytes:
    head = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(depth))
    return b"From: a@b.example\n" + head + b"\ndeep"


HOSTILE = {
    "nothing": b"",
    "no headers": b"\r\n\r\nhello",
    "only a header": b"Subject: x",
    "five thousand levels": nested(5_000),
    "many parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 100_000,
    "many headers": b"X: y\n" * 200_000 + b"\nbody",
    "one long header": b"Subject: " + b"=?utf-8?q?a" * 90_000 + b"\n\nbody",
    "one long line": b"From: mailer-daemon@x.example\nSubject: failure\n\n" + b"user " * 190_000,
    "tags": b"Content-Type: text/html\n\n" + b"<script<div<br" * 60_000,
    "quotes": b"Subject: Re: x\nIn-Reply-To: <a@b>\n\n" + b"On " * 300_000 + b"\n" + b">" * 100_000,
    "ats": b"From: mailer-daemon@x.example\nSubject: failure\n\n" + b"a@" * 400_000,
    "a charset that is none": b"Content-Type: text/plain; charset=unicode_escape\n\n\\x41" + b"\xff" * 1000,
    "a NUL in the charset": b'Content-Type: text/plain; charset="utf-\x008"\n\nhi',
    "a long boundary": b'Content-Type: multipart/mixed; boundary="' + b"b" * 90_000 + b'"\n\n--b\n',
    "cut base64": b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nQUJD=QUJD\n=",
    "a line of dashes": b"From: mailer-daemon@x.example\nSubject: failure\n\n" + b"-" * 1_000_000,
    "lines of dashes": b"From: mailer-daemon@x.example\nSubject: failure\n\n" + (b"-" * 80 + b"\n") * 12_000,
    "signs of quoted-printable": b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=" * 2_000_000,
    "nothing but megabytes": bytes(3 * MOST_BYTES),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_is_read_within_bounds(name: str) -> None:
    """Slow ones would show in the whole suite: each of these takes well under a second."""
    mail = read_mail(HOSTILE[name])
    assert len(mail.parts) <= 50
    assert sum(len(part.text) for part in mail.parts) <= MOST_BYTES
    assert classify_mail(HOSTILE[name]).bounce is not Bounce.HARD


def test_a_report_inside_a_forwarded_message_is_not_a_report() -> None:
    """A colleague forwards a bounce as an attachment: nobody bounced now."""
    report = (
        b"Content-Type: multipart/report; report-type=delivery-status; boundary=i\n\n--i\n"
        b"Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822; a@b.example\nAction: failed\n"
        b"Status: 5.1.1\n\n--i--\n"
    )
    forwarded = (
        b"From: Boss <boss@bakery.example>\nSubject: Fwd: Undelivered\n"
        b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: text/plain\n\nWhat is this?\n"
        b"--o\nContent-Type: message/rfc822\n\n" + report + b"--o--\n"
    )
    assert classify_mail(forwarded).kind is MailKind.OTHER


@pytest.mark.parametrize(
    ("sender", "subject", "words"),
    [
        ("postmaster@firma.example", "Re: Repair", "What does it cost? Our budget is 550 thousand."),
        ("smtp-pumps@firma.example", "Re: Repair", "Model 550 has a blocked valve. The price?"),
        ("exchange@firma.example", "Re: Repair", "What is the delay? user unknown to us. Call me."),
        ("anna@firma.example", "Undelivered pump", "Is it undeliverable? 550 roubles each, user unknown"),
    ],
)
def test_a_person_who_answers_is_no_server(sender: str, subject: str, words: str) -> None:
    head = f"Return-Path: <{sender}>\nFrom: {sender}\nSubject: {subject}\nIn-Reply-To: <a@bakery.example>\n\n"
    assert classify_mail(f"{head}{words}\n".encode()).kind is MailKind.REPLY


@pytest.mark.parametrize(
    ("declared", "written"),
    [("koi8-r", "utf-8"), ("iso-8859-1", "windows-1251"), ("us-ascii", "windows-1251"), ("koi8-r", "koi8-r")],
)
def test_a_wrong_charset_hides_no_wish(declared: str, written: str) -> None:
    head = f"From: a@b.example\nSubject: Re: x\nContent-Type: text/plain; charset={declared}\n\n"
    assert classify_mail(head.encode() + "Отпишите меня".encode(written)).kind is MailKind.OPT_OUT


def test_accents_are_read_as_they_were_written() -> None:
    """Western letters are not taken for Russian ones."""
    text = "Merci, le devis a été reçu à Genève."
    raw = b"Content-Type: text/plain; charset=iso-8859-1\n\n" + text.encode("latin-1")
    assert read_mail(raw).text == text
