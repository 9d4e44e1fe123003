"""The Notion stand-in behaves as Notion's documentation says, faults included."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.notion_stage import SEEDS, NotionStage, paragraph
from tests.adapters.sandbox_stage import Sandbox

SOURCE = f"data_sources/{SEEDS.letters_source}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


def ask(sandbox: Sandbox, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers and JSON of one request; what is not named in ``headers`` is as it should be."""
    usual = {"Authorization": "Bearer ntn_sandbox", "Notion-Version": "2026-03-11"}
    given = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{sandbox.endpoint}/v1/{path}", content, {k: v for k, v in given.items() if v}, method=method
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.headers, json.load(reply)
    except urllib.error.HTTPError as exc:
        with exc:
            text = exc.read()
            is_json = exc.headers["Content-Type"] == "application/json"
            return exc.code, exc.headers, json.loads(text) if is_json else text


def refused(stage: NotionStage, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    status, _, told = ask(stage.sandbox, method, path, body, **headers)
    assert told["object"] == "error"
    assert told["status"] == status
    return status, told["code"]


def test_the_door(stage: NotionStage) -> None:
    """Token, version, path and body are checked as Notion checks them."""
    assert refused(stage, "GET", "users/me", Authorization="Bearer x") == (401, "unauthorized")
    assert refused(stage, "GET", "users/me", Notion_Version="") == (400, "missing_version")
    assert refused(stage, "GET", "users/me", Notion_Version="2022-06-28") == (400, "validation_error")
    assert refused(stage, "GET", "teapots") == (400, "invalid_request_url")
    assert refused(stage, "POST", "pages", b"{") == (400, "invalid_json")
    assert refused(stage, "POST", "pages", b"[" * 100_000) == (400, "invalid_json")
    assert refused(stage, "POST", "pages", {"a": "x" * 600_000}) == (413, "validation_error")
    assert refused(stage, "GET", f"pages/{SEEDS.unshared}") == (404, "object_not_found")
    assert ask(stage.sandbox, "GET", "users/me", Notion_Version="2025-09-03")[0] == 200


def test_the_rate(tmp_path: Path) -> None:
    """A budget a window; beyond it 429 with the whole seconds to wait."""
    stage = NotionStage(tmp_path, notion_requests=2, notion_window=1.5)
    assert [ask(stage.sandbox, "GET", "users/me")[0] for _ in range(2)] == [200, 200]
    status, headers, told = ask(stage.sandbox, "GET", "users/me")
    assert status == 429
    assert headers["Retry-After"] in ("1", "2")
    assert told["additional_data"]["rate_limit_reason"]
    assert stage.client.get("/v1/users/me")["type"] == "bot"
    stage.close()


def test_values_are_checked(stage: NotionStage) -> None:
    """Unknown columns, wrong types, long texts, long lists, commas in options: each is a validation error."""
    page = f"pages/{SEEDS.letter}"
    long_text = [{"text": {"content": "я" * 2001}}]
    for properties in (
        {"Нет такой": {"number": 1}},
        {"Запланировано": {"rich_text": []}},
        {"Запланировано": {"number": "5"}},
        {"Тема": {"rich_text": long_text}},
        {"Тема": {"rich_text": [{"text": {"content": "я"}}] * 101}},
        {"Статус": {"select": {"name": "a,b"}}},
        {"Время отправки": {"date": {"start": "soon"}}},
        {"Тест": {"checkbox": 1}},
    ):
        assert refused(stage, "PATCH", page, {"properties": properties}) == (400, "validation_error")
    assert (
        ask(stage.sandbox, "PATCH", page, {"properties": {"Статус": {"select": {"name": "Новое"}}}})[0] == 200
    )
    options = ask(stage.sandbox, "GET", SOURCE)[2]["properties"]["Статус"]["select"]["options"]
    assert options[-1]["name"] == "Новое"


def test_pages_of_lists(stage: NotionStage) -> None:
    """A hundred at most, then a cursor; a cursor from nowhere is refused."""
    page = stage.write({"Название": "Список"}, [paragraph(str(number)) for number in range(130)])
    first = ask(stage.sandbox, "GET", f"blocks/{page}/children?page_size=100")[2]
    assert (len(first["results"]), first["has_more"]) == (100, True)
    rest = ask(stage.sandbox, "GET", f"blocks/{page}/children?start_cursor={first['next_cursor']}")[2]
    assert (len(rest["results"]), rest["has_more"], rest["next_cursor"]) == (30, False, None)
    assert refused(stage, "GET", f"blocks/{page}/children?page_size=101")[0] == 400
    assert refused(stage, "GET", f"blocks/{page}/children?start_cursor={SEEDS.parent}")[0] == 400


def test_queries(stage: NotionStage) -> None:
    """Filters by type, and/or, sorts; trash is not listed."""
    for number in range(3):
        stage.write({"Название": f"Q{number}", "Запланировано": number, "Тема": "поиск"})
    searched = {"property": "Тема", "rich_text": {"equals": "поиск"}}
    big = {"and": [searched, {"property": "Запланировано", "number": {"greater_than": 0}}]}
    sorts = [{"property": "Запланировано", "direction": "descending"}]
    found = ask(stage.sandbox, "POST", f"{SOURCE}/query", {"filter": big, "sorts": sorts})[2]["results"]
    assert [row["properties"]["Запланировано"]["number"] for row in found] == [2, 1]
    ask(stage.sandbox, "PATCH", f"pages/{found[0]['id']}", {"in_trash": True})
    left = ask(stage.sandbox, "POST", f"{SOURCE}/query", {"filter": big})[2]["results"]
    assert [row["id"] for row in left] == [found[1]["id"]]
    for wrong in ({"property": "Нет", "number": {}}, {"property": "Тема", "number": {"equals": 1}}, 5):
        assert refused(stage, "POST", f"{SOURCE}/query", {"filter": wrong})[0] == 400


def test_blocks_by_the_api(stage: NotionStage) -> None:
    """Blocks can be appended with their children, and thrown away; a bad one makes none of them."""
    page = stage.write({"Название": "Блоки"})
    nested = {**paragraph("а"), "paragraph": {**paragraph("а")["paragraph"], "children": [paragraph("б")]}}
    made = ask(stage.sandbox, "PATCH", f"blocks/{page}/children", {"children": [nested]})[2]["results"]
    assert made[0]["has_children"]
    bad = {"children": [paragraph("в"), {"child_page": {"title": "x"}}]}
    assert refused(stage, "PATCH", f"blocks/{page}/children", bad)[0] == 400
    assert len(ask(stage.sandbox, "GET", f"blocks/{page}/children")[2]["results"]) == 1
    ask(stage.sandbox, "DELETE", f"blocks/{made[0]['id']}")
    assert ask(stage.sandbox, "GET", f"blocks/{page}/children")[2]["results"] == []
    shown = ask(stage.sandbox, "GET", f"blocks/{SEEDS.parent}/children")[2]["results"]
    assert [block["child_database"]["title"] for block in shown[:2]] == ["Письма", "Ошибки"]


def test_search_shows_what_is_shared(stage: NotionStage) -> None:
    """By title, of pages and data sources, without what nobody shared."""
    found = ask(stage.sandbox, "POST", "search", {"query": "осенн"})[2]["results"]
    assert [it["id"] for it in found] == [SEEDS.letter]
    only = {"filter": {"property": "object", "value": "data_source"}}
    assert {it["object"] for it in ask(stage.sandbox, "POST", "search", only)[2]["results"]} == {
        "data_source"
    }
    assert ask(stage.sandbox, "POST", "search", {"query": "личное"})[2]["results"] == []


FAULTS = [
    ("conflict", 409),
    ("rate_limited", 429),
    ("error", 500),
    ("bad_gateway", 502),
    ("unavailable", 503),
    ("timeout", 504),
    ("overload", 529),
    ("error_after", 500),
    ("bad_gateway_after", 502),
]


@pytest.mark.parametrize(("mode", "status"), FAULTS)
def test_faults(stage: NotionStage, mode: str, status: int) -> None:
    """Each mode shows its status; those called after come when the work is done."""
    stage.fail(mode, on="PATCH ")
    page = stage.write({"Название": mode, "Запланировано": 0})
    assert ask(stage.sandbox, "GET", f"pages/{page}")[0] == 200
    change = {"properties": {"Запланировано": {"number": 1}}}
    seen, headers, told = ask(stage.sandbox, "PATCH", f"pages/{page}", change)
    assert seen == status
    assert ("Retry-After" in headers) is (status in (429, 529))
    assert isinstance(told, bytes) is (status == 502)
    assert stage.look(page)["Запланировано"] == int(mode.endswith("_after"))
    assert ask(stage.sandbox, "PATCH", f"pages/{page}", change)[0] == 200


def test_fault_plans_are_checked(stage: NotionStage) -> None:
    """A wrong word changes nothing; DELETE clears; shares are kept and counted."""
    stage.fail()
    for wrong in (
        {"explode": 1},
        {"next": ["explode"]},
        {"conflict": 2},
        {"conflict": 0.6, "error": 0.6},
        {"on": 5},
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            stage.sandbox.post("notion/faults", wrong)
        caught.value.close()
    assert stage.sandbox.get("notion/faults")["conflict"] == 0
    stage.sandbox.post("notion/faults", {"conflict": 1, "slow": [1, 2]})
    assert refused(stage, "GET", "users/me") == (409, "conflict_error")
    assert stage.sandbox.post("notion/faults", method="DELETE")["conflict"] == 0
    assert stage.sandbox.get("notion/stats")["faults"]["conflict"] >= 1


def test_a_web_page_cannot_steer_it(stage: NotionStage) -> None:
    """Requests with an Origin come from browsers and are refused."""
    request = urllib.request.Request(
        f"{stage.sandbox.endpoint}/sandbox/notion/resume", b"{}", {"Origin": "https://evil.example"}
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    caught.value.close()
    assert caught.value.code == 403


def test_it_remembers(tmp_path: Path) -> None:
    """Started again on the same directory it has the same pages."""
    stage = NotionStage(tmp_path)
    page = stage.write({"Название": "Навсегда"}, [paragraph("да")])
    stage.close()
    again = NotionStage(tmp_path)
    assert again.look(page)["Название"] == "Навсегда"
    assert len(ask(again.sandbox, "GET", f"blocks/{page}/children")[2]["results"]) == 1
    again.close()


def test_the_environment(stage: NotionStage) -> None:
    """The sandbox tells all four variables, and its control page tells the rest."""
    names = ("NOTION_API_URL", "NOTION_TOKEN", "NOTION_LETTERS_ID", "NOTION_ERRORS_ID")
    assert all(stage.environment[name] for name in names)
    with urllib.request.urlopen(f"{stage.sandbox.endpoint}/sandbox/notion") as page:
        assert SEEDS.letter in page.read().decode()
