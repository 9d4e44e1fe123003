"""Reading a letter: its properties, and the tree of its blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import LETTERS, own_names
from sendonce.adapters.notion.pages import Limits, letter_of, read_blocks, read_letter
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.errors import BadInput, NotFound, Unavailable
from tests.adapters.http_server import ScriptedServer, answer
from tests.adapters.notion_stage import CORPUS, QUICK, SEEDS, NotionStage, listing, paragraph


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


def shape(blocks: list[dict[str, Any]]) -> list[Any]:
    """The types of blocks, with those of their children."""
    return [(it["type"], shape(it["children"])) if it["children"] else it["type"] for it in blocks]


def words(block: dict[str, Any]) -> str:
    return "".join(piece["plain_text"] for piece in block[block["type"]]["rich_text"])


def test_letter(stage: NotionStage) -> None:
    """Title, subject, preheader, status and the table come from the properties."""
    letter = read_letter(stage.client, SEEDS.letter)
    assert (letter.title, letter.subject) == ("Осенние новости", "Осенние новости: что мы построили")
    assert letter.preheader == "Три новости и одно приглашение"
    assert (letter.status, letter.status_name) == (MailoutStatus.READY, "Готово к отправке")
    assert not letter.is_test
    assert not letter.in_trash
    assert letter.belongs_to(SEEDS.letters)
    assert letter.belongs_to(SEEDS.letters_source.replace("-", ""))
    assert not letter.belongs_to(SEEDS.errors)
    assert letter.last_edited_at is not None


def test_letter_without_subject(stage: NotionStage) -> None:
    """The title is the subject where none is given; an unknown status is None, with its name kept."""
    page = stage.write({"Название": "Зима", "Статус": "Думаю", "Тест": True, "Время отправки": "2026-11-15"})
    letter = read_letter(stage.client, f"https://www.notion.so/x-{page.replace('-', '')}")
    assert (letter.subject, letter.status, letter.status_name) == ("Зима", None, "Думаю")
    assert letter.is_test
    assert letter.sent_at is not None
    assert letter.sent_at.isoformat() == "2026-11-15T00:00:00+00:00"


def test_title_in_pieces() -> None:
    """A title with a bold word comes in pieces: all are joined."""
    pieces = [{"plain_text": "Осень"}, {"plain_text": " и "}, {"plain_text": "зима"}, "?", {"plain_text": 5}]
    page = {"id": SEEDS.letter, "properties": {"Любое имя": {"type": "title", "title": pieces}}}
    assert letter_of(page).title == "Осень и зима"


def test_english_and_own_names() -> None:
    """English names are known, and a user's own names replace ours."""
    page = {
        "id": SEEDS.letter,
        "properties": {
            "status": {"type": "status", "status": {"name": "ready to send"}},
            "TEST": {"type": "checkbox", "checkbox": True},
            "Go": {"type": "select", "select": {"name": "В путь"}},
        },
    }
    assert letter_of(page).status is MailoutStatus.READY
    assert letter_of(page).is_test
    own = LETTERS.renamed({"status": "Go", "status.ready": "В путь"})
    assert letter_of(page, own).status is MailoutStatus.READY
    letters, errors = own_names({"status": "Go", "errors.kind": "Sort"})
    assert letters.columns["status"].wording.names == ("Go",)
    assert errors.columns["kind"].wording.names == ("Sort",)
    for wrong in ({"colour": "x"}, {"status.gone": "x"}, {"status": " "}):
        with pytest.raises(BadInput, match="There is no column"):
            LETTERS.renamed(wrong)


@pytest.mark.parametrize(
    "page",
    [
        {"id": SEEDS.letter},
        {"id": SEEDS.letter, "properties": [], "parent": "x"},
        {"id": SEEDS.letter, "properties": {"Тест": None, "Статус": {"type": ["select"]}, "Тема": 5}},
        {"id": SEEDS.letter, "properties": {"Статус": {"type": "select", "select": ["x"]}}},
        {"id": SEEDS.letter, "properties": {"Время отправки": {"type": "date", "date": {"start": "soon"}}}},
    ],
)
def test_odd_pages_are_empty_letters(page: dict[str, Any]) -> None:
    """A page object that is not what Notion sends is an empty letter, not a crash."""
    letter = letter_of(page)
    assert (letter.title, letter.status, letter.is_test, letter.sent_at) == ("", None, False, None)


def test_tree_of_the_sample(stage: NotionStage) -> None:
    """All blocks come in their order, with their children inside."""
    tree = read_blocks(stage.client, SEEDS.letter)
    assert tree.warnings == ()
    kinds = shape(tree.blocks)
    assert kinds[:2] == ["heading_1", "paragraph"]
    assert ("bulleted_list_item", ["bulleted_list_item"]) in kinds
    assert ("table", ["table_row", "table_row"]) in kinds
    assert ("column_list", [("column", ["paragraph"]), ("column", ["paragraph"])]) in kinds
    assert kinds[-1] == "unsupported"


