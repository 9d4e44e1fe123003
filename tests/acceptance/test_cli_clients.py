"""Clients and their directions, as a user adds them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nursery import run_program

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def sendonce(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    url: str = request.getfixturevalue(request.param)
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_program(words, {**keep, "DATABASE_URL": url, "STATE_DIR": str(tmp_path)}, tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


def told(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_a_client_and_its_direction(sendonce: Run, tmp_path: Path) -> None:
    (tmp_path / "offer.toml").write_text('name = "Насосы"\nbenefits = ["тихие"]\n', encoding="utf-8")
    assert told(sendonce("tenant", "add", "acme", "--name", "Acme", "--json")) == {
        "id": "acme",
        "added": True,
        "weight": 1,
        "daily": None,
    }
    assert (
        told(sendonce("tenant", "add", "acme", "--weight", "3", "--daily", "9", "--json"))["added"] is False
    )
    again = told(sendonce("tenant", "add", "acme", "--daily", "0", "--json"))
    assert (again["added"], again["weight"], again["daily"]) == (False, 3, None)
    assert (
        "--weight: 0 is not from 1 to 1000"
        in sendonce("tenant", "add", "halfmade", "--weight", "0", code=2).stderr
    )
    many = str(10**20)
    assert f"--daily: {many} is not from" in sendonce("tenant", "add", "acme", "--daily", many, code=2).stderr
    assert [each["id"] for each in told(sendonce("tenant", "list", "--json"))] == ["acme", "default"]
    add = ("direction", "add", "--tenant", "acme", "pumps", "--jurisdiction", "ru", "--basis", "consent")
    added = told(sendonce(*add, "--note", "a form on the site", "--offer", "offer.toml", "--json"))
    assert (added["jurisdiction"], added["basis"], added["language"]) == ("RU", "consent", "ru")
    assert added["offer"] == {"name": "Насосы", "benefits": ["тихие"]}
    refused = sendonce(*add, "--language", "en", code=2).stderr
    assert "The offer is in Russian and its letters are to be in English" in refused
    sendonce(*add[:-2], "--basis", "legitimate-interest")
    (now,) = told(sendonce("direction", "list", "--tenant", "acme", "--json"))
    assert (now["basis"], now["language"]) == ("legitimate-interest", "ru")
    assert (now["note"], now["offer"]["name"]) == ("a form on the site", "Насосы"), "what is not said stays"
    assert "pumps" in sendonce("direction", "list").stdout


def test_a_misspelled_field_of_an_offer_is_refused_with_its_line(sendonce: Run, tmp_path: Path) -> None:
    (tmp_path / "offer.toml").write_text('name = "Pump repair"\nbenifits = ["quick"]\n', encoding="utf-8")
    add = ("direction", "add", "pumps", "--jurisdiction", "GB", "--basis", "consent", "--offer", "offer.toml")
    refused = sendonce(*add, code=2).stderr
    assert "offer.toml, line 2: The offer has no field 'benifits': did you mean 'benefits'?" in refused
    (tmp_path / "offer.toml").write_text('name = "Pump repair"\n', encoding="utf-8")
    assert told(sendonce(*add, "--json"))["language"] == "en", "its letters are in the offer's language"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("tenant", "add", "../x"), 2, "'../x' cannot be the id of a tenant"),
        (("tenant", "add", ""), 2, "cannot be the id of a tenant"),
        (("direction", "add", "d", "--jurisdiction", "Russia", "--basis", "consent"), 2, "no country code"),
        (("direction", "add", "d", "--jurisdiction", "RU", "--basis", "whim"), 2, "'whim' is not one of"),
        (("direction", "add", "A b", "--jurisdiction", "RU", "--basis", "consent"), 2, "of a direction"),
        (
            ("direction", "add", "d", "--jurisdiction", "RU", "--basis", "consent", "--tenant", "nobody"),
            1,
            "There is no tenant nobody: add it with 'sendonce tenant add nobody'",
        ),
        (
            ("direction", "add", "d", "--jurisdiction", "RU", "--basis", "consent", "--offer", "no.toml"),
            2,
            "no.toml cannot be read",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(sendonce: Run, words: tuple[str, ...], code: int, says: str) -> None:
    assert says in sendonce(*words, code=code).stderr
