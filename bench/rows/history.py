"""What is asked again and again, beside a long history and beside many dispatches that wait.

    python -m bench.rows.history DATABASE_URL JOBS WAITING

fills an empty database and prints the milliseconds of each, the least of several.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from bench.findings import Finding
from bench.processes import run_module
from bench.stage import Stage

ROWS = ("history-sqlite", "history-postgres")
BAR = 1.5
ROUNDS = 15
# Less than a shelf (sql/person_index.py): as many may have to be looked through for a person's letters.
FEW_JOBS = 40_000


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    jobs, waiting = stage.size(1_000_000, 300_000, long=10_000_000), 1_000
    return [finding for row in ROWS if row in wanted for finding in _compare(stage, row, jobs, waiting)]


def _compare(stage: Stage, row: str, jobs: int, waiting: int) -> list[Finding]:
    usual = _asked(stage, row, FEW_JOBS, 1)
    beside = {
        f"{jobs:,} former jobs": _asked(stage, row, jobs, 1),
        f"{waiting:,} dispatches that wait": _asked(stage, row, FEW_JOBS, waiting),
    }
    findings = []
    for what, times in beside.items():
        for name, milliseconds in times.items():
            figures = {"ms": milliseconds, "ms without": usual[name]}
            ratio = milliseconds / usual[name]
            stage.say(f"  {row}, {name} beside {what}: {milliseconds:.2f} ms, {ratio:.2f} ×")
            findings.append(
                Finding(row, f"{name}, {what}", "without them", ratio, bar=BAR, at_most=True, figures=figures)
            )
    return findings


def _asked(stage: Stage, row: str, jobs: int, waiting: int) -> dict[str, float]:
    name = f"{row.replace('-', '_')}_{jobs}_{waiting}"
    file = stage.folder / f"{name}.db"
    url = f"sqlite:///{file}" if row == "history-sqlite" else stage.postgres.new_database(name)
    told: dict[str, float] = run_module("bench.rows.history", url, str(jobs), str(waiting)).json
    file.unlink(missing_ok=True)
    return told


def ask(url: str, jobs: int, waiting: int) -> None:
    from bench.former_jobs import ASKED, Present, fill, flush
    from sendonce.adapters.stores.sql.database import Database
    from sendonce.adapters.stores.sql.store import open_store, upgrade_schema

    upgrade_schema(Database(url))
    with closing(open_store(url)) as store:
        fill(store, jobs, waiting)
        flush(store)
    store = open_store(url)
    present = Present(store)
    least = {}
    for name, question in ASKED.items():
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            question(present)
            times.append(time.perf_counter() - began)
        least[name] = 1000 * min(times)
    print(json.dumps(least))
    store.close()


if __name__ == "__main__":
    ask(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
