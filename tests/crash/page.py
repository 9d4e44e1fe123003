"""The page with the results of long runs: ``python -m tests.crash.page FILE…`` writes it anew.

The files are those that ``python -m tests.crash --json FILE`` has written. Rows of the same fault are
summed over all runs on a store.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sendonce.domain.engine.failpoints import NAMES
from tests.crash.faults import FAULTS
from tests.crash.results import Result, read
from tests.crash.runs import Row

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "crash-results.md"
TEMPLATE = Path(__file__).with_name("page.md")
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
COLUMNS = (
    *("fault", "runs", "kills", "duplicates", "lost"),
    *("most in doubt", "bound", "unresolved", "parked", ""),
)


def render(results: Sequence[Result]) -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    parts = {
        "RUNS": _runs(results),
        "TABLES": "\n\n".join(_store(store, results) for store in STORES),
        "FAILPOINTS": _failpoints(results),
        "NOT_RUN": _not_run(results),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text.rstrip() + "\n"


def _table(header: Iterable[object], lines: Iterable[Iterable[object]]) -> str:
    titles = list(header)
    marks: list[object] = ["---", *["---:"] * (len(titles) - 1)]
    table: list[Iterable[object]] = [titles, marks, *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in table)


def _runs(results: Sequence[Result]) -> str:
    lines = []
    for run in dict.fromkeys(result.run for result in results):
        of_run = [result for result in results if result.run == run]
        dates = sorted({result.date for result in of_run})
        kills = sum(result.row.kills for result in of_run)
        minutes = sum(result.seconds for result in of_run) / 60
        lines.append(
            (
                " – ".join(dict.fromkeys([dates[0], dates[-1]])),
                f"`{run.command}`",
                f"{kills:,}",
                f"{minutes:.0f}",
            )
        )
    machines = dict.fromkeys(result.machine for result in results)
    table = _table(("date", "command", "kills", "minutes"), lines)
    return "\n\n".join([table, *[f"Machine: {machine}." for machine in machines]])


def _store(store: str, results: Sequence[Result]) -> str:
    rows = summed([result for result in results if result.run.store == store])
    total = Row("**all**")
    lines = []
    for fault, row in zip(FAULTS, rows, strict=True):
        lines.append(_cells(row, str(fault.bound)))
        total.add(row)
    total.note = ""
    lines.append(_cells(total, ""))
    wrong = [f"- {row.fault}: {what}" for row in rows for what in row.wrong]
    return "\n\n".join(
        [f"## On {STORES[store]}", _table(COLUMNS, lines), *(["\n".join(wrong)] if wrong else [])]
    )


def summed(results: Sequence[Result]) -> list[Row]:
    """A row for each fault, even if it was never played."""
    rows = []
    for fault in FAULTS:
        row = Row(fault.name)
        for result in results:
            if result.row.fault == fault.name:
                row.add(result.row)
        rows.append(row)
    return rows


def _cells(row: Row, bound: str) -> tuple[object, ...]:
    verdict = "clean" if row.clean else "**VIOLATED**"
    if not row.runs:
        verdict = "not run"
    counts = [f"{n:,}" for n in (row.runs, row.kills, row.duplicates, row.lost, row.most_in_doubt)]
    return (row.fault, *counts, bound, row.unresolved, row.parked, verdict)


def _failpoints(results: Sequence[Result]) -> str:
    lines = [
        (f"`{name}`", *[_hits(name, [r for r in results if r.run.store == store]) for store in STORES])
        for name in NAMES
    ]
    return _table(("struck", *STORES.values()), lines)


def _hits(name: str, results: Sequence[Result]) -> int:
    return sum(result.row.hits.get(name, 0) for result in results)


def _not_run(results: Sequence[Result]) -> str:
    notes = {(r.run.store, r.row.fault): r.row.note for r in results if r.row.note}
    return "\n".join(
        f"- {fault} on {STORES[store]}: {note.removeprefix('not run: ')}."
        for (store, fault), note in notes.items()
    )


def main() -> int:
    results = read(map(Path, sys.argv[1:]))
    if not results:
        sys.stderr.write("Which results? python -m tests.crash.page FILE… (made with --json FILE)\n")
        return 2
    PAGE.write_text(render(results), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len({result.run for result in results})} runs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
