"""The commands that show companies, decide which are one, and audit the list."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.schema import contacts
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.ids import time_ordered_id
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import Findings
from tests.conformance.prospecting_stage import NOW, Prospects
from tests.nursery import run_program

INN = "7707083893"


class Commands:
    def __init__(self, url: str, folder: Path) -> None:
        self.environment = {"PYTHONUTF8": "1", "COLUMNS": "300", "DATABASE_URL": url}
        self.folder = folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_program(arguments, self.environment, self.folder)

    def review(self, typed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sendonce", "companies", "review"],
            env=self.environment,
            cwd=self.folder,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def commands(sqlite_url: str, tmp_path: Path) -> Commands:
    """Five companies: two with one tax number and a formula for a name, two with one name, one unvisited."""
    with closing(open_store(sqlite_url)) as store:
        prospects = Prospects(store)
        for minute, domain in enumerate(("a.ru", "b.ru", "c.ru", "d.ru")):
            prospects.find(domain, now=NOW + timedelta(minutes=minute))
        shows = Findings(has_contacts=True, inn=[INN], city="Казань", name="=HYPERLINK(1)")
        named = Findings(has_contacts=True, name="ООО «Ромашка»")
        prospects.visit(NOW + timedelta(hours=1), a=shows, b=shows, c=named, d=named)
        prospects.find("e.ru", now=NOW + timedelta(hours=2))
        for name in "acd":
            keep_email(prospects, f"{name}.ru", f"info@{'same' if name in 'cd' else name}.ru")
    return Commands(sqlite_url, tmp_path)


def keep_email(prospects: Prospects, domain: str, email: str) -> None:
    row = {"value": email, "value_key": email, "kind": "email", "is_primary": True, "attributes": {}}
    with prospects.store.database.writing() as tx:
        tx.execute(
            contacts.insert().values(
                id=time_ordered_id(1),
                tenant_id=DEFAULT_TENANT,
                company_id=prospects.company(domain).id,
                quality=1.0,
                source="mailto",
                source_url="",
                created_at=NOW,
                last_seen_at=NOW,
                **row,
            )
        )


def test_duplicates_are_merged_reviewed_and_undone(commands: Commands) -> None:
    assert commands.json("companies", "dedupe") == {
        "looked_at": 4,
        "merged_pairs": 1,
        "nominated_pairs": 1,
    }
    counts = commands.json("companies", "list")["counts"]
    assert counts == {"enriched": 3, "duplicate": 1, "new": 1}
    [pair] = commands.json("companies", "review")
    assert (pair["primary"]["domain"], pair["duplicate"]["domain"]) == ("c.ru", "d.ru")
    reviewed = commands.review("what\ny\n")
    assert "Merged." in reviewed.stdout
    assert commands.json("companies", "review") == []
    undone = commands.json("companies", "undo", "https://www.b.ru/contacts")
    assert (undone["undone_pairs"], undone["company"]["status"]) == (1, "new")
    again = commands.run("companies", "undo", "b.ru")
    assert again.returncode == 3
    assert "nothing to undo" in again.stderr
    assert commands.json("companies", "dedupe", "--all")["merged_pairs"] == 1


def test_a_review_may_end_early_and_change_nothing(commands: Commands) -> None:
    commands.json("companies", "dedupe")
    for typed in ("", "q\n", "s\n"):
        assert commands.review(typed).returncode == 0
    assert len(commands.json("companies", "review")) == 1


def test_an_unknown_company_is_said_to_be_so(commands: Commands) -> None:
    for name in ("nobody.ru", "ffffffff", "../x"):
        done = commands.run("companies", "undo", name)
        assert done.returncode == 1
        assert "There is no company" in done.stderr


def test_the_export_is_safe_for_a_spreadsheet(commands: Commands) -> None:
    """With the regions and the searches that found each company."""
    done = commands.run("companies", "export", "-o", "companies.csv")
    assert done.returncode == 0, done.stderr
    with (commands.folder / "companies.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["domain"] for row in rows] == ["a.ru", "b.ru", "c.ru", "d.ru", "e.ru"]
    assert rows[0]["regions"] == "Казань"
    assert rows[0]["searches"] == "производители насосов"
    assert rows[2]["name"] == "ООО «Ромашка»"
    assert rows[0]["name"].startswith("'=")
    lines = commands.run("companies", "export", "--json").stdout.splitlines()
    assert [json.loads(line)["domain"] for line in lines] == [row["domain"] for row in rows]


def test_the_audit_draws_a_sample_that_shows_repeats(commands: Commands) -> None:
    commands.json("companies", "dedupe")
    audit = commands.json("companies", "audit", "--seed", "1")
    assert (audit["listed"], audit["repeated"], audit["sampled"]) == (3, 1, 3)
    assert audit["share"] == pytest.approx(1 / 3)
    assert {row["domain"]: row["same_as"] for row in audit["rows"]} == {
        "a.ru": "",
        "c.ru": "d.ru",
        "d.ru": "c.ru",
    }
    assert commands.json("companies", "audit", "--seed", "1") == audit
    done = commands.run("companies", "audit", "-o", "audit.csv")
    assert "1 repeated (33.33%" in done.stdout
    assert "verdict" in (commands.folder / "audit.csv").read_text(encoding="utf-8-sig").splitlines()[0]


def test_the_funnel_needs_no_credentials(commands: Commands) -> None:
    status = commands.json("prospect", "status")
    assert list(status["funnel"].items()) == [
        ("queries", 1),
        ("operations", 0),
        ("results", 0),
        ("companies", 5),
        ("with contacts", 3),
        ("letters", 0),
        ("sent", 0),
    ]
    targets = {target["name"]: target for target in status["targets"]}
    assert targets["letters sent well"]["met"] is None
    assert targets["repeated domains"]["met"] is False
    assert commands.run("prospect", "status").returncode == 0


def test_a_step_that_cannot_work_says_why_and_stops_no_other(commands: Commands) -> None:
    """Without credentials nothing is searched; companies are compared all the same."""
    done = commands.run("prospect", "run", "--only", "submit", "--only", "dedupe", "--json")
    assert done.returncode == 1
    submit, dedupe = json.loads(done.stdout)
    assert "YANDEX_CLOUD_FOLDER_ID" in submit["note"]
    assert (dedupe["step"], dedupe["done"]) == ("dedupe", 4)
    journal = commands.json("prospect", "journal", "--step", "dedupe")
    assert [line["taken"] for line in journal] == [4]
    commands.run("prospect", "journal", "--csv", "-o", "journal.csv")
    assert len((commands.folder / "journal.csv").read_text(encoding="utf-8-sig").splitlines()) == 3


def test_a_run_is_of_one_manner(commands: Commands) -> None:
    done = commands.run("prospect", "run", "--once", "--loop")
    assert done.returncode == 2
    assert "one of --once, --loop and --until-idle" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["companies", "audit"], "No company is on the contact list yet"),
        (["companies", "review"], "No pair waits for review."),
        (["letters", "review"], "No letter waits for review."),
        (["companies", "list"], "0 companies"),
    ],
)
def test_an_empty_house_says_so(command: list[str], said: str, sqlite_url: str, tmp_path: Path) -> None:
    done = Commands(sqlite_url, tmp_path).run(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert "Times are" not in done.stdout
