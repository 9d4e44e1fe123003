"""Whoever asks how a mailout gets on, or waits for it, is told why nothing moves and when it may."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.workers import Pulse, Rest
from sendonce.entrypoints.cli.mailouts import progress
from sendonce.entrypoints.worker import run_until_mailout_ends
from sendonce.settings import load_settings
from tests.acceptance.test_threats_people import Desk, desk
from tests.conformance.stage import Stage

__all__ = ["desk"]


def test_status_says_why_nothing_moves(desk: Desk) -> None:
    """Without a worker; then with one that rests: the cause, what to do, and the next try by APP_TIMEZONE."""
    desk.environment["APP_TIMEZONE"] = "Europe/Riga"
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        mailout_id = stage.running(3)
        said = desk.run("mailout", "status", mailout_id)
        assert "No worker is at work.\n  Start one: sendonce worker\n  Workers at work: 0." in said
        until = datetime(2030, 1, 1, 12, tzinfo=UTC)
        rest = Pulse(0.0, Rest.SENDING_PAUSED, "Sending is paused for this account", until)
        store.workers.see(stage.worker(), rest)
    said = desk.run("mailout", "status", mailout_id)
    assert "Sending is paused for this account. Next try: 2030-01-01 14:00 (Europe/Riga)." in said
    assert "See what your mail provider says about the account." in said
    assert "Workers at work: 1." in said


def test_status_says_how_fast_it_goes_and_until_when(desk: Desk) -> None:
    """The rate, the estimated end on the clock of APP_TIMEZONE, and who is at work."""
    desk.environment["APP_TIMEZONE"] = "Europe/Riga"
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        mailout_id = stage.running(3)
        store.workers.see(stage.worker(), Pulse(0.25))
    said = desk.run("mailout", "status", mailout_id)
    assert "0.25 letters per second, done at about 20" in said
    assert "(Europe/Riga).\n  Workers at work: 1." in said


def test_the_progress_line_says_why_nothing_moves(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever sends in the foreground sees it beside the count."""
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    settings = load_settings({**desk.environment, "HOME": "/nowhere"}, dotenv=None)
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        mailout = stage.get(stage.running(3))
        store.dispatches.set_paused(mailout.id, True)
        run_until_mailout_ends(settings, store, mailout, silent=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Sending: 0 of 3. It is paused. To go on: sendonce mailout resume")
