"""``make crash``: kill the program many times, and let the provider's log judge."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sendonce.domain.engine.failpoints import NAMES
from tests.crash.databases import postgres_databases, sqlite_databases
from tests.crash.faults import FAULTS, Fault
from tests.crash.results import Result, Run, append, machine, read, today
from tests.crash.runs import House, Row, play_all

COLUMNS = ("fault", "runs", "kills", "duplicates", "lost", "most in doubt", "unresolved", "parked", "verdict")


def main() -> int:
    arguments = _arguments()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**31)
    run = Run(arguments.store, seed, arguments.kills)
    faults = [fault for fault in FAULTS if arguments.only in fault.name]
    began = time.monotonic()
    say(f"{run.asked} kills on {run.store}, seed {seed}")
    say(_line(COLUMNS))
    rows = []
    for row in _rows(run, faults, arguments.jobs, arguments.json):
        rows.append(row)
        say("\n    ".join([_line(_cells(row)), *row.wrong]))
    total = Row("all")
    for row in rows:
        total.add(row)
    total.note = ""
    say(_line(_cells(total)))
    hits = ", ".join(f"{name} {total.hits.get(name, 0)}" for name in NAMES)
    say(f"failpoints struck: {hits}")
    say(f"{time.monotonic() - began:.0f} s; again: {run.command}")
    return 0 if total.clean else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills that land while letters are sending")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="the dice of an earlier run")
    parser.add_argument("--only", default="", help="faults whose name has these words")
    parser.add_argument("--jobs", type=int, default=2, help="how many worlds at a time")
    parser.add_argument(
        "--json",
        type=Path,
        default=None,
        help="add each row to this file; what it has of the same run is not played again",
    )
    return parser.parse_args()


def _rows(run: Run, faults: Sequence[Fault], jobs: int, file: Path | None) -> Iterator[Row]:
    """The rows that are in the file already, then the others as they come out."""
    kept = {result.row.fault: result.row for result in read([file] if file else []) if result.run == run}
    yield from (kept[fault.name] for fault in faults if fault.name in kept)
    open_databases = sqlite_databases if run.store == "sqlite" else postgres_databases
    with open_databases() as databases:
        house = House(databases, run.seed, jobs)
        where = machine(databases.version)
        began = time.monotonic()
        for row in play_all(run.asked, house, [fault for fault in faults if fault.name not in kept]):
            if file:
                append(file, Result(run, row, today(), where, round(time.monotonic() - began, 1)))
            began = time.monotonic()
            yield row


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _cells(row: Row) -> tuple[object, ...]:
    verdict = row.note or ("clean" if row.clean else "VIOLATED")
    return (
        row.fault,
        row.runs,
        row.kills,
        row.duplicates,
        row.lost,
        row.most_in_doubt,
        row.unresolved,
        row.parked,
        verdict,
    )


def _line(cells: tuple[object, ...]) -> str:
    return f"{cells[0]!s:30}" + "".join(f"{cell!s:>14}" for cell in cells[1:-1]) + f"  {cells[-1]}"


if __name__ == "__main__":
    sys.exit(main())
