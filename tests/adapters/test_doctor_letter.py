"""The doctor on a mailout's letter and on the list: each stop, made to appear."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from sendonce.adapters.doctor.letter import LetterProbe, fault_checks, unsubscribe_check
from sendonce.adapters.doctor.letter_links import links_check
from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.stores.sql import open_store
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import Verdict
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.mailouts.mailouts import FetchedLetter, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.errors import BadInput, Unavailable
from sendonce.flows.mailouts.preflight import check_letter
from tests.adapters.doctor_stage import Findings, adopt, ask, doctor
from tests.conformance.stage import Stage

BASE = "https://mail.example.com"
SETTINGS = MessageSettings(
    "news@example.com", None, None, "1 Example Street", BASE, "example.com", b"a secret of the tests"
)
JOB = "01900000-0000-7000-8000-000000000000"


class Desk:
    """A list, a letter, and the doctor's word on them."""

    def __init__(self, url: str, state: Path, store: SqlStore) -> None:
        self.url = url
        self.state = state
        self.store = store

    def people(self, *emails: str, name: str | None = "Ann", **attributes: str) -> None:
        people = [NewSubscriber(parse_address(email), name, attributes) for email in emails]
        self.store.subscribers.upsert(DEFAULT_TENANT, people)

    def mailout(self, html: str = "<p>Hi</p>", text: str = "Hi", subject: str = "News") -> str:
        letter = Letter(subject, "", html, text)
        return self.store.mailouts.create(DEFAULT_TENANT, NewMailout("news", "file", letter)).id

    def examined(self, mailout: str | None = None) -> Findings:
        return doctor(self.url, self.state, {"APP_BASE_URL": BASE}, mailout)


@pytest.fixture
def desk(sqlite_url: str, tmp_path: Path) -> Iterator[Desk]:
    store = open_store(adopt(sqlite_url))
    yield Desk(sqlite_url, tmp_path, store)
    store.close()


# -- the mailout and its letter ------------------------------------------------------------------


def test_a_mailout_that_is_well_may_go(desk: Desk) -> None:
    """Its letter is built, read again and held against the list."""
    desk.people("ann@example.org", "bob@example.org", city="Riga")
    html = "<p>Hi {{ name }}</p><a href='https://example.com/{{ city }}'>x</a>"
    html += "<a href='mailto:a@example.com'>y</a><a href='#z'>z</a>"
    found = desk.examined(desk.mailout(html, "Hi {{ name }} of {{ city }}"))
    assert not found.stops()
    for name in ("mailout", "letter.unsubscribe", "letter.size", "letter.text", "letter.links"):
        assert found[name].verdict is Verdict.OK
    assert found.told("letter.variables") == "ok: Every active subscriber has city, name."
    assert "2 links" in found.told("letter.links")


def test_a_mailout_that_cannot_be_sent_is_a_stop(desk: Desk) -> None:
    """Unknown, a draft, or over: each says what to do."""
    desk.people("ann@example.org")
    unknown = desk.examined("no-such-id")
    assert unknown.told("mailout") == "stop: There is no mailout no-such-id."
    plain = Letter("S", "", "<p>x</p>", "x")
    draft = desk.store.mailouts.create(DEFAULT_TENANT, NewMailout("news", "file", plain, draft=True))
    assert "is a draft" in desk.examined(draft.id).told("mailout")
    started = Stage(desk.store).running()
    assert desk.examined(started)["mailout"].verdict is Verdict.WARNING
    desk.store.dispatches.cancel(started)
    while desk.store.dispatches.cancel_chunk(started, 100):
        pass
    over = desk.store.dispatches.complete(started)
    assert f"is {over}" in desk.examined(started).told("mailout")
    assert "mailout" in desk.examined(started).stops()


def test_a_letter_on_a_page_that_cannot_be_read_is_told(desk: Desk) -> None:
    """Without a token it is a stop; a Notion that does not answer is a warning, for it may answer later."""
    desk.people("ann@example.org")
    page = NewMailout("page", "notion", None, source_id="0123456789abcdef0123456789abcdef")
    mailout = desk.store.mailouts.create(DEFAULT_TENANT, page).id
    assert "set NOTION_TOKEN" in desk.examined(mailout).told("letter")
    assert desk.examined(mailout).stops() == {"letter"}
    door = StoreDoor(lambda: desk.store)
    sources = {"notion": _Silent()}
    probe = LetterProbe(
        door,
        lambda: SETTINGS,
        lambda _: sources,
        lambda it, name: it.mailouts.get(DEFAULT_TENANT, name),
        mailout,
        leaves=True,
    )
    found = ask(probe)
    assert not found.stops()
    assert "cannot be read from its page now: Notion is down" in found.told("letter")


