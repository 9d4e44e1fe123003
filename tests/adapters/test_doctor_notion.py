"""The doctor looks at Notion: the token, both tables, the webhook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.notion.handshake import WebhookDiary
from sendonce.domain.engine.checks import Verdict
from sendonce.settings import load_settings
from sendonce.wiring.doctor import notion_probes
from tests.adapters.doctor_stage import WELL, Findings, adopt, ask, doctor
from tests.adapters.http_stage import serving
from tests.adapters.notion_stage import SEEDS, NotionStage

TOKEN = "secret_of_the_webhook"


@pytest.fixture(scope="module")
def notion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


class Surgery:
    def __init__(self, notion: NotionStage, folder: Path) -> None:
        self.notion = notion
        self.folder = folder
        self.environment = {**WELL, **notion.environment, "STATE_DIR": str(folder), "HOME": "/nowhere"}

    def look(self, **changes: str) -> Findings:
        (probe,) = notion_probes(load_settings({**self.environment, **changes}, dotenv=None))
        return ask(probe)

    def table(self, columns: dict[str, Any]) -> str:
        body = {
            "parent": {"page_id": SEEDS.parent},
            "title": [{"text": {"content": "Mine"}}],
            "initial_data_source": {"properties": {"Name": {"title": {}}, **columns}},
        }
        identity: str = self.notion.client.create("/v1/databases", body)["id"]
        return identity


@pytest.fixture
def surgery(notion: NotionStage, tmp_path: Path) -> Surgery:
    notion.fail()
    return Surgery(notion, tmp_path)


def test_a_workspace_that_is_well(surgery: Surgery) -> None:
    """The token, both tables: nothing to do. Without a webhook nothing is said of one."""
    found = surgery.look()
    assert {check.verdict for check in found.all} == {Verdict.OK}
    assert {check.name for check in found.all} == {"notion.token", "notion.letters", "notion.errors"}


def test_without_notion_nothing_is_asked() -> None:
    assert notion_probes(load_settings({"HOME": "/nowhere"}, dotenv=None)) == []


def test_the_doctor_looks_at_notion(surgery: Surgery) -> None:
    """With everything else that it looks at."""
    found = doctor(adopt(f"sqlite:///{surgery.folder}/s.db"), surgery.folder, surgery.environment)
    assert found["notion.token"].verdict is Verdict.OK


def test_a_token_that_notion_does_not_know(surgery: Surgery) -> None:
    """A stop, with where to get the right one."""
    check = surgery.look(NOTION_TOKEN="ntn_wrong")["notion.token"]
    assert check.verdict is Verdict.STOP
    assert "does not know NOTION_TOKEN" in check.what


def test_a_notion_that_does_not_answer_stops_nothing(surgery: Surgery) -> None:
    surgery.notion.fail(bad_gateway=1.0)
    check = surgery.look()["notion"]
    surgery.notion.fail()
    assert check.verdict is Verdict.WARNING


@pytest.mark.parametrize(("variable", "name"), [("LETTERS", "letters"), ("ERRORS", "errors")])
def test_a_table_that_is_not_there(surgery: Surgery, variable: str, name: str) -> None:
    """Unset it is a warning; an id that leads nowhere is a stop that says how to share it."""
    check = surgery.look(**{f"NOTION_{variable}_ID": ""})[f"notion.{name}"]
    assert (check.verdict, f"NOTION_{variable}_ID is not set" in check.what) == (Verdict.WARNING, True)
    check = surgery.look(**{f"NOTION_{variable}_ID": SEEDS.unshared})[f"notion.{name}"]
    assert (check.verdict, "Connections" in check.fix) == (Verdict.STOP, True)


def test_columns_and_options(surgery: Surgery) -> None:
    """A column that nothing works without is a stop; one that is only nice to have is a warning."""
    options = [{"name": name} for name in ("Draft", "Ready", "Sending", "Sent")]
    status, test = {"Status": {"status": {"options": options}}}, {"Test": {"checkbox": {}}}
    check = surgery.look(NOTION_LETTERS_ID=surgery.table(status))["notion.letters"]
    assert (check.verdict, "'Тест' (checkbox)" in check.what) == (Verdict.STOP, True)
    check = surgery.look(NOTION_LETTERS_ID=surgery.table(status | test))["notion.letters"]
    assert check.verdict is Verdict.WARNING
    assert "no option 'Ошибка'" in check.what
    assert "Отменено" not in check.what
    check = surgery.look(NOTION_ERRORS_ID=surgery.table({}))["notion.errors"]
    assert (check.verdict, "'Ключ'" in check.what) == (Verdict.STOP, True)


def test_names_of_ones_own(surgery: Surgery) -> None:
    """NOTION_NAMES holds for the doctor, too."""
    mine = surgery.table({"State": {"select": {}}, "Проба": {"checkbox": {}}})
    names = '{"status": "State", "is_test": "Проба"}'
    check = surgery.look(NOTION_LETTERS_ID=mine, NOTION_NAMES=names)["notion.letters"]
    assert check.verdict is Verdict.WARNING
    assert "State" in check.what


def test_a_webhook(surgery: Surgery) -> None:
    """A warning until something signed with the token has come to the service; then when that was."""
    told = {
        "NOTION_WEBHOOK_TOKEN": surgery.notion.sandbox.post("notion/webhook", {"url": "http://127.0.0.1:9"})[
            "verification_token"
        ]
    }
    check = surgery.look(**told)["notion.webhook"]
    assert (check.verdict, "has come yet" in check.what) == (Verdict.WARNING, True)
    database = f"sqlite:///{surgery.folder}/s.db"
    with serving(database, {**surgery.environment, **told}) as service:
        wish = {
            "url": f"http://127.0.0.1:{service.port}/webhooks/notion",
            "page": SEEDS.letter,
            "author": "bot",
        }
        assert surgery.notion.sandbox.post("notion/event", wish)["status"] == 200
    check = surgery.look(**told)["notion.webhook"]
    assert (check.verdict, "less than a minute ago" in check.what) == (Verdict.OK, True)
    assert surgery.look(NOTION_WEBHOOK_TOKEN=TOKEN)["notion.webhook"].verdict is Verdict.WARNING


def test_a_webhook_that_notion_cannot_reach(surgery: Surgery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notion itself cannot post to this machine's own address; the stand-in beside it can."""
    rehearsal = surgery.look(NOTION_WEBHOOK_TOKEN=TOKEN)["notion.webhook"]
    assert "cannot reach" not in rehearsal.what
    monkeypatch.setattr(
        "sendonce.wiring.doctor.notion_client", lambda _settings, _policy: surgery.notion.connect()
    )
    real = {"NOTION_WEBHOOK_TOKEN": TOKEN, "NOTION_API_URL": "https://api.notion.com"}
    check = surgery.look(**real)["notion.webhook"]
    assert (check.verdict, "cannot reach http://127.0.0.1:1/" in check.what) == (Verdict.WARNING, True)
    assert "APP_BASE_URL" in check.fix


def test_a_diary_that_cannot_be_written_or_read_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    diary = WebhookDiary(tmp_path / "file")
    diary.note(TOKEN)
    assert diary.last_heard(TOKEN) is None
    (tmp_path / "notion-webhook-heard").write_bytes(b"\xff\xfe nonsense")
    assert WebhookDiary(tmp_path).last_heard(TOKEN) is None
