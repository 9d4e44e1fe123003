"""What we say reaches a Russian table in Russian; what others say is quoted as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.doctor.ses import SesIdentityProbe, _production, _sending
from sendonce.adapters.doctor.ses_reader import Answer as Answered
from sendonce.adapters.images.copies import copy_image
from sendonce.adapters.notion.answers import refusal
from sendonce.adapters.notion.blocks import _SKIPPED, convert_blocks
from sendonce.adapters.notion.names import LETTERS
from sendonce.adapters.notion.tables import ColumnFound, Table, status_option
from sendonce.adapters.notion.values import PageTime
from sendonce.adapters.notion.wire import Answer
from sendonce.adapters.notion.words import (
    KINDS,
    SENTENCES,
    WARNINGS,
    standstill_words,
    translated,
    translated_warning,
)
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.checks import Check
from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.engine.letters import Letter, MessageSettings, language_of
from sendonce.domain.engine.senders import BY_HAND, NOT_SET_UP, OWN_SENDER, SenderHold
from sendonce.domain.mailouts.letter_faults import EMAIL_ADVICE, lacking_words
from sendonce.domain.mailouts.mailouts import FetchedLetter, MailoutStatus
from sendonce.domain.mailouts.progress import Cause, Standstill, of_hold
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import SendonceError
from sendonce.flows.engine.check_sender import refuse_if_refused
from sendonce.flows.mailouts import obey_page, prepare_mailouts
from sendonce.flows.mailouts.preflight import check_letter, count_audience

SETTINGS = MessageSettings("a@example.com", None, None, "Riga", "http://x.example", "example.com", b"s")
TABLE = Table("t", "d", "Письма", {"status": ColumnFound("Статус", "status")}, {}, {})
RIGA = ZoneInfo("Europe/Riga")


class _Checked:
    def __init__(self, check: Check) -> None:
        self._check = check

    def refusals(self, sender_id: str, recipients: object) -> Sequence[Check]:
        return [self._check]


def ses(**fields: Any) -> Answered:
    return Answered(200, fields, "", "", None)


def letter(subject: str = "Hi", html: str = "<p>a</p>", text: str = "a") -> Letter:
    return Letter(subject, "", html, text)


def said(call: Callable[[], object]) -> str:
    with pytest.raises(SendonceError) as caught:
        call()
    return str(caught.value)


def a_draft() -> None:
    page = FetchedLetter("n", letter(), (), False, MailoutStatus.DRAFT, "Черновик")
    prepare_mailouts._check_status(page)


CASES = {
    "nobody to write to": lambda: said(lambda: count_audience(MemoryStore(), DEFAULT_TENANT)),
    "an empty letter": lambda: said(lambda: check_letter(letter(html="", text=" "), SETTINGS, "m")),
    "a long subject": lambda: said(lambda: check_letter(letter(subject="x" * 901), SETTINGS, "m")),
    "a large letter": lambda: said(lambda: check_letter(letter(html="x" * 120_000), SETTINGS, "m")),
    "no variable": lambda: said(lambda: check_letter(letter(text="{{ 1 }}"), SETTINGS, "m")),
    "a variable without a value": lambda: lacking_words({"город": 12})[0],
    "the reader's address": lambda: EMAIL_ADVICE,
    "a draft": lambda: said(a_draft),
    "a page that is not shared": lambda: str(refusal(Answer(404, None, b"{}"), "GET /v1/pages/x")),
    "no option": lambda: said(lambda: status_option(TABLE, LETTERS, MailoutStatus.DRAFT)),
    "a day without an hour": lambda: said(lambda: PageTime("2026-12-01").moment(RIGA)),
    "a test": lambda: obey_page.tested(3),
    "no testers": lambda: obey_page.NO_TESTERS,
    "sent already": lambda: obey_page.ALREADY_SENT,
    "over": lambda: obey_page.ALREADY_OVER,
    "the test mark": lambda: obey_page.TEST_CHANGED,
    "a restored database": lambda: RESTORED,
}


@pytest.mark.parametrize("name", CASES)
def test_our_sentences_are_known(name: str) -> None:
    """Each sentence as the program makes it is said in Russian, its values kept."""
    english = CASES[name]()
    russian = translated(english, "ru")
    assert russian != english
    assert language_of(russian) == "ru"
    assert "$" not in russian
    assert translated(english, "en") == english


REFUSALS = {
    "sandbox": lambda: _production(ses(ProductionAccessEnabled=False)),
    "paused": lambda: _sending(ses(SendingEnabled=False)),
    "sender": lambda: SesIdentityProbe(cast(Any, None), "a@example.org")._unverified([]),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_why_the_provider_would_refuse_is_said_whole(name: str) -> None:
    """The doctor's own words inside the refusal, too."""
    check = REFUSALS[name]()
    english = said(lambda: refuse_if_refused(_Checked(check), OWN_SENDER, lambda: ()))
    russian = translated(english, "ru")
    assert check.what in english
    assert check.what not in russian
    assert russian.startswith("Почтовый сервис отклонил бы")


