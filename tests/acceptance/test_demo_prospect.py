"""sendonce demo-prospect: every command of prospecting, one after the other, against the sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.nursery import run_program

STAGES = ["queries", "operations", "results", "companies", "with contacts", "letters", "sent"]


@pytest.mark.long
def test_it_ends_well_and_shows_the_funnel(tmp_path: Path) -> None:
    """Few sites; the sandbox's own books tell that nobody got two letters, and no stranger got one."""
    arguments = ["demo-prospect", "--dir", "demo", "--companies", "8", "--seed", "1"]
    done = run_program(arguments, {"PYTHONUTF8": "1", "COLUMNS": "200"}, tmp_path, seconds=180)
    assert done.returncode == 0, done.stderr + done.stdout
    stages = dict(re.findall(r"│ ([a-z ]+?) +│ ([0-9 ]+?) +│", done.stdout.partition("target")[0]))
    assert list(stages) == STAGES
    assert 0 < int(stages["sent"]) <= int(stages["with contacts"]) <= int(stages["companies"]) <= 8
    assert f"{stages['sent']} addresses got a letter, 0 got two, 0 are strangers." in done.stdout
