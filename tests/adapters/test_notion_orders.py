"""A page is sent to everybody when its author says so, whatever Notion's deliveries do: webhooks and presses
that come twice, late or in another order, and a Notion that does not answer in between.

The service and the stand-in are real, over HTTP; the worker's chores are run by hand, so that every order can
be played.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.notion.letters import NotionLetters
from sendonce.adapters.notion.pace import Policy
from sendonce.adapters.notion.reporter import NotionReporter
from sendonce.adapters.notion.reports import NotionReports
from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.http import service
from sendonce.errors import Unavailable
from sendonce.flows.mailouts.prepare_mailouts import Preparer
from sendonce.flows.mailouts.preview_mailout import preview_mailout
from sendonce.flows.mailouts.start_mailout import page_mailout
from sendonce.settings import Settings, load_settings
from sendonce.wiring import notion_inbox
from sendonce.wiring.notion import letter_sources, make_notion_chores
from tests.adapters.http_stage import BEARER, SECRET, HttpStage, serving, token_of
from tests.adapters.notion_stage import SEEDS, NotionStage, paragraph
from tests.conformance.stage import ACCEPTED
from tests.crash.world import until

READY, DRAFT = "Готово к отправке", "Черновик"
TESTERS = ("tester@example.org",)
LETTERS = MessageSettings(
    "news@example.com", None, None, "Riga", "http://127.0.0.1", "example.com", b"secret"
)


class Desk:
    """A page in Notion, its author, and the worker that looks at it when it is told to."""

    def __init__(self, stage: NotionStage, http: HttpStage, settings: Settings) -> None:
        self.settings = settings
        self.notion = stage
        self.http = http
        self.store = http.store
        http.stage.subscribe(range(3))
        self.page = stage.write({"Название": "Новости", "Статус": DRAFT}, [paragraph("Здравствуйте!")])
        self.testers: tuple[str, ...] = TESTERS
        moscow = ZoneInfo("Europe/Moscow")
        source = NotionLetters(
            stage.client, self.store.assets, "http://127.0.0.1", SEEDS.letters, zone=moscow
        )
        self._source = source
        reports = NotionReports(stage.client, SEEDS.letters, SEEDS.errors)
        self._reporter = NotionReporter(self.store, reports, with_errors=True)
        stage.fail()

    def edit(self, **values: Any) -> None:
        """As a person does in the app; the event of it is another matter."""
        names = {
            "status": "Статус",
            "test": "Тест",
            "send_at": "Отправить в",
            "from_name": "От кого",
            "reply_to": "Ответить на",
            "language": "Язык",
        }
        said = {"properties": {names[name]: value for name, value in values.items()}}
        self.notion.sandbox.post(f"notion/pages/{self.page}", said, method="PATCH")

    def event(self, **more: Any) -> str:
        wish = {"url": f"http://127.0.0.1:{self.http.port}/webhooks/notion", "page": self.page, **more}
        told = self.notion.sandbox.post("notion/event", wish)
        assert told["status"] == 200
        return str(told["id"])

    def signed(self, body: dict[str, Any]) -> int:
        """An event of our own making."""
        content = json.dumps(body).encode()
        digest = hmac.new(self.settings.notion_webhook_token.encode(), content, hashlib.sha256).hexdigest()
        headers = {"X-Notion-Signature": f"sha256={digest}"}
        return self.http.ask("POST", "/webhooks/notion", content, headers).status

    def press(self, **more: Any) -> str:
        url = f"http://127.0.0.1:{self.http.port}/send-mailout"
        wish = {"url": url, "page": self.page, "headers": {"X-Mailout-Token": SECRET}, **more}
        told = self.notion.sandbox.post("notion/press", wish)
        assert (told["status"], told["paused"]) == (200, False)
        return str(told["event_id"])

    def work(self) -> None:
        """What a worker does about Notion every second or so."""
        Preparer(self.store, {"notion": self._source}, lambda: LETTERS, self.testers).run()
        self._reporter.run()

    @property
    def shown(self) -> dict[str, Any]:
        return self.notion.look(self.page)

    @property
    def own(self) -> Mailout | None:
        return self.store.mailouts.of_page(DEFAULT_TENANT, "notion", self.page)

    @property
    def tests(self) -> list[Mailout]:
        every = self.store.mailouts.of_all_tenants()
        return [m for m in every if m.is_test and m.source_id == self.page and m.letter_id]

    def goes_to_everybody(self) -> bool:
        """Whether the letter is on its way to the list: from here on only the engine has a say."""
        self.work()
        self.work()
        return self.own is not None and self.own.letter_id is not None


def changed(page: str) -> dict[str, Any]:
    """An event that does not say which properties changed."""
    return {
        "id": str(uuid.uuid4()),
        "type": "page.properties_updated",
        "entity": {"id": page, "type": "page"},
        "authors": [{"id": "x", "type": "person"}],
    }


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


@pytest.fixture
def desk(stage: NotionStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(notion_inbox, "QUICK", Policy(rate=1000, burst=1000, tries=1, patience=0.5))
    monkeypatch.setattr("sendonce.wiring.notion.notion_client", lambda _settings: stage.client)
    token = stage.sandbox.post("notion/webhook", {"url": "http://127.0.0.1:9/"})["verification_token"]
    environment = {
        **stage.environment,
        "NOTION_WEBHOOK_TOKEN": token,
        "TEST_EMAILS": ",".join(TESTERS),
        "STATE_DIR": str(tmp_path / "state"),
        "TRANSPORT": "maildir",
        "APP_TIMEZONE": "Europe/Riga",
        "HOME": "/nowhere",
    }
    with serving(f"sqlite:///{tmp_path}/s.db", environment) as http:
        yield Desk(stage, http, load_settings(environment, dotenv=None))


def test_a_page_is_sent_when_its_status_becomes_ready(desk: Desk) -> None:
    """With the integration's webhook no button is needed."""
    desk.edit(status=READY)
    desk.event()
    assert desk.goes_to_everybody()


