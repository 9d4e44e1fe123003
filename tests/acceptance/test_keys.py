"""Rotating keys, from the command line and through the unsubscribe link."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from sendonce.domain.engine.tokens import sign_token
from tests.acceptance.test_threats_people import Desk, desk
from tests.adapters.http_stage import UNSUBSCRIBE_SECRET, serving, token_of

__all__ = ["desk"]


def test_an_erased_person_is_not_brought_back_by_an_import_after_a_rotation(desk: Desk) -> None:
    """Erase, rotate, import, send: the data is gone, and nobody writes to the person."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"], ["john@example.com", "John", "Riga"]])
    desk.run("erase", "jane@example.com", "--yes")
    assert desk.json("db", "rotate-keys", "--yes") == {"suppressions": 1}
    desk.json("db", "rotate-keys", "--yes")
    assert b"jane@" not in _database(desk)
    desk.import_rows([["Jane@Example.com", "Jane", "Riga"]])
    assert desk.send()["sent"] == 1
    assert [letter["To"] for letter in desk.letters()] == ["John <john@example.com>"]
    assert "erased on request" in desk.run("show", "jane@example.com")


def _database(desk: Desk) -> bytes:
    file = Path(desk.database_url.removeprefix("sqlite:///"))
    return b"".join(part.read_bytes() for part in file.parent.glob(file.name + "*"))


def test_links_signed_with_a_former_secret_work_while_it_is_listed(sqlite_url: str) -> None:
    """Three years and two secrets later the link in an old letter still unsubscribes."""
    rotated = {"UNSUBSCRIBE_SECRET": "new", "UNSUBSCRIBE_FORMER_SECRETS": f"newer, {UNSUBSCRIBE_SECRET}"}
    with serving(sqlite_url, rotated) as http:
        job = http.planned_job()
        for good in (token_of(job), sign_token(job.id, b"newer"), sign_token(job.id, b"new")):
            assert http.ask("POST", f"/unsubscribe?token={good}").status == 200
        assert http.ask("POST", f"/unsubscribe?token={sign_token(job.id, b'other')}").status == 404


def test_a_secret_that_is_not_listed_signs_nothing_any_more(sqlite_url: str) -> None:
    with serving(sqlite_url, {"UNSUBSCRIBE_SECRET": "new"}) as http:
        job = http.planned_job()
        assert http.ask("POST", f"/unsubscribe?token={token_of(job)}").status == 404


@pytest.mark.parametrize("former", ["", "a former secret"])
def test_doctor_misses_a_secret_that_letters_were_signed_with(desk: Desk, former: str) -> None:
    """Who changes the secret and lists the former one is fine; who loses it is told what is dead."""
    desk.environment["UNSUBSCRIBE_SECRET"] = "a former secret"
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.send()
    desk.environment |= {"UNSUBSCRIBE_SECRET": "an entirely new secret", "UNSUBSCRIBE_FORMER_SECRETS": former}
    if former:
        assert "unsubscribe links of all letters sent so far work" in desk.run("doctor")
        return
    told = re.search("forget-key ([0-9a-f]+)", desk.run("doctor", code=3))
    assert told is not None
    desk.run("db", "forget-key", told[1])
    desk.run("db", "forget-key", told[1], code=1)
    assert "forget-key" not in desk.run("doctor")


def test_former_secrets_are_shown_to_nobody(desk: Desk) -> None:
    desk.environment["UNSUBSCRIBE_FORMER_SECRETS"] = "hunter2,correct-horse"
    shown = desk.run("settings") + desk.run("settings", "--json")
    assert "hunter2" not in shown
    assert "correct-horse" not in shown


def test_without_a_secret_of_ones_own_the_database_keeps_one(sqlite_url: str) -> None:
    """Links signed after the service started work, and after a rotation too; forged ones never do."""
    with serving(sqlite_url, {"UNSUBSCRIBE_SECRET": ""}) as http:
        job, keys = http.planned_job(), http.store.keys
        for _ in range(2):
            token = sign_token(job.id, keys.make_link_secret())
            link = f"/unsubscribe?token={token}"
            ends = time.monotonic() + 60
            while http.ask("HEAD", link).status != 200:  # the service looks again after a second
                assert time.monotonic() < ends
                time.sleep(0.2)
            keys.rotate("operator")
        assert http.ask("POST", link).status == 200
        forged = sign_token(job.id, b"letters in a maildir go nowhere")
        assert http.ask("POST", f"/unsubscribe?token={forged}").status == 404
