"""Signing up over HTTP: from a form to a subscriber, and what a stranger can do with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.letters import Letter
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.domain.people.suppressions import SuppressionReason
from tests.adapters.http_stage import HttpStage, serving

ANNA = parse_address("anna@example.com")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
OPEN = {"SIGN_UP": "true", "LIST_NAME": "The Bakery", "SIGN_UP_WORDING": "Bread by mail, please."}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[HttpStage]:
    with serving(f"sqlite:///{tmp_path}/s.db", OPEN) as stage:
        yield stage


def letters(stage: HttpStage) -> list[Job]:
    return list(stage.store.jobs.list())


def letter(stage: HttpStage) -> Letter:
    dispatch = stage.store.dispatches.get(letters(stage)[0].dispatch_id)
    assert dispatch is not None
    assert dispatch.letter_id is not None
    found = stage.store.letters.get(dispatch.letter_id)
    assert found is not None
    return found


def confirm_path(job: Job) -> str:
    found = re.fullmatch(r"https?://[^/]+(/confirm\?token=[A-Za-z0-9_-]{44})", job.fields["confirm_url"])
    assert found is not None
    return found[1]


def status(stage: HttpStage) -> SubscriberStatus | None:
    found = stage.store.subscribers.find(DEFAULT_TENANT, ANNA)
    return found.status if found else None


def test_a_form_becomes_a_subscriber_by_the_link_of_a_letter(site: HttpStage) -> None:
    """GET, which scanners send, only asks; POST confirms, and confirms again without harm."""
    where = {"Origin": "https://bakery.example"}
    answer = site.ask("POST", "/subscribe", {"email": ANNA.text, "name": "Anna"}, where)
    assert (answer.status, answer.json) == (202, {"status": "accepted"})
    assert site.nudges == 1
    assert status(site) == SubscriberStatus.PENDING
    path = confirm_path(letters(site)[0])
    page = site.ask("GET", path)
    assert page.status == 200
    assert "The Bakery" in page.text
    assert status(site) == SubscriberStatus.PENDING
    for _ in range(2):
        assert "You are subscribed" in site.ask("POST", path).text
    person = site.store.subscribers.find(DEFAULT_TENANT, ANNA)
    assert person is not None
    assert person.status == SubscriberStatus.ACTIVE
    assert person.consent is not None
    assert "https://bakery.example" in person.consent
    assert "Bread by mail, please." in person.consent


def test_a_plain_form_gets_a_page_in_its_language(site: HttpStage) -> None:
    form = urlencode({"email": ANNA.text}).encode()
    answer = site.ask("POST", "/subscribe", form, {**FORM, "Accept-Language": "ru"})
    assert answer.status == 202
    assert "Загляните в почту" in answer.text
    assert "Подтвердите" in letter(site).subject
    assert "Bread by mail, please." in letter(site).text


def test_the_answer_tells_nobody_who_is_on_the_list(site: HttpStage) -> None:
    """Known, unknown, suppressed and asked twice: one answer, and a letter only where one is wanted."""
    spam = parse_address("spam@example.com")
    site.store.suppressions.add(DEFAULT_TENANT, spam, SuppressionReason.COMPLAINT)
    answers = [
        site.ask("POST", "/subscribe", {"email": email})
        for email in (ANNA.text, ANNA.text, spam.text, "new@example.com")
    ]
    assert {(answer.status, answer.text) for answer in answers} == {(202, '{"status": "accepted"}')}
    assert sorted(job.recipient for job in letters(site)) == [ANNA.text, "new@example.com"]


def test_nothing_is_open_unless_somebody_opens_it(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/s.db") as stage:
        assert stage.ask("POST", "/subscribe", {"email": ANNA.text}).status == 404
        assert stage.ask("GET", "/confirm?token=x").status == 404
        assert letters(stage) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"email": ""},
        {"email": "nobody"},
        {"email": 7},
        {"email": "a@b.example", "name": "x" * 201},
        b"[]",
        b"",
    ],
)
def test_what_is_no_sign_up_is_refused(site: HttpStage, body: object) -> None:
    assert site.ask("POST", "/subscribe", body).status == 400
    assert letters(site) == []


def test_a_long_body_and_a_forged_link_get_nowhere(site: HttpStage) -> None:
    assert site.ask("POST", "/subscribe", b"x" * 5000, FORM).status == 413
    assert site.ask("POST", "/confirm?token=" + "A" * 44).status == 404
    assert site.ask("POST", "/confirm").status == 404


def test_a_link_that_confirms_does_not_unsubscribe(site: HttpStage) -> None:
    """One secret signs links of several kinds, and each says what it is for."""
    site.ask("POST", "/subscribe", {"email": ANNA.text})
    token = confirm_path(letters(site)[0]).partition("token=")[2]
    assert site.ask("POST", f"/unsubscribe?token={token}").status == 404


def test_one_peer_signs_up_so_many_and_no_more(site: HttpStage) -> None:
    answers = [site.ask("POST", "/subscribe", {"email": f"p{n}@example.com"}).status for n in range(40)]
    assert answers[:20] == [202] * 20
    assert answers[-1] == 429


def test_json_is_told_by_its_look(site: HttpStage) -> None:
    """curl calls whatever it posts a form."""
    answer = site.ask("POST", "/subscribe", b'{"email": "anna@example.com"}', FORM)
    assert (answer.status, answer.json) == (202, {"status": "accepted"})


def test_without_words_of_its_own_the_form_has_the_usual_ones(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/s.db", {**OPEN, "SIGN_UP_WORDING": ""}) as stage:
        stage.ask("POST", "/subscribe", {"email": ANNA.text}, {"Accept-Language": "ru"})
        assert "Я хочу получать письма от The Bakery" in letter(stage).text
