"""What the ledger says stands in Notion: status, reason, and the rows of errors. They change with as few
requests as there are changes, in the language of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.notion import reporter as reporter_module
from sendonce.adapters.notion.names import ERRORS
from sendonce.adapters.notion.reporter import NotionReporter
from sendonce.adapters.notion.reports import NotionReports
from sendonce.adapters.notion.setup import SetupWish, set_up
from sendonce.adapters.notion.tables import data_source_ids
from sendonce.adapters.notion.words import translated_warning
from sendonce.adapters.stores.sql import open_store
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.senders import SenderKeys
from sendonce.domain.engine.workers import Pulse, Rest
from sendonce.domain.mailouts.mailouts import PageEvent
from sendonce.errors import Unavailable
from sendonce.flows.mailouts.explain_progress import explain_progress
from tests.adapters.notion_stage import SEEDS, NotionStage
from tests.conformance.stage import ACCEPTED, DOUBTED, LETTER, REFUSED, Stage

WEBP = "The image 'a.webp' is WebP, which Outlook for Windows does not show: use PNG or JPEG."
CREATE, ROW = "POST /v1/pages", "PATCH /v1/pages/{id}"


class Newsroom:
    """A page of Notion whose mailout is under way."""

    def __init__(self, notion: NotionStage, stage: Stage, letters: str, errors: str) -> None:
        self.notion, self.stage, self.store, self.errors = notion, stage, stage.store, errors
        self.letters = letters
        reports = NotionReports(notion.client, letters, errors)
        self.reporter = NotionReporter(
            stage.store,
            reports,
            with_errors=True,
            explain=lambda mailout, books: explain_progress(
                stage.store, mailout, books, lambda _: SenderKeys("ses/x/y")
            ),
            zone=ZoneInfo("Europe/Riga"),
        )
        self.page = notion.write({}, parent=letters)
        self.id = stage.new_mailout(source="notion", source_id=self.page, letter=LETTER).id
        notion.fail()

    def send(self, recipients: int) -> list[ClaimedJob]:
        """Start it, and have all of its letters in hand."""
        self.stage.subscribe(range(recipients))
        assert self.store.mailouts.start(self.id)
        self.stage.plan(self.id)
        return list(self.stage.claim(limit=recipients).claimed)

    def tell(self) -> None:
        self.reporter.run()

    @property
    def shown(self) -> dict[str, Any]:
        return self.notion.look(self.page)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for row in self.notion.rows(self.errors) if self.id in str(row["Ключ"])]

    def asked(self) -> int:
        """How many requests the stand-in has had."""
        count: int = sum(self.notion.sandbox.get("notion/stats")["asked"].values())
        return count


@pytest.fixture(scope="module")
def notion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    yield Stage(store)
    store.close()


@pytest.fixture
def room(notion: NotionStage, stage: Stage) -> Newsroom:
    return Newsroom(notion, stage, SEEDS.letters, SEEDS.errors)


def test_a_doubt_that_is_settled_changes_or_loses_its_row(room: Newsroom) -> None:
    """One letter has one row: it turns from a doubt into a bounce; a doubt that turns out well is gone."""
    first, second, third = room.send(3)
    for job in (first, second):
        room.stage.settle(job, DOUBTED, death_proof="dead")
    room.stage.settle(third, REFUSED)
    room.tell()
    kinds = {row["E-mail"]: row["Вид"] for row in room.rows}
    doubt = "Под вопросом"
    assert kinds == {first.recipient: doubt, second.recipient: doubt, third.recipient: "Не отправлено"}
    room.stage.event(first)
    room.stage.event(first, EventKind.BOUNCE, reason="550 5.1.1 no such user", code="5.1.1")
    room.stage.event(second)
    room.tell()
    rows = {row["E-mail"]: row for row in room.rows}
    assert sorted(rows) == sorted([first.recipient, third.recipient])
    assert rows[first.recipient]["Вид"] == "Вернулось"
    assert rows[first.recipient]["Сообщение"] == "550 5.1.1 no such user"
    assert rows[first.recipient]["Ошибка"] == f"Вернулось: {first.recipient}"


def test_the_row_of_the_rest_tells_the_number_of_today(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows and shrinks with the errors, goes away with the last of them, and agrees with the CSV."""
    monkeypatch.setattr("sendonce.adapters.notion.error_rows.MOST_ERROR_ROWS", 3)
    jobs = room.send(8)
    for job in jobs[:5]:
        room.stage.settle(job, REFUSED)
    room.tell()
    (more,) = [row for row in room.rows if str(row["Ключ"]).endswith(":rest")]
    assert (more["Ошибка"], len(room.rows)) == ("Ещё 2", 4)
    for job in jobs[5:]:
        room.stage.settle(job, REFUSED)
    room.tell()
    (more,) = [row for row in room.rows if str(row["Ключ"]).endswith(":rest")]
    assert (more["Ошибка"], len(room.rows)) == ("Ещё 5", 4)
    assert len(room.store.jobs.outcomes(room.id, only_errors=True)) == 3 + 5
    room.store.ledger.retry([job.id for job in jobs[2:]], "tests")
    room.tell()
    assert {row["E-mail"] for row in room.rows} == {jobs[0].recipient, jobs[1].recipient}


