"""Import of a long CSV with all rules, against a bare loop that has none. Both timed as whole processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench import engine, letters
from bench.engine import Installation
from bench.findings import Finding, ratio_finding
from bench.processes import PROGRAMS, BenchFailed, run
from bench.stage import Stage

ROWS = ("import-sqlite", "import-postgres")
BARS = {"import-sqlite": 0.6, "import-postgres": 0.4}


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    lines = stage.size(1_000_000, 60_000)
    file, good = letters.write_rough_list(stage.folder / "rough.csv", lines)
    rates: dict[str, list[float]] = {"bare": [], **{row: [] for row in ROWS if row in wanted}}
    for number in range(stage.size(2, 1)):
        rates["bare"].append(lines / _bare_loop(stage, file, good, number))
        for row in rates:
            if row != "bare":
                rates[row].append(lines / _import(_installation(stage, row, number), file, good))
        told = ", ".join(f"{name} {several[-1]:,.0f} lines/s" for name, several in rates.items())
        stage.say(f"  {told}")
    against = "csv + regex + INSERT OR IGNORE, SQLite"
    return [
        ratio_finding(
            row, f"import of {lines:,} lines, {row[7:]}", against, rates[row], rates["bare"], bar=bar
        )
        for row, bar in BARS.items()
        if row in rates
    ]


def _installation(stage: Stage, row: str, number: int) -> Installation:
    name = f"{row}-{number}"
    if row == "import-postgres":
        return engine.on_postgres(stage.folder, name, {}, stage.postgres)
    return engine.on_sqlite(stage.folder, name, {})


def _import(installation: Installation, file: Path, good: int) -> float:
    installation.call("db", "upgrade")
    done = installation.call("subscribers", "import", str(file), "--json")
    (rows,) = installation.query("SELECT count(*) FROM subscribers")
    if rows != good or done.json["inserted"] != good:
        raise BenchFailed(
            f"{good} addresses are in the list; {done.json['inserted']} reported, {rows} stored"
        )
    return done.seconds


def _bare_loop(stage: Stage, file: Path, good: int, number: int) -> float:
    database = stage.folder / f"bare-{number}.db"
    done = run([sys.executable, PROGRAMS / "csv_loop.py", str(file), str(database)])
    if done.json["kept"] != good:
        raise BenchFailed(f"{good} addresses are in the list; the bare loop kept {done.json['kept']}")
    database.unlink()
    return done.seconds
