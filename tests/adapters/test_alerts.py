"""Alerts: told once, by Telegram and by letter, and again when Telegram was away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sendonce.adapters.alerts.telegram import Telegram
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.senders import HoldOrder
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import Unavailable
from sendonce.flows.engine.alert import raise_alert, tell_alerts
from sendonce.settings import load_settings
from sendonce.wiring.alerts import alert_chores

TOKEN = "123456:sandbox-token"


class Bot:
    """Telegram as far as we speak with it. ``status`` is what it answers with."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.status = 200
        bot = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bot.paths.append(self.path)
                if bot.status == 200:
                    bot.told.append(body)
                self.send_response(bot.status)
                self.end_headers()
                self.wfile.write(b'{"ok":false,"error_code":429,"description":"Too Many Requests"}')

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def bot() -> Iterator[Bot]:
    bot = Bot()
    thread = threading.Thread(target=bot.server.serve_forever)
    thread.start()
    yield bot
    bot.server.shutdown()
    bot.server.server_close()
    thread.join()


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def store(request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    store = open_store(request.getfixturevalue(request.param))
    yield store
    store.close()


def test_an_alert_is_told_once(store: SqlStore, bot: Bot) -> None:
    assert raise_alert(store, "sender a", "The sender a is blocked: 2 of 35.")
    assert not raise_alert(store, "sender a", "The sender a is blocked: 3 of 36.")
    assert raise_alert(store, "sender b", "The sender b is blocked: 2 of 9.")
    telegram = Telegram(bot.url, TOKEN, "42")
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 2
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 0
    assert [message["text"] for message in bot.told] == [
        "The sender a is blocked: 2 of 35.\n\nThe sender b is blocked: 2 of 9."
    ]
    assert {message["chat_id"] for message in bot.told} == {"42"}
    assert bot.paths[0] == f"/bot{TOKEN}/sendMessage"


def test_what_telegram_does_not_take_is_told_later(store: SqlStore, bot: Bot) -> None:
    raise_alert(store, "list", "The campaign is paused.")
    telegram = Telegram(bot.url, TOKEN, "42")
    bot.status = 429
    with pytest.raises(Unavailable, match=r"status 429\. Too Many Requests") as refused:
        tell_alerts(store, DEFAULT_TENANT, telegram, ())
    assert TOKEN not in str(refused.value)
    bot.status = 200
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 1
    assert len(bot.told) == 1


def test_nobody_learns_the_token_from_a_telegram_that_is_away() -> None:
    with pytest.raises(Unavailable, match="Telegram did not answer: ConnectError") as away:
        Telegram("http://127.0.0.1:9", TOKEN, "42").tell("hello")
    assert TOKEN not in str(away.value)


def test_an_alert_by_letter_is_a_dispatch_like_any_other(store: SqlStore) -> None:
    raise_alert(store, "list", "The campaign «Autumn» is paused.")
    assert tell_alerts(store, DEFAULT_TENANT, None, ["me@example.com", "you@example.com"]) == 1
    jobs = store.jobs.list(states=[JobState.SCHEDULED])
    assert {job.recipient for job in jobs} == {"me@example.com", "you@example.com"}


def test_a_message_a_minute_at_the_most(store: SqlStore, bot: Bot) -> None:
    """However many processes tell, and however much is wrong: what comes meanwhile waits."""
    telegram = Telegram(bot.url, TOKEN, "42")
    raise_alert(store, "a", "one")
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 1
    raise_alert(store, "b", "two")
    raise_alert(store, "c", "three")
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 0
    with store.database.writing() as tx:
        tx.exec_driver_sql("DELETE FROM leases WHERE name = 'alerts'")
    assert tell_alerts(store, DEFAULT_TENANT, telegram, ()) == 2
    assert [message["text"] for message in bot.told] == ["one", "two\n\nthree"]


def test_a_telegram_that_is_away_keeps_no_letter_back(store: SqlStore, bot: Bot) -> None:
    raise_alert(store, "a", "one")
    bot.status = 500
    assert tell_alerts(store, DEFAULT_TENANT, Telegram(bot.url, TOKEN, "42"), ["me@example.com"]) == 1
    assert len(store.jobs.list(states=[JobState.SCHEDULED])) == 1


def test_where_nobody_is_named_nothing_piles_up(store: SqlStore, bot: Bot) -> None:
    """Or whoever sets up Telegram a year later is told of a year's troubles."""
    raise_alert(store, "a", "one")
    tell_alerts(store, DEFAULT_TENANT, None, ())
    with store.database.writing() as tx:
        tx.exec_driver_sql("DELETE FROM leases WHERE name = 'alerts'")
    assert tell_alerts(store, DEFAULT_TENANT, Telegram(bot.url, TOKEN, "42"), ()) == 0


def test_a_worker_watches_and_tells(store: SqlStore, bot: Bot) -> None:
    """As its settings say, from a sender that is held to the message and back."""
    given = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_CHAT_ID": "42", "TELEGRAM_API_URL": bot.url}
    (_, watch), (_, tell) = alert_chores(load_settings(given, None), store)
    hold = store.sender_holds.hold("smtp/host:587/a@b.example", HoldOrder("535", "wrong password", 60.0))
    for _ in range(2):
        watch()
        tell()
        store.sender_holds.end(hold)
        with store.database.writing() as tx:  # a minute later
            tx.exec_driver_sql("DELETE FROM leases WHERE name IN ('alerts', 'watch')")
    held = "The sender a@b.example is held: wrong password"
    assert [message["text"] for message in bot.told] == [held, f"It is over: {held}"]
    assert len(store.gauge_log.last_day()) == 1