def test_rows_that_are_shown_stay(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of an earlier recipient that comes later does not push a row out: nothing flickers."""
    monkeypatch.setattr("sendonce.adapters.notion.error_rows.MOST_ERROR_ROWS", 2)
    jobs = sorted(room.send(4), key=lambda job: job.id)
    for job in jobs[2:]:
        room.stage.settle(job, REFUSED)
    room.tell()
    for job in jobs[:2]:
        room.stage.settle(job, REFUSED)
    room.tell()
    shown = {row["E-mail"] for row in room.rows if row["E-mail"]}
    assert shown == {job.recipient for job in jobs[2:]}


def test_rejects_and_complaints_have_rows(room: Newsroom) -> None:
    """A letter that the provider took and then rejected is an error, as in the CSV."""
    first, second = room.send(2)
    for job in (first, second):
        room.stage.settle(job, ACCEPTED)
    room.stage.event(first, EventKind.REJECT, reason="Bad content")
    room.stage.event(second, EventKind.COMPLAINT)
    room.tell()
    rows = {row["E-mail"]: (row["Вид"], row["Сообщение"]) for row in room.rows}
    assert rows == {
        first.recipient: ("Отклонено", "Bad content"),
        second.recipient: ("Жалоба", "Почтовый сервис не назвал причины."),
    }


def test_a_round_without_news_asks_nothing(room: Newsroom) -> None:
    """Notion counts requests: one for each change, and none where nothing changed."""
    for job in room.send(5):
        room.stage.settle(job, REFUSED)
    room.tell()
    before = room.asked()
    room.tell()
    assert room.asked() == before + 1, "one look whether another worker made the same rows"
    before = room.asked()
    room.tell()
    room.tell()
    assert room.asked() == before
    room.stage.event(room.store.jobs.list(dispatch_id=room.id)[0], EventKind.SENT)
    room.tell()
    assert room.asked() - before <= 3


def test_a_round_is_bounded(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many errors at once are told in several rounds, each row once."""
    monkeypatch.setattr(reporter_module, "MOST_ROWS_A_ROUND", 4)
    for job in room.send(10):
        room.stage.settle(job, REFUSED)
    room.tell()
    assert len(room.rows) == 4
    for _ in range(3):
        room.tell()
    assert len(room.rows) == len({row["Ключ"] for row in room.rows}) == 10


@pytest.mark.parametrize("fault", ["reset_after", "bad_gateway_after", "bad_gateway"])
def test_a_lost_reply_makes_no_second_row(room: Newsroom, fault: str) -> None:
    """Nor does a crash after it: what is there is looked up before a row is made."""
    for job in room.send(3):
        room.stage.settle(job, REFUSED)
    room.notion.fail("ok", fault, on=CREATE)
    with suppress(Unavailable):
        room.tell()
    room.tell()
    assert len(room.rows) == 3
    room.store.mailouts.set_reported(room.id, "{}")
    room.tell()
    assert len(room.rows) == 3


def test_two_workers_end_with_one_row_per_letter(room: Newsroom) -> None:
    """Both saw the errors before either had written them down; the next round removes the second copies."""
    for job in room.send(3):
        room.stage.settle(job, REFUSED)
    stale = dict(room.store.mailouts.with_stale_report("notion", 10))
    room.tell()
    written = room.reporter._reports.rows_of(room.id)
    with pytest.MonkeyPatch.context() as other_worker:
        other_worker.setattr(room.reporter._reports, "rows_of", lambda _mailout_id: {})
        for mailout, told in stale.items():
            assert told is None
            room.reporter._bring_up_to_date(mailout, {})
    assert len(room.rows) == 6
    room.tell()
    assert room.reporter._reports.rows_of(room.id) == written
    room.tell()
    assert len(room.rows) == 3


def test_rows_that_were_told_in_an_older_form_are_replaced(room: Newsroom) -> None:
    """Their keys named the kind, too."""
    (job,) = room.send(1)
    room.stage.settle(job, REFUSED)
    room.tell()
    (row,) = room.notion.client.pages(
        f"/v1/data_sources/{SEEDS.errors_source}/query",
        {"filter": {"property": "Ключ", "rich_text": {"starts_with": room.id}}},
    )
    old = [{"text": {"content": f"{room.id}:{job.id}:failed"}}]
    room.notion.client.update(f"/v1/pages/{row['id']}", {"properties": {"Ключ": {"rich_text": old}}})
    room.store.mailouts.set_reported(room.id, f'{{"view": {{}}, "errors": ["{room.id}:{job.id}:failed"]}}')
    room.tell()
    (shown,) = room.rows
    assert shown["Ключ"] == f"{room.id}:{job.id}"


def test_a_cancelled_mailout_says_so(room: Newsroom) -> None:
    """It is neither sent nor failed; and a page that is made ready and pressed again is told once more."""
    jobs = room.send(2)
    room.stage.settle(jobs[0], ACCEPTED)
    room.store.dispatches.cancel(room.id)
    room.stage.settle(jobs[1], ACCEPTED)
    room.store.dispatches.complete(room.id)
    room.tell()
    assert room.shown["Статус"] == "Отменено"
    assert "отменена" in room.shown["Причина"]
    patch = {"properties": {"Статус": "Готово к отправке", "Причина": ""}}
    room.notion.sandbox.post(f"notion/pages/{room.page}", patch, method="PATCH")
    room.tell()
    assert room.shown["Статус"] == "Готово к отправке"
    room.store.mailouts.hear(room.id, PageEvent("pressed"))
    room.tell()
    assert room.shown["Статус"] == "Отменено"
    assert "отменена" in room.shown["Причина"]


def test_a_table_that_has_no_word_for_cancelled(notion: NotionStage, stage: Stage) -> None:
    """A column of Notion's own type "status", set up earlier, shows sent or failed; the reason is told."""
    names = ("Черновик", "Готово к отправке", "Отправляется", "Отправлено", "Ошибка")
    body = {
        "parent": {"page_id": SEEDS.parent},
        "title": [{"text": {"content": "Старая"}}],
        "initial_data_source": {
            "properties": {
                "Название": {"title": {}},
                "Статус": {"status": {"options": [{"name": name} for name in names]}},
                "Причина": {"rich_text": {}},
            }
        },
    }
    table = notion.client.create("/v1/databases", body)["id"]
    room = Newsroom(notion, stage, table, SEEDS.errors)
    room.store.dispatches.cancel(room.id)
    room.tell()
    assert room.shown["Статус"] == "Ошибка"
    assert "отменена" in room.shown["Причина"]


def test_a_pause_shows_and_so_does_its_end(room: Newsroom) -> None:
    """The status stays "sending"; the reason says that it is paused, and what to do."""
    room.send(2)
    room.store.dispatches.set_paused(room.id, True)
    room.tell()
    assert room.shown["Статус"] == "Отправляется"
    assert room.shown["Причина"].startswith("Приостановлено.")
    assert f"sendonce mailout resume {room.id}" in room.shown["Причина"]
    room.store.dispatches.set_paused(room.id, False)
    room.tell()
    assert "Приостановлено" not in room.shown["Причина"]


def test_why_the_workers_rest_shows_unless_it_passes_in_a_moment(room: Newsroom) -> None:
    """The cause and the next try by the clock of the house; what lasts seconds would only flicker."""
    worker, until = room.stage.worker(), datetime(2030, 1, 1, 7, tzinfo=UTC)
    room.stage.subscribe(range(2))
    assert room.store.mailouts.start(room.id)
    room.tell()
    assert (room.shown["Статус"], room.shown["Причина"]) == ("Отправляется", "")
    room.stage.plan(room.id)
    room.store.workers.see(worker, Pulse(0.0, Rest.THROTTLED, "Maximum sending rate exceeded", until))
    room.tell()
    assert room.shown["Причина"] == ""
    room.store.workers.see(worker, Pulse(0.0, Rest.QUOTA, "Daily message quota exceeded", until))
    room.tell()
    assert room.shown["Причина"] == (
        "Дневной лимит почтового сервиса исчерпан: Daily message quota exceeded. "
        "Следующая попытка: 2030-01-01 09:00 (Europe/Riga)."
    )


def test_how_fast_it_goes_shows_until_it_is_over(room: Newsroom) -> None:
    """The rate, the estimated end by the clock of the house, and the workers."""
    room.stage.subscribe(range(2))
    assert room.store.mailouts.start(room.id)
    room.stage.plan(room.id)
    worker = room.stage.worker()
    room.store.workers.see(worker, Pulse(0.25))
    room.tell()
    assert room.shown["Причина"].startswith("Писем в секунду: 0.25, закончится около 20")
    assert room.shown["Причина"].endswith("(Europe/Riga). Обработчиков за работой: 1.")
    room.store.workers.see(worker, Pulse(0.5))
    room.tell()
    assert room.shown["Причина"].startswith("Писем в секунду: 0.5,")
    for job in room.stage.claim(worker).claimed:
        room.stage.settle(job, ACCEPTED)
    room.store.dispatches.complete(room.id)
    room.tell()
    assert (room.shown["Статус"], room.shown["Причина"]) == ("Отправлено", "")


def test_a_time_to_send_at_shows(room: Newsroom) -> None:
    """By the clock of the house; the author's status stays."""
    at = room.store.ledger.now().replace(hour=10, minute=30) + timedelta(days=2)
    room.store.mailouts.schedule(room.id, at)
    room.tell()
    assert f"{at.astimezone(ZoneInfo('Europe/Riga')):%Y-%m-%d %H:%M}" in room.shown["Причина"]
    assert room.shown["Статус"] is None
    room.store.mailouts.unschedule(room.id)
    room.tell()
    assert room.shown["Причина"] == ""


def english_room(notion: NotionStage, stage: Stage) -> Newsroom:
    parent = notion.write({"title": "English"}, parent=SEEDS.parent)
    made = set_up(notion.client, SetupWish(parent, language="en")).environment()
    return Newsroom(notion, stage, made["NOTION_LETTERS_ID"], made["NOTION_ERRORS_ID"])


def test_an_english_table_is_told_in_english(notion: NotionStage, stage: Stage) -> None:
    """Kinds, reasons and a pause; what the provider said is quoted as it is in both."""
    room = english_room(notion, stage)
    jobs = room.send(2)
    room.store.dispatches.set_paused(room.id, True)
    room.tell()
    assert (room.shown["Status"], room.shown["Reason"][:7]) == ("Sending", "Paused.")
    room.stage.settle(jobs[0], REFUSED)
    room.stage.settle(jobs[1], DOUBTED, death_proof="dead")
    room.store.dispatches.cancel(room.id)
    room.store.dispatches.complete(room.id)
    room.tell()
    assert room.shown["Status"] == "Cancelled"
    assert "was cancelled" in room.shown["Reason"]
    rows = {row["Email"]: row for row in notion.rows(room.errors)}
    assert (rows[jobs[0].recipient]["Kind"], rows[jobs[0].recipient]["Message"]) == ("Failed", "no such user")
    assert rows[jobs[1].recipient]["Kind"] == "In doubt"
    doubt = "It is unknown whether the mail provider took the letter (the reply was lost)."
    assert rows[jobs[1].recipient]["Message"].startswith(doubt)


def test_a_row_without_a_reason_and_that_of_the_rest_are_in_english_too(
    notion: NotionStage, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sendonce.adapters.notion.error_rows.MOST_ERROR_ROWS", 1)
    room = english_room(notion, stage)
    for job in room.send(2):
        room.stage.settle(job, ACCEPTED)
        room.stage.event(job, EventKind.COMPLAINT)
    room.tell()
    one, rest = sorted(notion.rows(room.errors), key=lambda row: str(row["Key"]))
    assert (one["Kind"], one["Message"]) == ("Complaint", "The mail provider gave no reason.")
    assert (rest["Error"], rest["Message"][:13]) == ("1 more", "1 more errors")


def test_rows_follow_the_language_of_their_table(
    notion: NotionStage, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody renames the columns: with the next news the rows that are there already are told anew."""
    monkeypatch.setattr("sendonce.adapters.notion.error_rows.MOST_ERROR_ROWS", 1)
    monkeypatch.setattr("sendonce.adapters.notion.tables._FRESH_SECONDS", -1.0)
    room = english_room(notion, stage)
    jobs = room.send(3)
    for job in jobs[:2]:
        room.stage.settle(job, REFUSED)
    room.tell()
    assert sorted(str(row["Kind"]) for row in notion.rows(room.errors)) == ["Failed", "None"]
    russian = {it.wording.names[1]: {"name": it.wording.names[0]} for it in ERRORS.columns.values()}
    ((source, _),) = data_source_ids(notion.client, room.errors)[1]
    notion.client.update(f"/v1/data_sources/{source}", {"properties": russian})
    room.stage.settle(jobs[2], ACCEPTED)
    room.tell()
    told = sorted(room.rows, key=lambda row: str(row["Ключ"]))
    assert [row["Вид"] for row in told] == ["Не отправлено", None]
    assert told[1]["Сообщение"].startswith("Ещё ошибок: 1.")


def test_a_row_that_somebody_removed_is_made_again_when_it_changes(room: Newsroom) -> None:
    """Until then it stays removed."""
    (job,) = room.send(1)
    room.stage.settle(job, DOUBTED, death_proof="dead")
    room.tell()
    ((page,),) = room.reporter._reports.rows_of(room.id).values()
    room.reporter._reports.trash_row(page)
    room.stage.event(job)
    room.stage.event(job, EventKind.BOUNCE)
    for _ in range(3):
        room.tell()
    assert [row["Вид"] for row in room.rows] == ["Вернулось"]


def test_warnings_about_the_letter_are_in_the_tables_language(room: Newsroom) -> None:
    room.page = room.notion.write({}, parent=room.letters)
    room.id = room.stage.new_mailout(source="notion", source_id=room.page, warnings=(WEBP,)).id
    room.send(1)
    room.tell()
    assert room.shown["Предупреждения"] == translated_warning(WEBP, "ru") != WEBP


def test_a_page_that_is_gone_for_a_while_is_told_when_it_is_back(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is not taken for told, and is not repeated every two seconds."""
    room.send(1)
    share = {"id": room.page, "shared": False}
    room.notion.sandbox.post("notion/share", share)
    room.tell()
    before = room.asked()
    room.tell()
    assert room.asked() == before
    room.notion.sandbox.post("notion/share", {**share, "shared": True})
    monkeypatch.setattr(room.reporter, "_resting", {})
    room.tell()
    assert room.shown["Статус"] == "Отправляется"