def test_an_event_that_does_not_say_what_changed(desk: Desk) -> None:
    """An empty list is no news of its own: the page is looked at, and it is ready."""
    desk.edit(status=READY)
    desk.event(changed=[])
    assert desk.goes_to_everybody()


def test_after_a_test_the_page_is_a_draft(desk: Desk) -> None:
    """The testers get the letter, the page goes back to draft, and taking the test mark off mails nobody."""
    desk.edit(status=READY, test=True)
    desk.event()
    desk.work()
    assert len(desk.tests) == 1
    assert desk.shown["Статус"] == DRAFT
    desk.edit(test=False)
    desk.event()
    assert not desk.goes_to_everybody()
    desk.edit(status=READY)
    desk.event()
    assert desk.goes_to_everybody()
    assert len(desk.tests) == 1


def test_the_draft_is_written_before_the_test_leaves(desk: Desk) -> None:
    """While Notion does not take the new status, no tester gets the letter, and nobody else does."""
    desk.edit(status=READY, test=True)
    desk.event()
    desk.notion.fail(on="PATCH /v1/pages", bad_gateway=1.0)
    with pytest.raises(Unavailable):
        desk.work()
    assert (desk.tests, desk.shown["Статус"]) == ([], READY)
    desk.edit(test=False)
    assert desk.signed(changed(desk.page)) == 200
    desk.work()
    assert desk.tests == []
    desk.notion.fail()
    assert not desk.goes_to_everybody()
    assert desk.shown["Статус"] == DRAFT
    assert len(desk.tests) == 1


@pytest.mark.parametrize("known", [True, False], ids=["says what changed", "does not say"])
def test_the_mark_taken_off_before_the_page_was_looked_at_again(desk: Desk, known: bool) -> None:
    """Between the event of a test and the work on it the author takes the mark off: nobody is mailed."""
    desk.edit(status=READY, test=True)
    desk.event()
    desk.edit(test=False)
    if known:
        desk.event()
    else:
        assert desk.signed(changed(desk.page)) == 200
    assert not desk.goes_to_everybody()
    assert desk.shown["Статус"] == DRAFT


