"""Results of runs are kept as they come, and the page sums them up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sendonce.domain.engine.failpoints import NAMES
from tests.crash.faults import FAULTS
from tests.crash.page import render, summed
from tests.crash.results import Result, Run, append, read
from tests.crash.runs import Row

KILLED = Row("SIGKILL at random", runs=2, kills=40, most_in_doubt=3)
FIRST = Result(Run("sqlite", 1, 100), KILLED, "2026-01-02", "2 cores of a machine", 61.0)
SECOND = replace(FIRST, run=Run("sqlite", 2, 100), row=replace(KILLED, most_in_doubt=4, hits={"claimed": 5}))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    append(file, FIRST)
    append(file, SECOND)
    assert read([file, tmp_path / "none"]) == [FIRST, SECOND]


def test_the_runs_of_a_fault_are_summed() -> None:
    row = summed([FIRST, SECOND])[0]
    assert (row.runs, row.kills, row.most_in_doubt, row.hits) == (4, 80, 4, {"claimed": 5})


def test_the_page_has_a_row_for_every_fault_and_failpoint_on_each_store_and_every_seed() -> None:
    page = render([FIRST, SECOND])
    for fault in FAULTS:
        assert page.count(f"| {fault.name} |") == 2
    for name in NAMES:
        assert page.count(f"| `{name}` |") == 1
    assert "SEED=1`" in page
    assert "SEED=2`" in page
    assert "{{" not in page


def test_the_page_says_what_went_wrong() -> None:
    page = render([replace(FIRST, row=replace(KILLED, duplicates=1, wrong=["one got two"]))])
    assert "**VIOLATED**" in page
    assert "SIGKILL at random: one got two" in page
