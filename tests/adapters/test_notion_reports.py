"""What becomes of a letter is told in Notion, once, whatever gets lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.notion.answers import ReplyLost
from sendonce.adapters.notion.names import CANCELLED
from sendonce.adapters.notion.reports import ErrorRow, LetterCounts, NotionReports, rest_row
from sendonce.adapters.notion.values import MOST_TEXT, clip
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.errors import NotFound, RefusedByRule, Unavailable
from tests.adapters.notion_stage import SEEDS, NotionStage

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
CREATE = "POST /v1/pages"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


@pytest.fixture
def reports(stage: NotionStage) -> NotionReports:
    stage.fail()
    return NotionReports(stage.client, SEEDS.letters, SEEDS.errors)


def row(key: str, **changes: str) -> ErrorRow:
    values = {"email": "anna@example.org", "kind": "bounced", "message": "550 No such user", "code": "5.1.1"}
    return ErrorRow(key=key, page=SEEDS.letter, time=NOON, **{**values, **changes})


def rows_with(stage: NotionStage, key: str) -> list[dict[str, object]]:
    return [it for it in stage.rows() if it["Ключ"] == key]


def test_status_and_counts(stage: NotionStage, reports: NotionReports) -> None:
    """Status, reason, counts, time and warnings appear in their columns."""
    page = stage.write({"Название": "Письмо", "Статус": "Готово к отправке"})
    counts = LetterCounts(10, 8, 7, 1, 1, 2, 1, 0)
    missing = reports.set_status(
        page, MailoutStatus.SENT, counts=counts, sent_at=NOON, warnings=["Кнопка пропущена", "И видео"]
    )
    assert missing == ()
    shown = stage.look(page)
    assert shown["Статус"] == "Отправлено"
    names = (
        "Запланировано",
        "Отправлено",
        "Доставлено",
        "Вернулось",
        "Жалобы",
        "Отписались",
        "Не отправлено",
    )
    assert [shown[name] for name in names] == [10, 8, 7, 1, 1, 2, 1]
    assert shown["Под вопросом"] == 0
    assert shown["Время отправки"] == "2026-11-15T12:00:00+00:00"
    assert shown["Предупреждения"] == "Кнопка пропущена\nИ видео"


def test_what_is_not_told_stays(stage: NotionStage, reports: NotionReports) -> None:
    """Counts and the time stay as they are where none are given; an old reason does not."""
    page = stage.write({"Название": "Письмо"})
    moscow = NOON.astimezone(timezone(timedelta(hours=3)))
    reports.set_status(
        page, MailoutStatus.SENDING, reason="x", counts=LetterCounts(planned=5), sent_at=moscow
    )
    reports.set_status(page, MailoutStatus.READY, reason="Нет адреса в подвале: задайте MAIL_FOOTER_ADDRESS")
    shown = stage.look(page)
    assert (shown["Запланировано"], shown["Время отправки"]) == (5, "2026-11-15T12:00:00+00:00")
    assert (shown["Статус"], shown["Причина"][:10]) == ("Готово к отправке", "Нет адреса")
    reports.set_status(page, MailoutStatus.SENDING)
    assert stage.look(page)["Причина"] == ""


def test_status_through_bad_weather(stage: NotionStage, reports: NotionReports) -> None:
    """A status is written in the end through lost replies, conflicts and overload."""
    page = stage.write({"Название": "Буря"})
    stage.fail(
        "reset_after", "conflict", "bad_gateway", "overload", on=f"PATCH /v1/pages/{page}", retry_after=0
    )
    reports.set_status(page, MailoutStatus.FAILED, reason="y" * 5000)
    shown = stage.look(page)
    assert shown["Статус"] == "Ошибка"
    assert len(shown["Причина"]) == MOST_TEXT


def test_missing_page_and_table(stage: NotionStage, reports: NotionReports) -> None:
    """A page or table that is not shared is NotFound, for the outbox to bury."""
    with pytest.raises(NotFound):
        reports.set_status(SEEDS.unshared, MailoutStatus.SENT)
    with pytest.raises(NotFound):
        NotionReports(stage.client, SEEDS.unshared, SEEDS.errors).set_status(SEEDS.letter, MailoutStatus.SENT)


def test_a_row_appears_once(stage: NotionStage, reports: NotionReports) -> None:
    """Telling the same error again changes its row and adds none."""
    first = reports.put_error_row(row("m1:anna", kind="bounced, hard"), may_exist=False)
    again = reports.put_error_row(row("m1:anna", message="552 Mailbox full"))
    assert first == again
    (shown,) = rows_with(stage, "m1:anna")
    assert shown["Ошибка"] == "bounced: anna@example.org"
    assert shown["Письмо"] == [SEEDS.letter]
    assert shown["E-mail"] == "anna@example.org"
    assert (shown["Вид"], shown["Код"], shown["Сообщение"]) == ("bounced", "5.1.1", "552 Mailbox full")
    assert shown["Время"] == "2026-11-15T12:00:00+00:00"


@pytest.mark.parametrize("mode", ["reset_after", "error_after", "bad_gateway_after", "garbage_after"])
def test_a_lost_reply_makes_no_second_row(stage: NotionStage, reports: NotionReports, mode: str) -> None:
    """The row was made and the reply was lost: it is found by its key."""
    stage.fail(mode, on=CREATE)
    made = reports.put_error_row(row(f"lost:{mode}"), may_exist=False)
    assert len(rows_with(stage, f"lost:{mode}")) == 1
    assert reports.put_error_row(row(f"lost:{mode}")) == made
    assert len(rows_with(stage, f"lost:{mode}")) == 1


def test_a_row_that_was_not_made_is_made_later(stage: NotionStage, reports: NotionReports) -> None:
    """The creation failed and the row is not there: the caller is told to come again, and then it is made."""
    stage.fail("bad_gateway", on=CREATE)
    with pytest.raises(ReplyLost) as caught:
        reports.put_error_row(row("later"), may_exist=False)
    assert isinstance(caught.value, Unavailable)
    assert rows_with(stage, "later") == []
    reports.put_error_row(row("later"))
    assert len(rows_with(stage, "later")) == 1


def test_a_row_that_turned_up_late_is_thrown_away(stage: NotionStage, reports: NotionReports) -> None:
    """Two rows under one key, made by a slow creation, become one again: the older stays."""
    older = reports.put_error_row(row("twin"), may_exist=False)
    newer = reports.put_error_row(row("twin"), may_exist=False)
    assert older != newer
    assert reports.put_error_row(row("twin")) == older
    assert len(rows_with(stage, "twin")) == 1


def test_the_rest_is_in_the_csv(stage: NotionStage, reports: NotionReports) -> None:
    """The row after the last tells how many more there are, and is kept up to date."""
    reports.put_error_row(rest_row("m9", SEEDS.letter, 7, "sendonce mailout report m9 --csv"))
    reports.put_error_row(rest_row("m9", SEEDS.letter, 12, "sendonce mailout report m9 --csv"))
    (shown,) = rows_with(stage, "m9:rest")
    assert shown["Ошибка"] == "Ещё 12"
    assert "sendonce mailout report m9 --csv" in str(shown["Сообщение"])
    assert shown["E-mail"] is None
    assert rest_row("m9", SEEDS.letter, 1, "x", "en").title == "1 more"


def test_hostile_words_fit(stage: NotionStage, reports: NotionReports) -> None:
    """Endless, astral and broken text is cut to what Notion takes."""
    nasty = ErrorRow("nasty", SEEDS.letter, "a" * 500, "k,k" * 100, "😀" * 3000 + "\ud800", "c" * 9999, NOON)
    reports.put_error_row(nasty)
    (shown,) = rows_with(stage, "nasty")
    assert str(shown["Сообщение"]).endswith("…")
    assert len(str(shown["E-mail"])) == 200


def test_renamed_columns_are_found(stage: NotionStage, reports: NotionReports) -> None:
    """A column that was renamed to another name we know is found; one that is gone is named and skipped."""
    source = f"/v1/data_sources/{SEEDS.letters_source}"
    page = stage.write({"Название": "Переименование"})
    reports.set_status(page, MailoutStatus.SENDING)
    stage.client.update(source, {"properties": {"Статус": {"name": "Status"}, "Причина": {"name": "Почему"}}})
    assert reports.set_status(page, MailoutStatus.SENT, reason="z") == ("reason",)
    assert stage.look(page)["Status"] == "Отправлено"
    stage.client.update(source, {"properties": {"Status": {"name": "Состояние"}}})
    with pytest.raises(RefusedByRule, match=r"no column 'Статус'.*sendonce notion setup"):
        reports.set_status(page, MailoutStatus.SENT)
    stage.client.update(
        source, {"properties": {"Состояние": {"name": "Статус"}, "Почему": {"name": "Причина"}}}
    )


def make_table(stage: NotionStage, title: str, columns: dict[str, object]) -> str:
    body = {
        "parent": {"page_id": SEEDS.parent},
        "title": [{"text": {"content": title}}],
        "initial_data_source": {"properties": columns},
    }
    identity: str = stage.client.create("/v1/databases", body)["id"]
    return identity


def test_english_tables_with_a_status_column(stage: NotionStage) -> None:
    """A table of type status and English names works; an option that it lacks is told with the fix."""
    options = [{"name": name} for name in ("Draft", "Ready", "sending")]
    table = make_table(stage, "Mail", {"Name": {"title": {}}, "Status": {"status": {"options": options}}})
    errors = make_table(
        stage,
        "Trouble",
        {
            "Name": {"title": {}},
            "Letter": {"rich_text": {}},
            "Kind": {"rich_text": {}},
            "Key": {"rich_text": {}},
        },
    )
    reports = NotionReports(stage.client, table, errors)
    page = stage.write({"Name": "News", "Status": "Ready"}, parent=table)
    assert "planned" in reports.set_status(page, MailoutStatus.SENDING, counts=LetterCounts(3))
    assert stage.look(page)["Status"] == "sending"
    with pytest.raises(RefusedByRule, match="has no option 'Отправлено'"):
        reports.set_status(page, MailoutStatus.SENT)
    reports.put_error_row(row("en"))
    (shown,) = stage.rows(errors)
    assert (shown["Letter"], shown["Kind"]) == (SEEDS.letter, "bounced")


def test_an_option_that_a_select_lacks_is_made_in_the_tables_language(stage: NotionStage) -> None:
    table = make_table(stage, "Mail", {"Name": {"title": {}}, "Status": {"select": {}}})
    page = stage.write({"Name": "News"}, parent=table)
    NotionReports(stage.client, table, SEEDS.errors).set_status(page, CANCELLED)
    assert stage.look(page)["Status"] == "Cancelled"


def test_a_table_without_keys_is_refused(stage: NotionStage) -> None:
    """Without the key's column a row could come twice, so none is written."""
    errors = make_table(stage, "Keyless", {"Name": {"title": {}}})
    with pytest.raises(RefusedByRule, match="no text column for the key"):
        NotionReports(stage.client, SEEDS.letters, errors).put_error_row(row("k"))


@settings(max_examples=60, deadline=None)
@given(st.text(), st.integers(2, 40))
def test_clip(text: str, most: int) -> None:
    """A clipped text never has more UTF-16 units than allowed, and a short one is as it was."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    clipped = clip(text, most)
    assert len(clipped.encode("utf-16-le", "surrogatepass")) // 2 <= most
    assert clipped == text or (units > most and clipped.endswith("…"))