def test_an_event_starts_once_and_not_later(desk: Desk) -> None:
    """Its second copy, hours later, finds the page ready again for another reason, and starts nothing."""
    desk.testers = ()
    desk.edit(status=READY)
    first = desk.event()
    desk.edit(test=True)
    desk.work()
    assert "TEST_EMAILS" in str(desk.own.reason if desk.own else "")
    assert desk.shown["Статус"] == DRAFT
    desk.edit(status=READY, test=False)
    desk.event(id=first, changed=["Статус"])
    assert not desk.goes_to_everybody()


def test_events_in_the_wrong_order(desk: Desk) -> None:
    """The mark was taken off last. The event of the earlier change of status comes after that of the mark."""
    desk.edit(status=READY, test=True)
    early = desk.notion.sandbox.get(f"notion/pages/{desk.page}")["last_edited_time"]
    desk.edit(test=False)
    desk.event(changed=["Тест"])
    desk.event(changed=["Статус"], timestamp=early)
    assert not desk.goes_to_everybody()
    assert "«" not in str(desk.own.reason if desk.own else "")
    desk.edit(status=DRAFT)
    desk.edit(status=READY)
    desk.event(changed=["Статус"])
    assert desk.goes_to_everybody()


def test_other_changes_start_nothing(desk: Desk) -> None:
    """Neither another property of a ready page, nor its text, nor what we wrote ourselves."""
    desk.edit(status=READY)
    desk.event(changed=["Тема"])
    desk.event(changed=["Тест"])
    desk.event(type="page.content_updated")
    desk.event(author="bot")
    assert not desk.goes_to_everybody()
    desk.event(changed=["Статус", "Тема"])
    assert desk.goes_to_everybody()


def test_a_test_mark_changed_on_a_ready_page_is_answered_on_the_page(desk: Desk) -> None:
    """Nothing is sent, and its author learns why."""
    desk.edit(status=READY)
    desk.edit(test=True)
    desk.event(changed=["Тест"])
    assert not desk.goes_to_everybody()
    assert desk.shown["Причина"].startswith("«Тест» изменили, когда страница уже была готова")
    assert desk.tests == []


def test_a_late_copy_of_a_press_for_a_test_is_not_for_everybody(desk: Desk) -> None:
    """The button was pressed for a test. When its call comes again, the page is ready and unmarked: the press
    was for a test, and the same press is not obeyed twice."""
    desk.edit(status=READY, test=True)
    pressed = desk.press()
    desk.work()
    assert (len(desk.tests), desk.shown["Статус"]) == (1, DRAFT)
    desk.edit(status=READY, test=False)
    desk.press(event_id=pressed)
    assert not desk.goes_to_everybody()
    assert len(desk.tests) == 1
    desk.press()
    assert desk.goes_to_everybody()


def test_both_webhooks_and_the_button_at_once(desk: Desk) -> None:
    """An automation, the integration's webhook and a person all tell of one change: one mailout starts."""
    desk.edit(status=READY)
    desk.event()
    desk.press()
    desk.event()
    desk.press()
    assert desk.goes_to_everybody()
    assert len([m for m in desk.store.mailouts.of_all_tenants() if m.source_id == desk.page]) == 1


def test_a_test_asked_for_elsewhere_takes_a_marked_page_back(desk: Desk) -> None:
    """A test by the command line or over HTTP, too; a page without the mark keeps its status."""
    desk.edit(status=READY)
    assert desk.http.start(desk.page, is_test=True).status == 200
    desk.work()
    assert (len(desk.tests), desk.shown["Статус"]) == (1, READY)
    desk.edit(test=True)
    assert desk.http.start(desk.page, is_test=True).status == 200
    desk.work()
    assert (len(desk.tests), desk.shown["Статус"]) == (2, DRAFT)


