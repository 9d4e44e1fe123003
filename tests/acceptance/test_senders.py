"""Senders beside the environment's own, as a person at the command line meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.test_held_sender import Desk

NEWS = "news@example.com"
SMTP = ("--host=smtp.example.com", "--username=news", "--secret-from=SENDER_NEWS_PASSWORD")
PASSWORD = {"SENDER_NEWS_PASSWORD": "correct horse battery staple"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, f"sqlite:///{tmp_path}/sendonce.db")
    desk.environment["SES_FROM_EMAIL"] = "own@example.org"
    desk.environment |= {"TRANSPORT": "maildir", "SENDER_DNS_CHECKS": "false"}
    return desk


def test_a_sender_is_added_listed_and_removed(desk: Desk) -> None:
    """The list says where its secret is found, and the secret is nowhere."""
    done = desk.run("sender", "add", NEWS, *SMTP, "--name=The Bakery", "--rate=5", "--json", **PASSWORD)
    assert done.stderr == ""
    added = json.loads(done.stdout)
    assert (added["address"], added["state"], added["own"]) == (NEWS, "ok", False)
    assert added["key"] == f"smtp/smtp.example.com:587/{NEWS}"
    assert (added["name"], added["rate_limit"]) == ("The Bakery", 5)
    shown = desk.run("sender", "list", "--json", **PASSWORD).stdout
    assert PASSWORD["SENDER_NEWS_PASSWORD"] not in shown
    assert PASSWORD["SENDER_NEWS_PASSWORD"].encode() not in (desk.folder / "sendonce.db").read_bytes()
    listed = {each["address"]: each for each in desk.json("sender", "list")}
    assert listed[NEWS] == added
    assert listed["own@example.org"]["own"]
    desk.run("sender", "remove", NEWS)
    assert [each["address"] for each in desk.json("sender", "list")] == ["own@example.org"]


def test_two_senders_with_one_address_are_refused(desk: Desk) -> None:
    """The environment's own address is one of them."""
    desk.run("sender", "add", NEWS, "--folder=/tmp/news")
    assert NEWS in desk.run("sender", "add", "NEWS@example.com", *SMTP, code=3).stderr.lower()
    assert "own@example.org" in desk.run("sender", "add", "own@example.org", *SMTP, code=3).stderr
    assert len(desk.json("sender", "list")) == 2


def test_a_variable_that_is_not_set_is_named_at_once(desk: Desk) -> None:
    """The sender is added all the same: the worker may run where the variable is set."""
    told = desk.run("sender", "add", NEWS, *SMTP).stderr
    assert "SENDER_NEWS_PASSWORD is not set" in told
    assert "not set" not in desk.run("sender", "add", "two@example.com", *SMTP, **PASSWORD).stderr


BAD = {
    "the secret itself": (["--host=h.example.com", "--username=u", "--secret-from=hunter2"], "begins with"),
    "no way out": ([], "--host, --region and --folder"),
    "two ways out": (["--host=h.example.com", "--region=eu-west-1"], "--host, --region and --folder"),
    "a login without a secret": (["--host=h.example.com", "--username=u"], "needs both"),
    "half an access key": (["--region=eu-west-1", "--username=AKIA"], "Give both"),
    "an unknown protection": (["--host=h.example.com", "--security=ssl"], "starttls, tls, plain"),
    "no port": (["--host=h.example.com", "--port=0"], "no port"),
    "no host": (["--host=a b"], "not the name"),
    "an answer to nobody": (["--host=h.example.com", "--reply-to=me"], "me"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_never_work_is_refused(desk: Desk, case: str) -> None:
    """With what to do instead, and never with a secret that was written in the wrong place."""
    options, words = BAD[case]
    told = desk.run("sender", "add", NEWS, *options, code=2).stderr
    assert words in told
    assert "hunter2" not in told


def test_a_person_holds_and_releases_a_sender(desk: Desk) -> None:
    """By its address or by its key; without either it is the environment's own."""
    desk.run("sender", "add", NEWS, "--folder=/tmp/news")
    held = desk.json("sender", "hold", NEWS, "--reason=the invoice is open")
    assert held == {"held": f"maildir/local/{NEWS}", "reason": "the invoice is open", "until": None}
    desk.run("sender", "hold", "--hours=2")
    states = {each["address"]: each for each in desk.json("sender", "list")}
    assert (states[NEWS]["state"], states[NEWS]["next_try_at"]) == ("blocked", None)
    assert states["own@example.org"]["state"] == "held"
    assert states["own@example.org"]["next_try_at"] is not None
    desk.run("sender", "release", NEWS)
    desk.run("sender", "release")
    assert {each["state"] for each in desk.json("sender", "list")} == {"ok"}
    assert "no sender" in desk.run("sender", "hold", "stranger@example.com", code=1).stderr
    assert "settings" in desk.run("sender", "remove", "own@example.org", code=3).stderr
