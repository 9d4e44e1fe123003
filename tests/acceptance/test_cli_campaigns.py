"""Campaigns as an agency runs them: the command line, a worker, and letters that stay on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.nursery import run_program, shared_nursery

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


@pytest.fixture(params=["sqlite", "postgres"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    file = f"sqlite:///{tmp_path}/sendonce.db"
    return environment(
        tmp_path, file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )


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


def test_a_campaign_from_file_to_finish(agency: Run, given: dict[str, str], tmp_path: Path) -> None:
    created = told(agency("campaign", "create", "campaign.toml", "--json"))
    assert created["status"] == "ready"
    started = told(agency("campaign", "start", created["id"], "--json"))
    assert (started["status"], started["leads"]) == ("running", 2)
    log = tmp_path / "worker.log"
    worker = shared_nursery().start(["worker"], given, tmp_path, log, log)
    try:
        ends = time.monotonic() + 60
        while (view := told(agency("campaign", "status", created["id"], "--json")))["status"] == "running":
            assert time.monotonic() < ends, view
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(20)
    assert view["status"] == "finished"
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
    ('tenant = "acme"', 'tenant = "../x"', "'../x' cannot be the id of a tenant"),
    ('template = "first.md"', 'template = "gone.md"', "Line 10: there is no file"),
    ('direction = "pumps"', 'direction = "cars"', "acme has no direction 'cars'"),
    ("{{ name }}, did", "{name|friends}, did", "Line 13: {name|friends} would be sent as it stands"),
    ("[window]", "[windows]", "Line 5: there is no 'windows' here. Did you mean window"),
]


def test_a_wrong_file_makes_nothing(agency: Run, tmp_path: Path) -> None:
    for old, new, says in WRONG:
        (tmp_path / "campaign.toml").write_text(CAMPAIGN.replace(old, new))
        assert says in run_refused(agency, "campaign", "create", "campaign.toml")
    assert told(agency("campaign", "list", "--json")) == []


def run_refused(sendonce: Run, *words: str) -> str:
    for code in (2, 1, 3):
        try:
            return sendonce(*words, code=code).stderr
        except AssertionError:
            continue
    raise AssertionError(f"{words} was not refused")


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
