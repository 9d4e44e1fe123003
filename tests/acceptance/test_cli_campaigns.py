"""Campaigns as an agency runs them: the command line, a worker, and letters that stay on this machine."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.crash.world import quick_start, until
from tests.nursery import run_program

Run = Callable[..., subprocess.CompletedProcess[str]]

CAMPAIGN = """name = "Autumn"
tenant = "acme"
direction = "pumps"

[window]
days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
from = "00:00"
to = "23:59"

[[step]]
template = "first.md"

[[step]]
after = "1d"
subject = "Re: pumps"
text = "{{ name }}, did you see it?"
"""
LEADS = "email,name,company\nann@one.example,Ann,One\nbob@two.example,Bob,Two\nnobody,X,Y\n"
COUNTS = {"planned", "scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt"}


def environment(tmp_path: Path, url: str) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **keep,
        "DATABASE_URL": url,
        "STATE_DIR": str(tmp_path / "state"),
        "MAILDIR_PATH": str(tmp_path / "mail"),
        "TRANSPORT": "maildir",
        "MAIL_FOOTER_ADDRESS": "1 Example Street",
        "CLOCK_SPEED": "86400",
    }


on_every_store = pytest.mark.parametrize("given", ["sqlite_url", "postgres_url"], indirect=True)


@pytest.fixture
def given(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """On SQLite, unless a test says otherwise."""
    return environment(tmp_path, request.getfixturevalue(getattr(request, "param", "sqlite_url")))


@pytest.fixture
def sendonce(given: dict[str, str], tmp_path: Path) -> Run:
    def run(*words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = run_program(words, {**given, **more}, tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


def told(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


@pytest.fixture
def agency(sendonce: Run, tmp_path: Path) -> Run:
    """A client with a direction, a sender and two leads."""
    (tmp_path / "leads.csv").write_text(LEADS)
    (tmp_path / "first.md").write_text("---\nsubject: Pumps for {{ company }}\n---\nHello, **{{ name }}**!\n")
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    sendonce("tenant", "add", "acme")
    sendonce("direction", "add", "--tenant", "acme", "pumps", "--jurisdiction", "RU", "--basis", "consent")
    own = ("--tenant", "acme", "--direction", "pumps")
    box = ("--transport", "maildir", "--folder", str(tmp_path / "box"))
    sendonce("sender", "add", *own, "sales@acme.example", *box, "--daily", "50", "--warm-up")
    done = told(sendonce("leads", "import", *own, "leads.csv", "--json"))
    assert (done["added"], done["rejected"], done["errors"][0]["line"]) == (2, 1, 4)
    return sendonce


def letters(tmp_path: Path) -> list[Message]:
    return [message_from_bytes(file.read_bytes()) for file in sorted((tmp_path / "box" / "new").iterdir())]


@on_every_store
def test_a_campaign_from_file_to_finish(agency: Run, given: dict[str, str], tmp_path: Path) -> None:
    created = told(agency("campaign", "create", "campaign.toml", "--json"))
    assert created["status"] == "ready"
    started = told(agency("campaign", "start", created["id"], "--json"))
    assert (started["status"], started["leads"]) == ("running", 2)
    worker = quick_start(["worker"], given, tmp_path / "worker.log", tmp_path)

    def finished() -> Any:
        time.sleep(0.5)
        view = told(agency("campaign", "status", created["id"], "--json"))
        return view if view["status"] == "finished" else None

    try:
        view = until(finished, 60, "the campaign is finished")
    finally:
        worker.end()
    assert set(view["counts"]) >= COUNTS
    assert [(step["step"], step["counts"]["sent"]) for step in view["steps"]] == [(1, 2), (2, 2)]
    (sender,) = view["senders"]
    assert (sender["address"], sender["state"], sender["bounces"]) == ("sales@acme.example", "active", 0)
    assert {brake["rule"] for brake in view["brakes"]} == {"bounce", "complaint", "deferral"}
    assert not any(brake["tripped"] for brake in view["brakes"])
    by_subject = {str(letter["Subject"]): letter for letter in letters(tmp_path)}
    first, second = by_subject["Pumps for One"], by_subject["Re: pumps"]
    assert second["In-Reply-To"] in {letter["Message-ID"] for letter in letters(tmp_path)}
    assert first["List-Unsubscribe"]
    assert "Autumn" in agency("campaign", "list").stdout
    assert "finished" in agency("campaign", "status", "Autumn").stdout


WRONG = [
    ('tenant = "acme"', 'tenant = "../x"', 2, "'../x' cannot be the id of a tenant"),
    ('template = "first.md"', 'template = "gone.md"', 2, "Line 10: there is no file"),
    ('direction = "pumps"', 'direction = "cars"', 1, "acme has no direction 'cars'"),
    ("{{ name }}, did", "{name|friends}, did", 2, "Line 13: {name|friends} would be sent as it stands"),
    ("[window]", "[windows]", 2, "Line 5: there is no 'windows' here. Did you mean window"),
]


def test_a_wrong_file_makes_nothing(agency: Run, tmp_path: Path) -> None:
    for old, new, code, says in WRONG:
        (tmp_path / "campaign.toml").write_text(CAMPAIGN.replace(old, new))
        assert says in agency("campaign", "create", "campaign.toml", code=code).stderr
    assert told(agency("campaign", "list", "--json")) == []


def test_a_variable_without_value_stops_the_start(agency: Run, tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.replace("{{ name }}, did", "{{ city }}, did"))
    created = told(agency("campaign", "create", "campaign.toml", "--json"))
    refused = agency("campaign", "start", created["id"], code=3)
    assert "The letter of step 2 says {{ city }}, and " in refused.stderr
    assert told(agency("campaign", "status", created["id"], "--json"))["status"] == "ready"


def test_a_fast_clock_writes_to_nobody_outside(agency: Run) -> None:
    own = ("--tenant", "acme", "--direction", "pumps", "--daily", "5")
    refused = agency("sender", "add", *own, "a@acme.example", "--host", "mail.acme.example", code=2)
    assert "CLOCK_SPEED is 86400, and letters of a@acme.example would leave this machine" in refused.stderr


def test_a_fast_clock_needs_a_young_database(agency: Run, given: dict[str, str]) -> None:
    with closing(sqlite3.connect(given["DATABASE_URL"].removeprefix("sqlite:///"))) as file, file:
        file.execute("UPDATE ledger SET created_at = datetime(created_at, '-40 days')")
    refused = agency("worker", "--until-idle", code=2)
    assert "CLOCK_SPEED is 86400, and this database is 40 days old" in refused.stderr


def test_a_sender_of_a_pool_has_limits(agency: Run, tmp_path: Path) -> None:
    box = ("--folder", str(tmp_path / "box2"))
    no_limit = agency(
        "sender", "add", "--tenant", "acme", "--direction", "pumps", "b@acme.example", *box, code=2
    )
    assert "say how many letters a day with --daily" in no_limit.stderr
    unknown = agency(
        "sender", "add", "--tenant", "acme", "--direction", "x", "--daily", "5", "b@a.example", *box, code=1
    )
    assert "acme has no direction 'x'" in unknown.stderr