def test_a_page_that_cannot_be_a_draft_is_not_tested(desk: Desk) -> None:
    """Without the option "draft" in a column of type status the test is refused, with what to do."""
    options = [{"name": name} for name in (READY, "Отправляется", "Отправлено", "Ошибка")]
    body = {
        "parent": {"page_id": SEEDS.parent},
        "title": [{"text": {"content": "Без черновика"}}],
        "initial_data_source": {
            "properties": {
                "Название": {"title": {}},
                "Статус": {"status": {"options": options}},
                "Тест": {"checkbox": {}},
                "Причина": {"rich_text": {}},
            }
        },
    }
    table = desk.notion.client.create("/v1/databases", body)["id"]
    desk.page = desk.notion.write({"Статус": READY, "Тест": True, "Название": "Х"}, [paragraph("а")], table)
    letters = NotionLetters(desk.notion.client, desk.store.assets, "http://127.0.0.1", table)
    desk.press()
    Preparer(desk.store, {"notion": letters}, lambda: LETTERS, TESTERS).run()
    assert desk.tests == []
    assert "no option 'Черновик'" in str(desk.own.reason if desk.own else "")


def test_who_writes_and_who_is_answered(desk: Desk) -> None:
    """The sender's name, the address for answers and the language are properties; left empty, the settings
    hold."""
    desk.edit(status=READY, from_name="Анна из пекарни", reply_to="anna@example.org", language="English")
    desk.press()
    assert desk.goes_to_everybody()
    assert desk.own is not None
    letter = desk.store.mailouts.letter(desk.own.id)
    assert (letter.from_name, letter.reply_to) == ("Анна из пекарни", "anna@example.org")
    assert letter.language == "en"


def test_a_page_with_a_time_waits_for_it(desk: Desk) -> None:
    """It is scheduled, the page says when, and an hour without an offset is one of APP_TIMEZONE."""
    at = (desk.store.ledger.now() + timedelta(days=3)).replace(hour=9, minute=0, second=0, microsecond=0)
    desk.edit(status=READY, send_at=f"{at:%Y-%m-%dT%H:%M:%S}")
    desk.event()
    assert not desk.goes_to_everybody()
    assert desk.own is not None
    assert (desk.own.scheduled, desk.own.send_at) == (True, at - timedelta(hours=3))
    assert desk.shown["Статус"] == READY


def test_a_worker_goes_by_the_clock_of_the_house(desk: Desk) -> None:
    """As it is put together from the settings: the page's time is one of APP_TIMEZONE, and is told as one."""
    desk.edit(status=READY, send_at="2999-12-01T09:00:00")
    desk.event()
    for _, chore in make_notion_chores(desk.settings, desk.store):
        chore()
    assert desk.own is not None
    assert (desk.own.scheduled, desk.own.send_at) == (True, datetime(2999, 12, 1, 7, tzinfo=UTC))
    assert "2999-12-01 09:00 (Europe/Riga)" in desk.shown["Причина"]


def test_a_page_is_previewed_as_it_stands(desk: Desk) -> None:
    """Its letter is read where it is written; nothing starts, and the page is not changed."""
    own = page_mailout(desk.store, DEFAULT_TENANT, "notion", desk.page)
    shown = preview_mailout(desk.store, LETTERS, letter_sources(desk.settings, desk.store), own)
    assert (shown.subject, "Здравствуйте!" in shown.text) == ("Новости", True)
    assert not desk.goes_to_everybody()
    assert desk.shown["Статус"] == DRAFT


@pytest.mark.parametrize(
    ("time", "told"), [("2026-12-01", "нет часа"), ("2020-01-01T09:00:00+00:00", "уже прошло")]
)
def test_a_time_that_nobody_can_mean(desk: Desk, time: str, told: str) -> None:
    """A day without an hour, or a time of long ago on a copied page: the page says so, nobody is mailed."""
    desk.edit(status=READY, send_at=time)
    desk.press()
    assert not desk.goes_to_everybody()
    assert told in desk.shown["Причина"]


