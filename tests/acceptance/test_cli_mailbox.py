"""sendonce mailbox classify: what programs and people see of saved messages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.nursery import run_program

ENVIRONMENT = {"PYTHONUTF8": "1", "COLUMNS": "300"}
CORPUS = Path(__file__).parents[1] / "corpora" / "bounces"


def test_messages_are_classified_as_json(tmp_path: Path) -> None:
    files = [str(CORPUS / name) for name in ("o365-quota.eml", "optout-ru.eml")]
    done = run_program(["mailbox", "classify", *files, "--json"], ENVIRONMENT, tmp_path)
    assert done.returncode == 0, done.stderr
    bounce, wish = json.loads(done.stdout)
    assert list(bounce) == ["file", "kind", "recipient", "bounce", "code", "reason", "cause"]
    assert bounce["file"] == files[0]
    assert (bounce["kind"], bounce["bounce"], bounce["code"]) == ("bounce", "soft", "5.2.2")
    assert (wish["kind"], wish["recipient"], wish["bounce"]) == ("opt_out", "petr@firma.example", None)
    assert list(tmp_path.iterdir()) == []


def test_people_see_a_table(tmp_path: Path) -> None:
    done = run_program(["mailbox", "classify", str(CORPUS / "arf-abuse.eml")], ENVIRONMENT, tmp_path)
    assert done.returncode == 0
    assert "1 message" in done.stdout
    assert "complaint" in done.stdout


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = run_program(["mailbox", "classify", "nowhere.eml"], ENVIRONMENT, tmp_path)
    assert done.returncode == 2
    assert done.stderr == "nowhere.eml cannot be read: No such file or directory.\n"