def test_long_and_deep(stage: NotionStage) -> None:
    """More than a hundred children, and many levels."""
    deep: dict[str, Any] = paragraph("дно")
    for level in range(20):
        deep = paragraph(str(level), deep)
    page = stage.write({"Название": "Большое"}, [paragraph(str(number)) for number in range(250)] + [deep])
    tree = read_blocks(stage.client, page)
    assert [words(block) for block in tree.blocks[:250]] == [str(number) for number in range(250)]
    block = tree.blocks[250]
    for _ in range(20):
        (block,) = block["children"]
    assert words(block) == "дно"


def test_every_type_of_block(stage: NotionStage) -> None:
    """All types of the corpus are read; the insides of what no letter shows are not asked for."""
    if not CORPUS.exists():
        pytest.skip("the corpus of Notion blocks is not here")
    corpus = json.loads(CORPUS.read_text())
    for block in corpus:
        block["children"] = [paragraph("внутри")] if block["has_children"] else []
    page = stage.write({"Название": "Все виды"}, corpus)
    before = stage.asked("GET /v1/blocks/{id}/children")
    tree = read_blocks(stage.client, page)
    assert [block["type"] for block in tree.blocks] == [block["type"] for block in corpus]
    children = {block["type"]: block["children"] for block in tree.blocks}
    assert children["meeting_notes"] == children["transcription"] == children["child_page"] == []
    assert [words(block) for block in children["toggle"]] == ["внутри"]
    # A synced copy shows the original's children, which are read once for both.
    copies = [block for block in tree.blocks if block["type"] == "synced_block"]
    assert [[words(inner) for inner in copy["children"]] for copy in copies] == [["внутри"], ["внутри"]]
    open_ones = [
        it for it in corpus if it["has_children"] and it["type"] not in ("meeting_notes", "transcription")
    ]
    assert stage.asked("GET /v1/blocks/{id}/children") == before + len(open_ones)


def synced(block_id: str) -> dict[str, Any]:
    return {"synced_block": {"synced_from": {"type": "block_id", "block_id": block_id}}}


def test_synced_from_another_page(stage: NotionStage) -> None:
    """A copy brings the original's children from wherever it is, and a warning where that is not shared."""
    (original,) = read_blocks(
        stage.client,
        stage.write(
            {"Название": "Источник"},
            [{"synced_block": {"synced_from": None}, "children": [paragraph("общее")]}],
        ),
    ).blocks
    page = stage.write({"Название": "Копия"}, [synced(original["id"]), paragraph("своё")])
    tree = read_blocks(stage.client, page)
    assert [words(block) for block in tree.blocks[0]["children"]] == ["общее"]
    stage.sandbox.post("notion/share", {"id": original["id"], "shared": False})
    tree = read_blocks(stage.client, page)
    assert tree.blocks[0]["children"] == []
    assert words(tree.blocks[1]) == "своё"
    assert "share the page of its original" in tree.warnings[0]


def test_a_synced_block_in_itself(stage: NotionStage) -> None:
    """A copy inside its own original does not go on for ever."""
    page = stage.write({"Название": "Змея"})
    wish = {"id": "5e1f0000-0000-4000-8000-000000000001", "synced_block": {"synced_from": None}}
    inner = synced(wish["id"])
    page = stage.write({"Название": "Змея"}, [{**wish, "children": [paragraph("голова"), inner]}])
    tree = read_blocks(stage.client, page)
    assert shape(tree.blocks) == [("synced_block", ["paragraph", "synced_block"])]
    assert "contains itself" in tree.warnings[0]


def test_limits(stage: NotionStage) -> None:
    """A page that is too long, too deep or too branched for a letter says so."""
    page = stage.write({"Название": "Много"}, [paragraph("а", paragraph("б", paragraph("в")))] * 3)
    for limits, told in (
        (Limits(blocks=8), "blocks"),
        (Limits(depth=1), "levels"),
        (Limits(requests=3), "nested"),
    ):
        with pytest.raises(BadInput, match=told):
            read_blocks(stage.client, page, limits)
    assert len(read_blocks(stage.client, page, Limits(blocks=9, depth=2, requests=7)).blocks) == 3


def test_pages_that_are_not_there(stage: NotionStage) -> None:
    """A page that is not shared is NotFound with the fix; a block that vanishes meanwhile is Unavailable."""
    with pytest.raises(NotFound, match="add the integration"):
        read_blocks(stage.client, SEEDS.unshared)
    gone = {"id": SEEDS.letter, "type": "toggle", "toggle": {}, "has_children": True}
    script = [answer(200, listing(gone)), answer(404, {"message": "gone"})]
    with ScriptedServer(script) as server:
        client = NotionClient("ntn_x", server.url, policy=QUICK)
        with pytest.raises(Unavailable, match="changed while it was being read"):
            read_blocks(client, SEEDS.parent)
        client.close()


def test_trash_is_not_read(stage: NotionStage) -> None:
    """What Notion lists as thrown away is no part of the letter."""
    kept = {"id": SEEDS.letter, "type": "divider", "divider": {}}
    with ScriptedServer(
        [answer(200, listing({**kept, "in_trash": True}, kept, {**kept, "archived": True}))]
    ) as server:
        client = NotionClient("ntn_x", server.url, policy=QUICK)
        assert len(read_blocks(client, SEEDS.parent).blocks) == 1
        client.close()
