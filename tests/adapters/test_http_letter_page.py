"""GET /letter: the page behind "View in browser"."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.tokens import VIEW, read_token, sign_token
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from tests.adapters.http_stage import UNSUBSCRIBE_SECRET, HttpStage, serving, token_of

SECRET = UNSUBSCRIBE_SECRET.encode()
EVIL = "<script>alert(1)</script>"
LETTER = Letter(
    "Hi", "", '<body><p>Dear {{ name }}</p><a href="https://x.ru/{{ name | url }}">x</a></body>', "{{ name }}"
)
SETTINGS: dict[str, Any] = {
    "from_address": "news@example.com",
    "from_name": None,
    "reply_to": None,
    "footer_address": "Riga, 1 Street",
    "base_url": "https://mail.example.com",
    "message_id_domain": "example.com",
    "unsubscribe_secret": SECRET,
}


@pytest.fixture
def http(sqlite_url: str) -> Iterator[HttpStage]:
    given = {"VIEW_IN_BROWSER": "true", "MAIL_FOOTER_ADDRESS": "Riga, 1 Street"}
    with serving(sqlite_url, given) as stage:
        yield stage


def job_of(http: HttpStage, letter: Letter = LETTER) -> Job:
    person = NewSubscriber(parse_address("jane@example.com"), name=EVIL)
    http.store.subscribers.upsert(DEFAULT_TENANT, [person])
    mailout = http.stage.new_mailout(letter=letter).id
    http.store.mailouts.start(mailout)
    http.stage.plan(mailout)
    (job,) = http.store.jobs.list(dispatch_id=mailout)
    return job


def link(job: Job) -> str:
    return f"/letter?token={sign_token(job.id, SECRET, VIEW)}"


def test_the_letter_is_shown_as_its_reader_got_it(http: HttpStage) -> None:
    """Values are escaped, nothing runs, nobody can unsubscribe its reader from there, nothing is indexed."""
    shown = http.ask("GET", link(job_of(http)))
    assert shown.status == 200
    assert "Dear &lt;script&gt;alert(1)&lt;/script&gt;" in shown.text
    assert "https://x.ru/%3Cscript%3E" in shown.text
    assert "Riga, 1 Street" in shown.text
    assert "unsubscribe" not in shown.text
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert "script-src" not in shown.headers["Content-Security-Policy"]
    assert shown.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert shown.headers["Cache-Control"] == "no-store"


def test_a_plain_letter_is_shown_as_text(http: HttpStage) -> None:
    shown = http.ask(
        "GET", link(job_of(http, Letter("Hi", "", "<p>h</p>", "Dear {{ name }}", text_only=True)))
    )
    assert "<pre" in shown.text
    assert "Dear &lt;script&gt;" in shown.text
    assert "<p>h</p>" not in shown.text


def test_tokens_are_for_one_purpose(http: HttpStage) -> None:
    """A link to view does not unsubscribe, and the way out shows no letter."""
    job = job_of(http)
    assert http.ask("GET", f"/letter?token={token_of(job)}").status == 404
    assert http.ask("POST", f"/unsubscribe?token={sign_token(job.id, SECRET, VIEW)}").status == 404
    assert http.ask("GET", "/letter?token=x").status == 404
    assert http.ask("GET", "/letter").status == 404


def test_who_was_erased_is_shown_nothing(http: HttpStage) -> None:
    job = job_of(http)
    http.store.people.erase(parse_address("jane@example.com"), "operator")
    assert http.ask("GET", link(job)).status == 404


def test_it_is_off_unless_somebody_turns_it_on(sqlite_url: str) -> None:
    """No page, and no link in letters."""
    with serving(sqlite_url, {}) as http:
        assert http.ask("GET", link(job_of(http))).status == 404
    job_id = "0198c5a1-7b1e-7cc3-9d50-0242ac120002"
    for on in (False, True):
        settings = MessageSettings(**SETTINGS, view_links=on)
        raw = compile_letter(LETTER, settings, "m").build(
            job_id, "a@example.com", {"name": "J"}, datetime.now(UTC)
        )
        message = email.message_from_bytes(raw)
        parts = message.get_payload()
        assert isinstance(parts, list)
        for part in parts:
            words = part.get_payload(decode=True).decode()
            found = re.findall(r"https://mail\.example\.com/letter\?token=([\w-]+)", words)
            assert [read_token(token, SECRET, VIEW) for token in found] == [job_id] * on