HELD = {
    "535": "Почтовый сервис отказывает отправителю",
    BY_HAND: "Отправитель остановлен вручную",
    NOT_SET_UP: "Отправить от имени этого отправителя нельзя",
}


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("code", HELD)
def test_who_holds_a_sender_is_said(code: str) -> None:
    """Not every hold is the provider's."""
    hold = SenderHold("smtp/host/a@example.org", code, "Wait.", NOON, NOON, 1)
    assert standstill_words(of_hold(hold), "ru", RIGA).startswith(f"{HELD[code]}: Wait.")
    assert ("The provider refuses" in standstill_words(of_hold(hold), "en", RIGA)) is (code == "535")


@pytest.mark.parametrize("kind", [*_SKIPPED, "something new"])
def test_warnings_about_blocks_are_said_whole(kind: str) -> None:
    """What is on the page and not in the letter, with its place; no English is left but the type's name."""
    (warning,) = convert_blocks([{"type": kind, kind: {"title": "Имя"}}]).warnings
    russian = translated_warning(warning, "ru")
    assert russian.startswith("Блок 1 (")
    assert "skipped" not in russian
    assert _SKIPPED.get(kind, "a letter cannot hold it") not in russian


@pytest.mark.parametrize(
    "url", ["http://a.example/p.png", "ftp://a.example/p.png", "https://a.example/p.png"]
)
def test_warnings_about_images_are_said_whole(url: str) -> None:
    (warning,) = copy_image(url, resolve=lambda _host, _port: ["10.0.0.1"]).warnings
    russian = translated_warning(warning, "ru")
    assert russian.startswith("Картинка 'a.example/…/p.png' пропущена: ")
    assert " is " not in russian
    assert " does " not in russian


def test_values_are_kept() -> None:
    (advice,) = lacking_words({"город": 12})
    assert "город" in translated(advice, "ru")
    assert "12" in translated(advice, "ru")
    assert translated(f"{EMAIL_ADVICE}\n{advice}", "ru").count("\n") == 1


def test_what_others_say_is_quoted() -> None:
    """A provider's words, and a sentence nobody has put into Russian yet, stay as they are."""
    theirs = ("550 5.1.1 no such user", "mx.example.org cannot be reached", "host answered 421")
    for words in (*theirs, "Something new.", ""):
        assert translated(words, "ru") == words


def test_a_hostile_text_is_matched_in_no_time() -> None:
    """Whatever a provider answers, looking for our own sentences in it costs milliseconds."""
    for piece in ("{{ ", ": ", "is not a variable. ", "letters wait for another try: "):
        translated(piece * 20_000, "ru")
        translated_warning(piece * 20_000, "ru")


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause not in ("fetching", "planning")])
def test_every_cause_has_words(cause: Cause) -> None:
    """In both languages, with the provider's words and the next try where there are any."""
    at = datetime(2026, 12, 1, 7, 0, tzinfo=UTC)
    still = Standstill(cause, "454 4.7.0 temporary", "", at)
    russian, english = standstill_words(still, "ru", RIGA), standstill_words(still, "en", RIGA)
    assert (language_of(russian), language_of(english)) == ("ru", "en")
    for told in (russian, english):
        assert "$" not in told
        assert "2026-12-01 09:00" in told


def test_both_languages_are_whole() -> None:
    assert all(set(words) == {"ru", "en"} for words in KINDS.values())
    assert all(language_of(russian) == "ru" for _, russian in (*SENTENCES, *WARNINGS))