def test_why_a_press_starts_nothing_is_on_the_page(desk: Desk) -> None:
    """The button gets 200, or Notion would pause it; the reason is where the author looks."""
    desk.edit(status=READY)
    pressed = desk.press()
    assert desk.goes_to_everybody()
    assert desk.own is not None
    desk.http.stage.plan(desk.own.id)
    for job in desk.http.stage.claim().claimed:
        desk.http.stage.settle(job, ACCEPTED)
    desk.store.dispatches.complete(desk.own.id)
    desk.work()
    assert (desk.shown["Статус"], desk.shown["Причина"]) == ("Отправлено", "")
    desk.press(event_id=pressed)
    desk.work()
    assert desk.shown["Причина"] == "", "a late copy of the first press is no second one"
    desk.edit(status=READY)
    desk.press()
    desk.work()
    assert desk.shown["Статус"] == "Отправлено"
    assert "один раз" in desk.shown["Причина"]


def test_a_press_of_a_cancelled_page_says_that_it_was_cancelled(desk: Desk) -> None:
    """On the page and in the answer; it was neither sent nor did it fail."""
    desk.edit(status=READY)
    desk.press()
    assert desk.goes_to_everybody()
    assert desk.own is not None
    desk.store.dispatches.cancel(desk.own.id)
    desk.http.stage.plan(desk.own.id)
    desk.store.dispatches.complete(desk.own.id)
    desk.work()
    desk.edit(status=READY)
    page = {"object": "page", "id": desk.page, "properties": {}}
    answer = desk.http.ask("POST", "/send-mailout", {"source": {"event_id": "again"}, "data": page}, BEARER)
    assert answer.json["reason"] == "It was cancelled. To send it, duplicate the page."
    desk.work()
    assert desk.shown["Статус"] == "Отменено"
    assert "отменена" in desk.shown["Причина"]


def test_a_refused_start_is_on_the_page(desk: Desk) -> None:
    """With nobody to write to the button is not paused, and the page says why nothing happens."""
    desk.http.execute("UPDATE subscribers SET status = 'unsubscribed'")
    desk.edit(status=READY)
    desk.press()
    desk.work()
    assert "Некому писать" in desk.shown["Причина"]
    assert desk.shown["Статус"] == READY


def test_a_notion_that_hangs_holds_nobody_else(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed events wait for Notion in threads of their own: readers and the proxy get answers meanwhile."""
    monkeypatch.setattr(notion_inbox, "QUICK", Policy(rate=1000, burst=1000, tries=1, patience=4.0))
    desk.edit(status=READY)
    job = desk.store.jobs.list(dispatch_id=desk.http.stage.running())[0]
    link = f"/unsubscribe?token={token_of(job)}"
    desk.notion.sandbox.post("notion/faults", {"slow": [20_000, 20_000]})
    answers: list[int] = []

    def tell() -> None:
        answers.append(desk.signed(changed(desk.page)))

    hung = [threading.Thread(target=tell) for _ in range(6)]
    for thread in hung:
        thread.start()
    for _ in range(2):
        assert desk.http.ask("GET", "/readyz").status == 200
        assert desk.http.ask("POST", link, b"List-Unsubscribe=One-Click").status == 200
    assert answers == []
    for thread in hung:
        thread.join(20)
    desk.notion.fail()
    assert answers == [503] * 6


def test_what_finds_too_many_waiting_for_notion_is_turned_away(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: Notion comes again, and nobody piles up."""
    monkeypatch.setattr(notion_inbox, "QUICK", Policy(rate=1000, burst=1000, tries=1, patience=8.0))
    monkeypatch.setattr(service, "_MOST_WAITING", 2)
    desk.edit(status=READY)
    desk.notion.sandbox.post("notion/faults", {"slow": [20_000, 20_000]})
    with ThreadPoolExecutor(6) as callers:
        asked = [callers.submit(desk.signed, changed(desk.page)) for _ in range(6)]
        until(lambda: sum(each.done() for each in asked) >= 4, 7, "those that find no room are answered")
        assert sum(each.done() for each in asked) == 4, "two wait for Notion"
    desk.notion.fail()
    assert [each.result() for each in asked] == [503] * 6
