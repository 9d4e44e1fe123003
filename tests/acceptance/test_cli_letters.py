"""Letters to companies as a person reviews them: in the terminal, by keys, and by commands."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from tests.conformance.test_written_letters import CONSENT, Desk
from tests.nursery import run_program

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with opened(tmp_path) as store:
        desk = Desk(store, CONSENT)
        for number in range(4):
            desk.company(f"firma{number}.ru")
    return tmp_path


@contextmanager
def opened(folder: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{folder}/sendonce.db")
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def sendonce(folder: Path) -> Run:
    def run(*words: str, keys: str = "", code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        kept = {"DATABASE_URL": f"sqlite:///{folder}/sendonce.db", "STATE_DIR": f"{folder}/state"}
        environment = {"PYTHONUTF8": "1", "COLUMNS": "300", **kept, **more}
        if keys:
            program = [sys.executable, "-m", "sendonce", *words]
            path = {"PATH": os.environ["PATH"]}
            done = subprocess.run(
                program, input=keys, env={**path, **environment}, cwd=folder, capture_output=True, text=True
            )
        else:
            done = run_program(words, environment, folder)
        assert done.returncode == code, done.stderr
        return done

    return run


def told(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_a_review_by_keys_and_what_follows(sendonce: Run, folder: Path) -> None:
    assert told(sendonce("letters", "write", "--direction", "default", "--json"))["written"] == 4
    assert "0 letters planned." in sendonce("letters", "plan", "--direction", "default").stdout
    editor = folder / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/^Subject: .*/Subject: Другая тема/' \"$1\"\n", encoding="utf-8")
    editor.chmod(0o700)
    seen = sendonce("letters", "review", keys="a\nr\nx\ne\na\n", EDITOR=str(editor)).stdout
    assert "To: info@firma0.ru" in seen
    assert "'x' is none of the keys." in seen
    assert seen.rstrip().endswith("2 approved, 1 rejected, 0 skipped.")
    listed = told(sendonce("letters", "list", "--json"))
    assert listed["counts"] == {"approved": 2, "rejected": 1, "waiting": 1}
    assert [it["subject"] for it in listed["letters"]][2] == "Другая тема"
    assert [it["written_by"] for it in listed["letters"]] == ["template", "template", "person", "template"]
    first, second, *_ = (it["id"] for it in listed["letters"])
    assert told(sendonce("letters", "approve", second, "--json")) == {"approved": [second], "left": []}
    sendonce("letters", "reject", first, "--note", "too early")
    assert told(sendonce("letters", "show", first, "--json"))["note"] == "too early"
    assert "1 letter approved." in sendonce("letters", "approve", "--all").stdout
    table = list(csv.DictReader(io.StringIO(sendonce("letters", "export").stdout)))
    assert [row["status"] for row in table] == ["rejected", "approved", "approved", "approved"]
    assert len(sendonce("letters", "export", "--json", "--status", "rejected").stdout.splitlines()) == 1


def test_other_words_from_a_file(sendonce: Run, folder: Path) -> None:
    sendonce("letters", "write", "--direction", "default")
    letter = told(sendonce("letters", "list", "--json"))["letters"][0]["id"]
    (folder / "text.txt").write_text("Звоните нам: +7 999 123-45-67", encoding="utf-8")
    edited = sendonce("letters", "edit", letter[:30], "--subject", "Новая тема", "--text", "text.txt").stdout
    assert "It waits for approval. Checks that failed: length" in edited
    shown = sendonce("letters", "show", letter).stdout
    assert "Subject: Новая тема" in shown
    assert "Если такие письма вам не нужны" in shown


def test_lists_say_what_they_leave_out(sendonce: Run, folder: Path) -> None:
    sendonce("letters", "write", "--direction", "default")
    letter = told(sendonce("letters", "list", "--json"))["letters"][0]["id"]
    (folder / "text.txt").write_text("Звоните нам: +7 999 123-45-67", encoding="utf-8")
    sendonce("letters", "edit", letter, "--text", "text.txt")
    assert "2 of 4 letters, more with --limit" in sendonce("letters", "list", "--limit", "2").stdout
    assert "1 of 4 companies, more" in sendonce("companies", "list", "--limit", "1").stdout
    assert "3 of 4 contacts, more" in sendonce("contacts", "list", "--limit", "3").stdout
    approved = sendonce("letters", "approve", "--all").stdout
    assert "3 letters approved.\n1 letter fails a check" in approved
    sendonce("letters", "plan", "--direction", "default")
    for status, count in (("planned", 3), ("scheduled", 3), ("waiting", 1), ("sent", 0)):
        shown = told(sendonce("letters", "list", "--status", status, "--json"))["letters"]
        assert len(shown) == count, status


def test_the_pipeline_writes_and_plans_by_itself(sendonce: Run) -> None:
    steps = ("prospect", "run", "--only", "write", "--only", "plan", "--json")
    write, plan = told(sendonce(*steps, LETTERS_AUTO_APPROVE="true", DAILY_SEND_LIMIT="0"))
    assert (write["step"], write["done"], write["failed"]) == ("write", 4, 0)
    assert (plan["done"], plan["note"]) == (0, "4 wait for a slot within the daily limit of 0")
    change = ("direction", "add", "default", "--jurisdiction", "RU", "--basis", "legitimate-interest")
    assert "38-FZ" in told(sendonce(*change, "--json"))["blocked"]
    assert "Nothing is sent in this direction. In RU" in sendonce(*change).stdout
    write, plan = told(sendonce(*steps))
    assert (plan["done"], plan["failed"]) == (0, 0)
    assert "38-FZ" in plan["note"]


def test_a_company_that_called_is_left_alone(sendonce: Run) -> None:
    sendonce("letters", "write", "--direction", "default")
    said = sendonce("companies", "opt-out", "https://firma0.ru/about", "--note", "called on 5 May").stdout
    assert said == "firma0.ru gets no more letters.\n"
    (denied,) = told(sendonce("suppression", "list", "--json"))
    assert (denied["address"], denied["note"]) == ("info@firma0.ru", "its company: called on 5 May")
    assert "3 letters approved." in sendonce("letters", "approve", "--all").stdout


REFUSALS: dict[tuple[str, ...], tuple[int, str]] = {
    ("write",): (2, "Give either --brief"),
    ("write", "--direction", "nobody"): (1, "has no direction 'nobody'"),
    ("approve",): (2, "Name letters by their ids"),
    ("approve", "0190ffff"): (1, "There is no letter"),
    ("plan", "--direction", "default", "--tenant", "nobody"): (1, "has no direction"),
    ("edit", "0190ffff"): (1, "There is no letter"),
}


def test_what_makes_no_sense_is_refused(sendonce: Run) -> None:
    for words, (code, says) in REFUSALS.items():
        assert says in sendonce("letters", *words, code=code).stderr