class _Silent:
    def fetch(self, page_id: str) -> FetchedLetter:
        raise Unavailable(f"Notion is down, page {page_id}")


@pytest.mark.parametrize(
    ("name", "html", "verdict", "says"),
    [
        ("letter", "<p>{{ name | loop }}</p>", "stop", "is not a variable"),
        ("letter.size", f"<p>{'x' * 103_000}</p>", "stop", "Gmail hides what comes after 102 KB"),
        ("letter.size", f"<p>{'x' * 95_000}</p>", "warning", "96 KB"),
        ("letter.links", "<a href='javascript:alert(1)'>x</a>", "stop", "javascript:alert(1)"),
        ("letter.links", "<a href='page.html'>x</a>", "stop", "'page.html'"),
        ("letter.links", "<a href=''>x</a>", "stop", "no mail program can open: ''"),
        ("letter.links", "<a href='https:///x'>x</a>", "stop", "https:///x"),
        ("letter.links", "<img src='data:image/png;base64,AA'>", "stop", "data:image/png"),
        ("letter.links", "<a href='http://localhost:3000/x'>x</a>", "warning", "own machine"),
        ("letter.links", "<a href='https://bit.ly/abc'>x</a>", "warning", "shortener"),
        ("letter.variables", "<p>{{ city }}</p>", "stop", "{{ city }} has no value for 1 active"),
    ],
)
def test_what_is_wrong_with_a_letter_is_told(
    desk: Desk, name: str, html: str, verdict: str, says: str
) -> None:
    """The address or the variable is named."""
    desk.people("ann@example.org")
    found = desk.examined(desk.mailout(html))
    assert found.stops() == ({name} if verdict == "stop" else set())
    assert found[name].verdict == verdict
    assert says in found.told(name)


def test_a_letter_without_words_is_a_warning(desk: Desk) -> None:
    """The footer is not counted. An image is enough for the start of a mailout."""
    desk.people("ann@example.org")
    image = "<img src='https://example.com/x.png'>"
    assert desk.examined(desk.mailout(image, text=" "))["letter.text"].verdict is Verdict.WARNING


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("letter.text", Letter("Hi", "", "<p></p>", " ")),
        ("letter.subject", Letter("x" * 901, "", "<p>Hi</p>", "Hi")),
        ("letter.size", Letter("Hi", "", "x" * 101_500, "Hi")),
    ],
)
def test_the_doctor_stops_at_what_a_start_refuses(name: str, letter: Letter) -> None:
    """In the same words: one judgement for both."""
    (refused,) = [check for check in fault_checks(letter) if check.verdict is Verdict.STOP]
    assert refused.name == name
    with pytest.raises(BadInput) as caught:
        check_letter(letter, SETTINGS, "m")
    assert str(caught.value) == refused.what


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/x",
        "http://127.0.0.1:3000/",
        "https://10.0.0.7/x",
        "https://192.168.1.2",
        "https://[::1]/",
        "https://intranet/x",
        "https://nas.local/x",
    ],
)
def test_links_into_ones_own_network_are_a_stop_where_letters_leave(url: str) -> None:
    """They work for the author, and for nobody else. Our own address is judged elsewhere."""
    html = f'<a href="{url}">x</a>'
    assert links_check(html, BASE, leaves=True).verdict is Verdict.STOP
    assert links_check(html, BASE, leaves=False).verdict is Verdict.WARNING
    assert links_check('<img src="http://10.0.0.1/assets/x">', "http://10.0.0.1", leaves=True).verdict == "ok"


def message(changes: dict[str, str | None] | None = None) -> EmailMessage:
    letter = compile_letter(Letter("S", "", "<p>x</p>", "x"), SETTINGS, "mailout")
    built = message_from_bytes(
        letter.build(JOB, "ann@example.org", {}, datetime.now(UTC)), policy=policy.default
    )
    assert isinstance(built, EmailMessage)
    for header, value in (changes or {}).items():
        del built[header]
        if value is not None:
            built[header] = value
    return built


