"""The handshake of Notion's webhook: a token is taken from whoever is waited for, and from nobody else."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sendonce.adapters.notion.handshake import HandshakeWindow
from tests.adapters.http_stage import HttpStage, serving

TOKEN = "secret_" + "x" * 40
POST = {"verification_token": TOKEN}
PATH = "/webhooks/notion"


@pytest.fixture
def service(sqlite_url: str, tmp_path: Path) -> Iterator[HttpStage]:
    with serving(sqlite_url, {"STATE_DIR": str(tmp_path / "state")}) as http:
        yield http


def window_of(folder: Path) -> HandshakeWindow:
    return HandshakeWindow(folder / "state")


def test_nobodys_token_is_taken_without_a_window(service: HttpStage, tmp_path: Path) -> None:
    """Whatever is posted gets the same 401, before it is even read, and no file appears."""
    for body in (POST, b"{", b"\xff", {"id": "1"}):
        assert service.ask("POST", PATH, body).status == 401
    assert window_of(tmp_path).token() is None
    assert not (tmp_path / "state").exists()


def test_one_token_is_taken_in_a_window(service: HttpStage, tmp_path: Path) -> None:
    """The second is a stranger's, or Notion's repetition: either way it changes nothing."""
    window_of(tmp_path).open(60)
    assert service.ask("POST", PATH, {"something": "else"}).status == 401
    assert service.ask("POST", PATH, POST).status == 200
    assert service.ask("POST", PATH, {"verification_token": "secret_of_a_stranger"}).status == 401
    assert window_of(tmp_path).token() == TOKEN
    assert window_of(tmp_path).token_file.stat().st_mode & 0o777 == 0o600


def test_a_window_closes(service: HttpStage, tmp_path: Path) -> None:
    window_of(tmp_path).open(-1)
    assert service.ask("POST", PATH, POST).status == 401
    window_of(tmp_path).open(60)
    window_of(tmp_path).close()
    assert service.ask("POST", PATH, POST).status == 401
    assert window_of(tmp_path).token() is None


def test_with_a_token_in_the_settings_no_window_helps(sqlite_url: str, tmp_path: Path) -> None:
    """Who already has a webhook is not talked into another one."""
    window_of(tmp_path).open(60)
    given = {"STATE_DIR": str(tmp_path / "state"), "NOTION_WEBHOOK_TOKEN": TOKEN}
    with serving(sqlite_url, given) as http:
        assert http.ask("POST", PATH, {"verification_token": "secret_of_a_stranger"}).status == 401
        body = json.dumps({"id": "1", "type": "x", "entity": {"id": "0" * 32, "type": "block"}}).encode()
        signature = "sha256=" + hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
        assert http.ask("POST", PATH, body, {"X-Notion-Signature": signature}).status == 200


def test_the_command_waits_and_prints_the_token(service: HttpStage, tmp_path: Path) -> None:
    environment = {"STATE_DIR": str(tmp_path / "state"), "PYTHONUTF8": "1", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "sendonce", "notion", "await-webhook", "--json"]
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as waiting:
        deadline = time.monotonic() + 20
        while not window_of(tmp_path).is_open():
            assert waiting.poll() is None
            assert time.monotonic() < deadline
            os.sched_yield()
        assert service.ask("POST", PATH, POST).status == 200
        told, errors = waiting.communicate(timeout=20)
    assert json.loads(told) == {"NOTION_WEBHOOK_TOKEN": TOKEN}
    assert TOKEN.encode() not in errors
    impatient = subprocess.run(
        [*command, "--minutes=0.01"], env=environment, cwd=tmp_path, capture_output=True, check=False
    )
    assert (impatient.returncode, impatient.stdout) == (1, b"")
    assert not window_of(tmp_path).is_open()
