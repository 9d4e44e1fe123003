"""A machine that is out of descriptors for a while ends neither a worker nor the notes of the event route."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sendonce.adapters.stores.sql import open_store
from sendonce.flows.engine.listen import Listener
from sendonce.flows.engine.work import Worker
from sendonce.settings import load_settings
from sendonce.wiring.metrics import no_metrics
from sendonce.wiring.worker import make_worker
from tests.adapters.http_stage import serving


def short_of_descriptors() -> OSError:
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_worker_that_cannot_look_whether_it_is_done_looks_again(tmp_path: Path) -> None:
    environment = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/sendonce.db",
        "STATE_DIR": str(tmp_path / "state"),
        "MAILDIR_PATH": str(tmp_path / "maildir"),
        "HOME": str(tmp_path),
    }
    answers: list[OSError | bool] = [short_of_descriptors(), True]

    async def done(_: Worker) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    settings = load_settings(environment, dotenv=None)
    with closing(open_store(settings.database_url)) as store:
        asyncio.run(make_worker(settings, store, no_metrics()).run(done))
    assert answers == []


def test_a_service_that_cannot_note_that_it_listens_notes_it_later(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    troubles, noted = [short_of_descriptors()], threading.Event()

    def attend(_: Listener) -> None:
        if troubles:
            raise troubles.pop()
        noted.set()

    monkeypatch.setattr(Listener, "attend", attend)
    monkeypatch.setattr("sendonce.entrypoints.http.ses_events.ATTEND_EVERY", 0.01)
    with serving(sqlite_url):
        assert noted.wait(10)
    assert "the event route cannot be noted" in caplog.text
