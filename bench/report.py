"""The findings as a table for the terminal, a JSON file, a chart, and a page of the documentation."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.chart import draw
from bench.findings import Finding
from bench.processes import ROOT

PAGE = ROOT / "docs" / "explanation" / "speed.md"
CHART = ROOT / "docs" / "images" / "bench.svg"
TEMPLATE = Path(__file__).with_name("page.md")
BOUNDS = Path(__file__).with_name("bounds.md")
_UNEXPLAINED = "Why has not been looked into yet."


def show(findings: Sequence[Finding], failed: Mapping[str, str]) -> None:
    table = Table(title="Ratios of this run", title_justify="left")
    for name in ("row", "what", "against"):
        table.add_column(name, overflow="fold")
    for name in ("found", "rounds", "bar", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for finding in findings:
        style = {True: "green", False: "red", None: ""}[finding.met]
        table.add_row(
            finding.row,
            finding.what,
            finding.against,
            finding.shown,
            spread(finding),
            finding.bar_shown,
            finding.verdict,
            style=style,
        )
    for row, why in failed.items():
        table.add_row(row, why[:200], "", "", "", "", "failed", style="red")
    # A pipe has no width: there a line is as long as it is.
    Console(width=None if sys.stdout.isatty() else 170).print(table)


def spread(finding: Finding) -> str:
    """The lowest and the highest round."""
    if len(finding.rounds) < 2:
        return ""
    return f"{min(finding.rounds):.2f} … {max(finding.rounds):.2f}"


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(_memory_kb() / 2**20),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlalchemy": version("sqlalchemy"),
        "psycopg": version("psycopg"),
        "uvloop": version("uvloop"),
        "boto3": version("boto3"),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_kb() -> int:
    words = Path("/proc/meminfo").read_text(encoding="ascii").split()
    return int(words[words.index("MemTotal:") + 1])


def as_json(findings: Sequence[Finding], about: dict[str, Any]) -> dict[str, Any]:
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return {"when": moment, **about, "machine": machine(), "findings": [f.as_json() for f in findings]}


def write(findings: Sequence[Finding], told: dict[str, Any], json_file: Path) -> None:
    """The figures, and a chart beside them."""
    json_file.parent.mkdir(parents=True, exist_ok=True)
    json_file.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    json_file.with_suffix(".svg").write_text(draw(findings), encoding="utf-8")


def publish(findings: Sequence[Finding], told: dict[str, Any]) -> None:
    """The page of the documentation and its chart."""
    CHART.parent.mkdir(parents=True, exist_ok=True)
    CHART.write_text(draw(findings), encoding="utf-8")
    PAGE.write_text(page(findings, told), encoding="utf-8")


def page(findings: Sequence[Finding], told: dict[str, Any]) -> str:
    about = told["machine"]
    rows = [
        f"| {f.row} | {f.what} | {f.against} | **{f.shown}** | {spread(f)} | {f.bar_shown} | {f.verdict} |"
        for f in findings
    ]
    rows += [
        f"| {row} | gave no figure | | | | | failed: {_cell(why)} |" for row, why in told["failed"].items()
    ]
    machine_line = (
        f"{about['cores']} cores of {about['cpu']}, {about['memory_gb']} GB, {about['system']}; "
        f"Python {about['python']}, SQLite {about['sqlite']}, PostgreSQL {told['postgres']}, "
        f"Postfix {told['postfix']}, psycopg {about['psycopg']}, uvloop {about['uvloop']}, "
        f"boto3 {about['boto3']}"
    )
    text, bounds = TEMPLATE.read_text(encoding="utf-8"), read_bounds()
    values = {
        "DATE": told["when"][:10],
        "MACHINE": machine_line,
        "LOAD": f"{told['load_before']:.1f} before the run, {told['load_after']:.1f} after it",
        "TABLE": "\n".join(rows),
        "MISSED": "\n".join(_missed_bars(findings, bounds)),
        "BOUNDS": "\n".join(_other_bounds(findings, bounds)),
        "FIGURES": "\n".join(_figure_rows(findings)),
    }
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def read_bounds() -> dict[str, str]:
    """What bounds a row, by its name; some have it in common."""
    sections = BOUNDS.read_text(encoding="utf-8").split("\n## ")[1:]
    named = (section.partition("\n") for section in sections)
    return {row: " ".join(text.split()) for names, _, text in named for row in names.split(", ")}


def _missed_bars(findings: Sequence[Finding], bounds: Mapping[str, str]) -> list[str]:
    """Row by row: by how much, and why."""
    missed: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.met is False:
            missed.setdefault(finding.row, []).append(finding)
    lines = []
    for row, several in missed.items():
        short = "; ".join(f"{f.what} / {f.against}: {f.shown}, {f.verdict}" for f in several)
        lines.append(f"- **{row}**: {short}. {bounds.get(row, _UNEXPLAINED)}")
    return lines or ["None in this run."]


def _other_bounds(findings: Sequence[Finding], bounds: Mapping[str, str]) -> list[str]:
    missed = {finding.row for finding in findings if finding.met is False}
    by_text: dict[str, list[str]] = {}
    for row, text in bounds.items():
        if row not in missed:
            by_text.setdefault(text, []).append(row)
    return [f"- **{', '.join(rows)}**: {text}" for text, rows in by_text.items()]


def _cell(why: str) -> str:
    """In one line of a table: a child that failed says last what was wrong."""
    last = why.strip().replace(f"{ROOT}/", "").replace("|", "/").splitlines()[-1:]
    return " ".join("".join(last).split())[:200]


def _figure_rows(findings: Sequence[Finding]) -> list[str]:
    rows: dict[str, None] = {}
    for finding in findings:
        for name, value in finding.figures.items():
            if name not in ("ours per s", "theirs per s"):
                rows[
                    f"| {finding.row} | {name} | {value:,.4g} |" if value < 100 else _whole(finding, name)
                ] = None
    return list(rows)


def _whole(finding: Finding, name: str) -> str:
    return f"| {finding.row} | {name} | {finding.figures[name]:,.0f} |"
