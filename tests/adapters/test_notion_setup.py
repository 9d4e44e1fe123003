"""Setup makes what is missing, checks what is there, and changes nothing the second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sendonce.adapters.notion.names import ERRORS, LETTERS
from sendonce.adapters.notion.pages import read_letter
from sendonce.adapters.notion.reports import ErrorRow, LetterCounts, NotionReports
from sendonce.adapters.notion.setup import SetupReport, SetupWish, set_up
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.errors import BadInput, NotFound, RefusedByRule, Unavailable
from tests.adapters.notion_stage import SEEDS, NotionStage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"), notion_tables=False)
    yield stage
    stage.close()


@pytest.fixture
def parent(stage: NotionStage) -> str:
    """An empty page."""
    stage.fail()
    return stage.write({"title": "Рассылки"}, parent=SEEDS.parent)


def tables(stage: NotionStage, parent: str) -> list[str]:
    blocks = stage.client.pages(f"/v1/blocks/{parent}/children")
    return [block["child_database"]["title"] for block in blocks]


def ids(report: SetupReport) -> tuple[str, str]:
    return report.tables[0].id, report.tables[1].id


def table(stage: NotionStage, parent: str, title: str, columns: dict[str, Any]) -> str:
    body = {
        "parent": {"page_id": parent},
        "title": [{"text": {"content": title}}],
        "initial_data_source": {"properties": {"Name": {"title": {}}, **columns}},
    }
    identity: str = stage.client.create("/v1/databases", body)["id"]
    return identity


@pytest.mark.parametrize("language", ["ru", "en"])
def test_from_nothing(stage: NotionStage, parent: str, language: str) -> None:
    """Both tables are made, are good, work, and are found again by name and by id."""
    made = set_up(stage.client, SetupWish(parent=parent, language=language))
    assert made.is_fine
    assert [it.created for it in made.tables] == [True, True]
    again = set_up(stage.client, SetupWish(parent=parent, language=language))
    assert again.is_fine
    assert ids(again) == ids(made)
    assert not any(it.created or it.added for it in again.tables)
    assert len(tables(stage, parent)) == 2
    letters, errors = made.environment()["NOTION_LETTERS_ID"], made.environment()["NOTION_ERRORS_ID"]
    assert set_up(stage.client, SetupWish(letters_id=letters, errors_id=errors, change=False)).is_fine
    page = stage.write({LETTERS.columns["title"].wording.in_language(language): "Письмо"}, parent=letters)
    reports = NotionReports(stage.client, letters, errors)
    assert reports.set_status(page, MailoutStatus.SENDING, counts=LetterCounts(1)) == ()
    assert read_letter(stage.client, page).status is MailoutStatus.SENDING
    reports.put_error_row(ErrorRow("k", page, "a@example.org", "bounced", "no"))
    assert stage.rows(errors)[0][ERRORS.columns["letter"].wording.in_language(language)] == [page]


def test_a_check_changes_nothing(stage: NotionStage, parent: str) -> None:
    """With change=False what is missing is told, and the page stays empty."""
    report = set_up(stage.client, SetupWish(parent=parent, change=False))
    assert not report.is_fine
    assert "no table 'Письма'" in report.tables[0].problems[0]
    assert report.environment() == {}
    assert tables(stage, parent) == []


def test_what_is_missing_is_added(stage: NotionStage, parent: str) -> None:
    """Columns and options are added to a table that is there; what it had stays, its rows too."""
    options = [{"name": "Идея", "color": "pink"}, {"name": "готово к отправке"}]
    letters = table(
        stage, parent, "Письма", {"Статус": {"select": {"options": options}}, "Моё": {"number": {}}}
    )
    page = stage.write({"Name": "Старое", "Статус": "Идея", "Моё": 5}, parent=letters)
    report = set_up(stage.client, SetupWish(parent))
    assert report.is_fine
    assert not report.tables[0].created
    assert {"Статус", "Тема", "Под вопросом"} <= set(report.tables[0].added)
    assert stage.look(page)["Статус"] == "Идея"
    assert stage.look(page)["Моё"] == 5
    source = stage.client.get(f"/v1/data_sources/{report.tables[0].data_source_id}")
    named = [option["name"] for option in source["properties"]["Статус"]["select"]["options"]]
    assert named == [
        "Идея",
        "готово к отправке",
        "Черновик",
        "Отправляется",
        "Отправлено",
        "Ошибка",
        "Отменено",
    ]
    assert set_up(stage.client, SetupWish(parent)).tables[0].added == ()


def test_what_is_wrong_is_told(stage: NotionStage, parent: str) -> None:
    """A column of a wrong type and an option that only the app can add are told with their fixes."""
    status = {"status": {"options": [{"name": "Готово"}, {"name": "Отправляется"}, {"name": "Отправлено"}]}}
    table(
        stage,
        parent,
        "письма ",
        {"Статус": status, "Тест": {"rich_text": {}}, "Отправлено": {"rich_text": {}}},
    )
    report = set_up(stage.client, SetupWish(parent))
    told = "\n".join(report.tables[0].problems)
    assert "Column 'Тест' of 'письма ' is of type rich_text: make it checkbox in Notion" in told
    assert "Column 'Отправлено' of 'письма ' is of type rich_text: make it number" in told
    assert "has no option 'Ошибка': add it in Notion" in told
    assert len(report.tables[0].problems) == 4
    again = set_up(stage.client, SetupWish(parent))
    assert again.tables[0] == replace(report.tables[0], added=())


@pytest.mark.parametrize("mode", ["reset_after", "bad_gateway_after"])
def test_a_lost_reply_makes_no_second_table(stage: NotionStage, parent: str, mode: str) -> None:
    """The table was made and the reply was lost: it is found on the page."""
    stage.fail(mode, mode, on="POST /v1/databases")
    assert set_up(stage.client, SetupWish(parent)).is_fine
    assert tables(stage, parent) == ["Письма", "Ошибки"]


def test_a_table_that_was_not_made(stage: NotionStage, parent: str) -> None:
    """The creation failed: the next run makes it."""
    stage.fail("timeout", on="POST /v1/databases")
    with pytest.raises(Unavailable, match="setup again"):
        set_up(stage.client, SetupWish(parent))
    assert set_up(stage.client, SetupWish(parent)).is_fine
    assert tables(stage, parent) == ["Письма", "Ошибки"]


def test_where_nothing_can_be_made(stage: NotionStage, parent: str) -> None:
    """No page named, a page that is not shared, and an id that is no table."""
    with pytest.raises(BadInput, match="sendonce notion setup PAGE"):
        set_up(stage.client, SetupWish())
    with pytest.raises(NotFound, match="add the integration"):
        set_up(stage.client, SetupWish(parent=SEEDS.unshared))
    with pytest.raises(NotFound):
        set_up(stage.client, SetupWish(parent, letters_id=SEEDS.parent))


def test_several_data_sources(stage: NotionStage, parent: str) -> None:
    """A database of several data sources is refused with their ids, one of which may be given instead."""
    database = table(stage, parent, "Двойная", {})
    wish = SetupWish(letters_id=database, parent=parent)
    source = set_up(stage.client, wish).tables[0].data_source_id
    found = set_up(stage.client, SetupWish(letters_id=source, parent=parent))
    assert found.is_fine
    assert found.tables[0].id == source
    stage.client.create(
        "/v1/data_sources", {"parent": {"database_id": database}, "properties": {"N": {"title": {}}}}
    )
    with pytest.raises(RefusedByRule, match=rf"has 2 data sources.*{source}"):
        set_up(stage.client, wish)
