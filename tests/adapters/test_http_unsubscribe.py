"""The unsubscribe link, as people, mail programs, scanners and strangers use it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html import unescape

import pytest

from sendonce.domain.engine.events import BounceType, EventKind
from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.sender_identities import NewSender
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.entrypoints.http.page_frame import choose_language
from sendonce.entrypoints.http.pages import shortened
from tests.adapters.http_stage import Answer, HttpStage, serving, token_of
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import LETTER, address

RUSSIAN = {"Accept-Language": "ru-RU,ru;q=0.9,en;q=0.8"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ONE_CLICK = b"List-Unsubscribe=One-Click"


@pytest.fixture
def service(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url) as stage:
        yield stage


@pytest.fixture
def cautious(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url, {"UNSUBSCRIBE_CONFIRM": "true"}) as stage:
        yield stage


def _link(job: Job) -> str:
    return f"/unsubscribe?token={token_of(job)}"


def _is_subscribed(service: HttpStage) -> bool:
    return service.stage.subscriber().status == SubscriberStatus.ACTIVE


def _press_the_button(service: HttpStage, page: Answer) -> Answer:
    """What a browser does with the form: its action is relative to /unsubscribe."""
    found = re.search(r'<form method="post" action="([^"]+)">.*?<button', page.text, re.DOTALL)
    assert found is not None
    return service.ask("POST", "/" + unescape(found[1]), ONE_CLICK, FORM)


def test_a_click_unsubscribes_and_can_be_undone(service: HttpStage) -> None:
    """GET does it at once; the page has a button that takes it back."""
    job = service.planned_job()
    page = service.ask("GET", _link(job))
    assert page.status == 200
    assert "You are unsubscribed" in page.text
    assert not _is_subscribed(service)
    undone = _press_the_button(service, page)
    assert undone.status == 200
    assert "You are subscribed again" in undone.text
    assert _is_subscribed(service)


def test_the_page_keeps_the_address_to_itself(service: HttpStage) -> None:
    """Enough to recognise it by: u•••@example.com."""
    job = service.planned_job()
    page = service.ask("GET", _link(job)).text
    assert "u•••@example.com" in page
    assert job.recipient not in page


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (ONE_CLICK, "application/x-www-form-urlencoded"),
        (
            b'--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
        ),
        (b"", "text/plain"),
    ],
)
def test_one_click(service: HttpStage, body: bytes, kind: str) -> None:
    """RFC 8058: a POST without cookies gets 200 and no redirect; a repeat changes nothing."""
    job = service.planned_job()
    for _ in range(2):
        answer = service.ask("POST", _link(job), body, {"Content-Type": kind})
        assert answer.status == 200
        assert answer.headers["location"] is None
        assert answer.headers["set-cookie"] is None
        assert not _is_subscribed(service)


def test_scanners_that_only_look_change_nothing(service: HttpStage) -> None:
    """HEAD is answered like a page, OPTIONS is not allowed; neither unsubscribes."""
    job = service.planned_job()
    head = service.ask("HEAD", _link(job))
    assert (head.status, head.body) == (200, b"")
    assert service.ask("OPTIONS", _link(job)).status == 405
    assert service.ask("GET", f"/unsubscribe/undo?token={token_of(job)}").status == 405
    assert _is_subscribed(service)


def test_the_page_may_ask_first(cautious: HttpStage) -> None:
    """With UNSUBSCRIBE_CONFIRM=true a GET changes nothing and the button does it."""
    job = cautious.planned_job()
    page = cautious.ask("GET", _link(job))
    assert page.status == 200
    assert "Unsubscribe?" in page.text
    assert _is_subscribed(cautious)
    done = _press_the_button(cautious, page)
    assert "You are unsubscribed" in done.text
    assert not _is_subscribed(cautious)
    assert "subscribed again" in _press_the_button(cautious, done).text
    assert _is_subscribed(cautious)


def test_mail_programs_need_no_confirmation(cautious: HttpStage) -> None:
    """The one click works at once also where people are asked."""
    job = cautious.planned_job()
    assert cautious.ask("POST", _link(job), ONE_CLICK, FORM).status == 200
    assert not _is_subscribed(cautious)


def test_an_undo_does_not_forget_a_complaint(service: HttpStage) -> None:
    """Whoever reported a letter as spam stays suppressed, and the page says that letters stay off."""
    service.stage.running()
    job = service.stage.claim_one()
    service.stage.event(job, EventKind.COMPLAINT)
    token = f"token={sign_token(job.id, b'signs the links of the tests')}"
    service.ask("GET", f"/unsubscribe?{token}")
    answer = service.ask("POST", f"/unsubscribe/undo?{token}")
    assert answer.status == 200
    assert "Letters stay switched off" in answer.text
    assert not _is_subscribed(service)


def test_an_undo_does_not_forget_a_bounce(service: HttpStage) -> None:
    """Nor is an address that does not exist written to again."""
    service.stage.running()
    job = service.stage.claim_one()
    service.stage.event(job, EventKind.BOUNCE, bounce_type=BounceType.PERMANENT)
    token = f"token={sign_token(job.id, b'signs the links of the tests')}"
    service.ask("POST", f"/unsubscribe?{token}")
    assert "stay switched off" in service.ask("POST", f"/unsubscribe/undo?{token}").text


def test_another_letter_cannot_undo(service: HttpStage) -> None:
    """Whoever holds an old letter gets the usual page, without a button, and undoes nothing."""
    old, new = service.planned_job(), service.planned_job()
    service.ask("GET", _link(new))
    page = service.ask("GET", _link(old))
    assert "You are unsubscribed" in page.text
    assert "<form" not in page.text
    answer = service.ask("POST", f"/unsubscribe/undo?token={token_of(old)}")
    assert (answer.status, "You are still unsubscribed" in answer.text) == (200, True)
    assert "write to the sender" in answer.text
    assert not _is_subscribed(service)


def test_after_an_hour_the_page_says_how_to_come_back(service: HttpStage) -> None:
    job = service.planned_job()
    page = service.ask("GET", _link(job))
    pass_time(service.store, 3700)
    assert "You are still unsubscribed" in _press_the_button(service, page).text
    assert not _is_subscribed(service)
    assert "<form" not in service.ask("GET", _link(job)).text


def test_a_test_letter_only_rehearses(cautious: HttpStage) -> None:
    """Every step answers as usual, says that it was a test, and changes nothing; in Russian too."""
    cautious.stage.subscribe([0])
    mailout = cautious.stage.new_mailout(is_test=True, audience=(address(0).text,)).id
    cautious.store.mailouts.start(mailout)
    cautious.stage.plan(mailout)
    (job,) = cautious.store.jobs.list(dispatch_id=mailout)
    for headers, test in (({}, "This was a test letter"), (RUSSIAN, "Это было тестовое письмо")):
        page = cautious.ask("GET", _link(job), headers=headers)
        done = _press_the_button(cautious, page)
        undone = _press_the_button(cautious, done)
        one_click = cautious.ask("POST", _link(job), ONE_CLICK, {**FORM, **headers})
        assert all(test in each.text for each in (page, done, undone, one_click))
    assert _is_subscribed(cautious)
    assert cautious.store.suppressions.all() == []
    cautious.store.suppressions.add(EVERYBODY, address(0), SuppressionReason.MANUAL)
    assert "Вы снова подписаны" in _press_the_button(cautious, done).text
    assert len(cautious.store.suppressions.all()) == 1


def test_the_page_names_the_sender(sqlite_url: str) -> None:
    """LIST_NAME, else the letter's From name, else the sender's, else its domain; as text, never markup."""
    sender = {"SMTP_HOST": "127.0.0.1", "SMTP_FROM_EMAIL": "news@bakery.example"}
    with serving(sqlite_url, sender) as service:
        plain = service.planned_job()
        assert "<strong>bakery.example</strong>" in service.ask("GET", _link(plain)).text
        named = service.stage.new_mailout(letter=replace(LETTER, from_name="Ann <b>Lee</b>")).id
        service.stage.subscribe([1])
        service.store.mailouts.start(named)
        service.stage.plan(named)
        (job,) = service.store.jobs.list(dispatch_id=named)
        assert "Ann &lt;b&gt;Lee&lt;/b&gt;" in service.ask("GET", _link(job)).text
    with serving(sqlite_url, {**sender, "SMTP_FROM_EMAIL": "Bread & Co <news@bakery.example>"}) as service:
        assert "<strong>Bread &amp; Co</strong>" in service.ask("GET", _link(plain)).text
    with serving(sqlite_url, {**sender, "LIST_NAME": "The Bakery"}) as service:
        page = service.ask("HEAD", _link(job))
        assert page.status == 200
        assert "<strong>The Bakery</strong>" in service.ask("GET", _link(job)).text


def test_the_page_names_an_added_sender(sqlite_url: str) -> None:
    """The reader knows the sender that wrote, not the one in the settings."""
    with serving(sqlite_url, {"SMTP_HOST": "127.0.0.1", "SMTP_FROM_EMAIL": "own@agency.example"}) as service:
        new = NewSender("news@bakery.example", "maildir", "/nowhere", name="The Bakery")
        added = service.store.senders.add(DEFAULT_TENANT, new, "ann")
        mailout = service.stage.new_mailout(sender_id=added.id).id
        service.stage.subscribe([1])
        service.store.mailouts.start(mailout)
        service.stage.plan(mailout)
        (job,) = service.store.jobs.list(dispatch_id=mailout)
        assert "<strong>The Bakery</strong>" in service.ask("GET", _link(job)).text


def test_the_page_keeps_its_language(cautious: HttpStage) -> None:
    """Also where the form is sent by a browser that names another language, or none; nonsense is ignored."""
    page = cautious.ask("GET", _link(cautious.planned_job()), headers=RUSSIAN)
    done = _press_the_button(cautious, page)
    assert "Вы отписаны" in done.text
    assert "Вы снова подписаны" in _press_the_button(cautious, done).text
    odd = cautious.ask("GET", f"{_link(cautious.planned_job())}&lang=<script>")
    assert (odd.headers["content-language"], "<script" in odd.text) == ("en", False)


def _bad_tokens(job: Job) -> Iterator[str]:
    token = token_of(job)
    yield from ("", "x", token[:-1], token + "A", "B" + token[1:], token.swapcase())
    yield token[:-1] + ("A" if token[-1] != "A" else "B")
    yield sign_token(job.id, b"another secret")
    yield sign_token("00000000-0000-7000-8000-000000000000", b"signs the links of the tests")
    yield "%00%ff"


def test_bad_tokens_all_get_the_same_page(service: HttpStage) -> None:
    """Forged, cut, signed by another or for a job that is gone: nobody learns which."""
    job = service.planned_job()
    answers = [service.ask("GET", f"/unsubscribe?token={token}") for token in _bad_tokens(job)]
    answers.append(service.ask("GET", "/unsubscribe"))
    answers.append(service.ask("POST", "/unsubscribe?token=x"))
    answers.append(service.ask("POST", "/unsubscribe/undo?token=x"))
    assert {(answer.status, answer.body) for answer in answers} == {(404, answers[0].body)}
    assert len({str(sorted((k, v) for k, v in a.headers.items() if k != "date")) for a in answers}) == 1
    assert _is_subscribed(service)


def test_guessing_is_slowed_down_and_good_links_are_not(service: HttpStage) -> None:
    """After many bad links a peer gets 429; a good one still works from the same address."""
    statuses = [service.ask("GET", "/unsubscribe?token=guess").status for _ in range(30)]
    assert statuses[0] == 404
    assert statuses[-1] == 429
    assert service.ask("GET", _link(service.planned_job())).status == 200


def test_next_is_ignored(service: HttpStage) -> None:
    """No parameter of the link sends anybody anywhere."""
    job = service.planned_job()
    for target in ("//evil.example", "/%5Cevil.example", "https:evil.example"):
        answer = service.ask("GET", f"{_link(job)}&next={target}")
        assert answer.status == 200
        assert answer.headers["location"] is None
        assert "evil" not in answer.text


def test_links_without_a_secret_are_all_bad(sqlite_url: str) -> None:
    """Where letters leave the machine and UNSUBSCRIBE_SECRET is not set, no token is taken for ours."""
    environment = {"UNSUBSCRIBE_SECRET": "", "SMTP_HOST": "127.0.0.1", "SMTP_FROM_EMAIL": "news@example.com"}
    with serving(sqlite_url, environment) as service:
        job = service.planned_job()
        for secret in (b"signs the links of the tests", b"letters in a maildir go nowhere"):
            assert service.ask("GET", f"/unsubscribe?token={sign_token(job.id, secret)}").status == 404


def test_a_failing_database_is_a_page_with_503(service: HttpStage) -> None:
    """The mail program may come again later, and a person is told so."""
    job = service.planned_job()
    service.execute("ALTER TABLE suppressions RENAME TO elsewhere")
    answer = service.ask("POST", _link(job), ONE_CLICK, FORM)
    assert answer.status == 503
    assert "try again" in answer.text
    assert "elsewhere" not in answer.text


def test_pages_in_russian(cautious: HttpStage) -> None:
    """By Accept-Language; the page says its language in its head and its headers."""
    job = cautious.planned_job()
    link = _link(job)
    pages = [
        (cautious.ask("GET", link, headers=RUSSIAN), "Отписаться?"),
        (cautious.ask("POST", link, headers=RUSSIAN), "Вы отписаны"),
        (cautious.ask("POST", link.replace("?", "/undo?"), headers=RUSSIAN), "Вы снова подписаны"),
        (cautious.ask("GET", "/unsubscribe", headers=RUSSIAN), "Ссылка не работает"),
    ]
    for page, title in pages:
        assert f"<h1>{title}</h1>" in page.text
        assert '<html lang="ru">' in page.text
        assert page.headers["content-language"] == "ru"


def test_the_owner_may_set_the_language(sqlite_url: str) -> None:
    """MAIL_LANGUAGE counts for more than what the browser likes."""
    with serving(sqlite_url, {"MAIL_LANGUAGE": "ru"}) as service:
        assert (
            '<html lang="ru">' in service.ask("GET", "/unsubscribe", headers={"Accept-Language": "en"}).text
        )


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ru", "ru"),
        ("de,ru;q=0.5", "ru"),
        ("en-GB,ru;q=0.9", "en"),
        ("en;q=0.3, RU-ru ; q=0.8", "ru"),
        ("ru;q=0", "en"),
        ("ru;q=x", "en"),
        ("ru;q=nan,en;q=0.1", "en"),
        ("*", "en"),
        (",;=" * 1000, "en"),
    ],
)
def test_the_liked_language_is_chosen(header: str, language: str) -> None:
    """The greater weight wins, then the first; English where neither is asked for."""
    assert choose_language(header) == language


def test_addresses_are_shortened() -> None:
    """One character and the domain; nothing of what is no address."""
    assert shortened("jane.doe@example.com") == "j•••@example.com"
    assert shortened('"a@b"@example.com') == '"•••@example.com'
    assert shortened("3f2a9c") == "•••"


def test_the_page_is_locked_down_and_readable(service: HttpStage) -> None:
    """No script, nothing from outside, its own style by hash; a language, a title and one heading."""
    page = service.ask("GET", _link(service.planned_job()))
    style = re.search("<style>(.*?)</style>", page.text, re.DOTALL)
    assert style is not None
    policy = page.headers["content-security-policy"]
    assert b64encode(sha256(style[1].encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'; ")
    assert "form-action 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-robots-tag"] == "noindex, nofollow"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["set-cookie"] is None
    assert not re.search(r"<script|<img|<link|https?:|url\(", page.text)
    assert page.text.count("<h1>") == 1
    assert '<html lang="en">' in page.text
    assert '<meta name="robots" content="noindex' in page.text
