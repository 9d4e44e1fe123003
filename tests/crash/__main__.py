"""``make crash``: kill the program many times, and let the provider's log judge."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.crash.databases import postgres_databases, sqlite_databases
from tests.crash.runs import Row, play_all
from tests.crash.scenes import FAULTS

COLUMNS = ("fault", "runs", "kills", "duplicates", "lost", "most in doubt", "unresolved", "verdict")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills that land while letters are sending")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="the dice of an earlier run")
    parser.add_argument("--only", default="", help="faults whose name has these words")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**31)
    faults = [fault for fault in FAULTS if arguments.only in fault.name]
    databases = sqlite_databases if arguments.store == "sqlite" else postgres_databases
    began = time.monotonic()
    say(f"{arguments.kills} kills on {arguments.store}, seed {seed}")
    say(_line(COLUMNS))
    rows = []
    with databases() as source:
        for row in play_all(arguments.kills, source, seed, faults):
            rows.append(row)
            say("\n    ".join([_line(_cells(row)), *row.wrong]))
    say(_line(_cells(_total(rows))))
    say(
        f"{time.monotonic() - began:.0f} s; again: make crash KILLS={arguments.kills} "
        f"STORE={arguments.store} SEED={seed}"
    )
    return 0 if all(row.clean for row in rows) else 1


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
        verdict,
    )


def _total(rows: list[Row]) -> Row:
    return Row(
        "all",
        sum(row.runs for row in rows),
        sum(row.kills for row in rows),
        sum(row.duplicates for row in rows),
        sum(row.lost for row in rows),
        max((row.most_in_doubt for row in rows), default=0),
        sum(row.unresolved for row in rows),
        [wrong for row in rows for wrong in row.wrong],
    )


def _line(cells: tuple[object, ...]) -> str:
    return f"{cells[0]!s:30}" + "".join(f"{cell!s:>14}" for cell in cells[1:-1]) + f"  {cells[-1]}"


if __name__ == "__main__":
    sys.exit(main())