@pytest.mark.parametrize(
    "changes",
    [
        {"List-Unsubscribe": None},
        {"List-Unsubscribe-Post": None},
        {"List-Unsubscribe": f"<{BASE}/unsubscribe?token=forged>"},
        {"List-Unsubscribe": "<mailto:leave@example.com>"},
    ],
)
def test_a_letter_without_a_way_out_is_a_stop(changes: dict[str, str | None]) -> None:
    """Both headers, and a token that we signed."""
    assert unsubscribe_check(message(), SETTINGS, leaves=True).verdict is Verdict.OK
    assert unsubscribe_check(message(changes), SETTINGS, leaves=True).verdict is Verdict.STOP


def test_one_click_without_https_is_a_stop_where_letters_leave() -> None:
    """RFC 8058 wants https."""
    plain = MessageSettings(
        "news@example.com", None, None, "x", "http://mail.example.com", "example.com", b"secret"
    )
    letter = compile_letter(Letter("S", "", "<p>x</p>", "x"), plain, "mailout")
    built = message_from_bytes(
        letter.build(JOB, "a@example.org", {}, datetime.now(UTC)), policy=policy.default
    )
    assert isinstance(built, EmailMessage)
    assert unsubscribe_check(built, plain, leaves=True).verdict is Verdict.STOP
    assert unsubscribe_check(built, plain, leaves=False).verdict is Verdict.WARNING


# -- the list ------------------------------------------------------------------------------------


def test_nobody_to_write_to_is_a_stop_for_a_mailout(desk: Desk) -> None:
    """And a warning where none is named."""
    assert desk.examined(desk.mailout()).stops() == {"list.audience"}
    assert desk.examined()["list.audience"].verdict is Verdict.WARNING


def test_a_list_that_is_well_is_counted(desk: Desk) -> None:
    """One role address among many people is nothing to speak of."""
    desk.people("info@example.org", *(f"user{n}@example.org" for n in range(40)))
    found = desk.examined()
    assert "41 active subscribers are on the list" in found.told("list.audience")
    assert found.told("list.roles") == "ok: 1 role address of 41 active subscribers."
    for name in ("list.roles", "list.disposable", "list.duplicates", "list.suppressed", "list.bounced"):
        assert found[name].verdict is Verdict.OK


def test_a_list_that_is_not_well_is_told_with_examples(desk: Desk) -> None:
    """Offices, throw-away mailboxes, second spellings, people who had said no, and bounces."""
    desk.people("info@example.org", "Sales@example.org", "x@mailinator.com", "gone@example.org")
    desk.people("a.nn@gmail.com", "ann+news@googlemail.com")
    # A global list from elsewhere: the person is active here and will be skipped all the same.
    for email in ("info@example.org", "x@mailinator.com"):
        desk.store.suppressions.add(EVERYBODY, parse_address(email), SuppressionReason.MANUAL)
    with desk.store.database.writing() as tx:
        tx.exec_driver_sql("UPDATE subscribers SET status = 'bounced' WHERE email = 'gone@example.org'")
    found = desk.examined()
    assert not found.stops()
    for name in ("list.roles", "list.disposable", "list.duplicates", "list.suppressed", "list.bounced"):
        assert found[name].verdict is Verdict.WARNING, found[name]
    assert "2 role addresses of 5 active subscribers" in found.told("list.roles")
    assert "x@mailinator.com" in found.told("list.disposable")
    assert "a.nn@gmail.com = ann+news@googlemail.com" in found.told("list.duplicates")
    assert "2 suppressed addresses" in found.told("list.suppressed")
    assert "1 subscriber has bounced, of 6 in all" in found.told("list.bounced")


def test_a_long_list_is_read_in_part_and_said_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page, up to a number that keeps the doctor quick."""
    monkeypatch.setattr("sendonce.adapters.doctor.audience.MOST_PEOPLE", 2000)
    desk.people(*(f"user{n:05}@example.org" for n in range(2500)))
    found = desk.examined()
    assert "2 500 active subscribers are on the list" in found.told("list.audience")
    assert "of the first 2 000 active subscribers" in found.told("list.roles")
