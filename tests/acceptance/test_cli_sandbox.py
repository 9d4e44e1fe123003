"""`sendonce sandbox` as a user runs it: started, stopped, and refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.doctor.configuration import SettingsProbe
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.settings import load_settings
from sendonce.wiring.doctor import configuration_of
from sendonce.wiring.messages import message_settings
from tests.adapters.doctor_stage import ask

COMMAND = [sys.executable, "-m", "sendonce", "sandbox", "--json"]


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    with subprocess.Popen(
        [*COMMAND, "--dir", str(folder), "--port", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder.parent,
    ) as sandbox:
        assert sandbox.stdout is not None
        try:
            yield sandbox, json.loads(sandbox.stdout.readline())
        finally:
            sandbox.terminate()


def refused(folder: Path, *flags: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "--dir", str(folder), *flags], capture_output=True, text=True, timeout=30, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path / "world", "--seed", "7") as (sandbox, told):
        with urllib.request.urlopen(told["endpoint"] + "/sandbox/stats", timeout=10) as reply:
            assert json.load(reply)["seed"] == 7
        assert told["environment"]["NOTION_API_URL"] == told["endpoint"]
        sandbox.send_signal(number)
        _, errors = sandbox.communicate(timeout=20)
        assert (sandbox.returncode, errors) == (0, b"")


def test_what_it_prints_is_all_that_the_service_asks_for(tmp_path: Path) -> None:
    """The lines are a .env with which letters may leave."""
    command = [word for word in COMMAND if word != "--json"]
    flags = [
        "--dir",
        str(tmp_path / "a world"),
        "--port",
        "0",
        "--events-url",
        "http://127.0.0.1:3999/ses-events",
    ]
    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as sandbox:
        assert sandbox.stdout is not None
        lines = []
        for line in sandbox.stdout:
            lines.append(line)
            if line.startswith("EXECUTOR_SHARED_SECRET"):
                break
        sandbox.terminate()
    (tmp_path / ".env").write_text("".join(line for line in lines if line.partition("=")[0].isupper()))
    settings = load_settings({}, tmp_path / ".env")
    assert settings.require_transport() == "ses"
    assert settings.port == 3999
    assert settings.sns_signing_cert_file is not None
    assert settings.sns_signing_cert_file.exists()
    letters = message_settings(settings, MemoryStore())
    assert (letters.base_url, letters.footer_address) == (
        "http://127.0.0.1:3999",
        "Rehearsal, 1 Example Street",
    )


def test_its_secrets_are_random_and_kept_for_their_owner(tmp_path: Path) -> None:
    """Another directory has others, the same one the same. Only their owner can read them, and the doctor is
    content."""
    names = ("UNSUBSCRIBE_SECRET", "EXECUTOR_SHARED_SECRET")
    environments = []
    for folder in ("one", "one", "other"):
        with running(tmp_path / folder) as (_, told):
            environments.append(told["environment"])
    first, again, other = ([environment[name] for name in names] for environment in environments)
    assert first == again
    assert len({*first, *other}) == 4
    assert (tmp_path / "one" / "secrets.json").stat().st_mode & 0o777 == 0o600
    found = ask(SettingsProbe(configuration_of(load_settings({"HOME": "/nowhere", **environments[0]}, None))))
    assert not found.stops()


def test_what_cannot_be_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    """A folder in use is a refusal, a taken port a failure, an address elsewhere bad usage."""
    with running(tmp_path / "world") as (_, told):
        code, text = refused(tmp_path / "world", "--port", "0")
        assert (code, "world" in text) == (3, True)
        port = told["endpoint"].rpartition(":")[2]
        code, text = refused(tmp_path / "other", "--port", port)
        assert (code, "--port" in text) == (1, True)
    code, text = refused(tmp_path / "third", "--events-url", "http://192.0.2.1/")
    assert (code, "this machine only" in text) == (2, True)
    (tmp_path / "file").touch()
    code, text = refused(tmp_path / "file", "--port", "0")
    assert (code, "--dir" in text) == (1, True)
