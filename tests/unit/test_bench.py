"""The benchmark's page: a missed bar says by how much and why, and a row that fails costs no other."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from bench import __main__ as bench
from bench import processes, report
from bench.chart import draw
from bench.findings import Finding
from bench.stage import Length, Stage, staged

TOLD = {
    "when": "2026-11-16T12:00:00+00:00",
    "postgres": "18.4",
    "postfix": "3.7.11",
    "load_before": 0.1,
    "load_after": 0.2,
    "failed": {},
    "machine": report.machine(),
}


def test_a_missed_bar_stands_on_the_page_with_its_distance_and_its_reason() -> None:
    missed = Finding("smtp-sqlite", "SMTP, durable", "smtp-source", 0.92, bar=1.15)
    met = Finding("link", "over a link", "smtplib", 4.0, bar=3.5)
    page = report.page([missed, met], TOLD)
    section = page.partition("## Bars that are missed, and why")[2].partition("## What exactly")[0]
    assert "missed by 20%" in section
    assert report.read_bounds()["smtp-sqlite"] in section
    assert report.read_bounds()["link"] not in section


def test_a_row_that_failed_stands_on_the_page() -> None:
    page = report.page([], {**TOLD, "failed": {"ses": f"Traceback …\nOSError: {report.ROOT}/x | gone"}})
    assert "| ses | gave no figure | | | | | failed: OSError: x / gone |" in page
    assert "{{" not in page


def test_bounds_are_told_of_rows_that_exist() -> None:
    assert set(report.read_bounds()) <= set(bench.ALL_ROWS)


def test_a_row_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(_: Stage, wanted: list[str]) -> list[Finding]:
        if "first" in wanted:
            raise ZeroDivisionError("no rounds")
        return [Finding(row, row, "itself", 1.0) for row in wanted if row != "silent"]

    module = SimpleNamespace(ROWS=("first", "second", "silent"), measure=measure)
    monkeypatch.setattr(bench, "MODULES", (module,))
    with staged(Length.QUICK, {}, lambda _: None) as stage:
        found = bench._measure(stage, module.ROWS)
    assert [finding.row for finding in found] == ["second"]
    assert stage.failed == {"first": "ZeroDivisionError: no rounds", "silent": "what it needs is not here"}


def test_nothing_at_all_is_well_below_a_bar() -> None:
    """Shares that are off by nothing have a row in the chart, too."""
    assert "0.00 %" in draw([Finding("shares", "weights", "the claims", 0.0, unit="%", bar=5, at_most=True)])


def test_a_child_that_hangs_is_killed_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LONGEST", 0.05)
    with pytest.raises(processes.BenchFailed, match="was killed after"):
        processes.run([sys.executable, "-c", "import signal; signal.pause()"])


def test_a_child_does_not_outlive_a_bench_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    child = processes.Child([sys.executable, "-c", "import signal; signal.pause()"], processes.ROOT, None)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(processes.os, "wait4", stop)
        with pytest.raises(KeyboardInterrupt):
            child.wait()
    with pytest.raises(processes.BenchFailed, match="ended with -9"):
        child.wait()
