"""make bench: every row, or some, and what came out.

    python -m bench [--quick | --long] [--only smtp-sqlite,ses] [--json FILE] [--publish]

``--publish`` writes the page and the chart of the documentation from this run; a run without it leaves
them alone and puts a chart beside its JSON file. A row that fails is shown as failed, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import peers, report
from bench.findings import Finding
from bench.processes import ROOT
from bench.rows import (
    build,
    contacts,
    events,
    history,
    importing,
    ingest,
    link,
    pacing,
    planning,
    politeness,
    scale,
    ses,
    shares,
    smtp,
    start,
    workers,
)
from bench.sinks import version_of_sink
from bench.stage import Length, Stage, staged

# What disturbs least comes first; what fills the disk comes last.
MODULES: tuple[ModuleType, ...] = (
    start,
    build,
    contacts,
    smtp,
    ses,
    events,
    link,
    workers,
    shares,
    pacing,
    politeness,
    importing,
    ingest,
    planning,
    history,
    scale,
)
ALL_ROWS = tuple(row for module in MODULES for row in module.ROWS)
# The rows of these take turns in the same rounds; those of all others are measured one by one.
MEASURED_TOGETHER = (smtp, importing)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stopped or not, the servers go with us
    args = _arguments()
    wanted = tuple(args.only.split(",")) if args.only else ALL_ROWS
    unknown = sorted(set(wanted) - set(ALL_ROWS))
    if unknown:
        print(f"No such row: {', '.join(unknown)}. There are: {', '.join(ALL_ROWS)}.", file=sys.stderr)
        return 2
    if args.publish and (args.only or args.length is Length.QUICK):
        print("The page is written from a whole run: --publish without --only and --quick.", file=sys.stderr)
        return 2
    missing = peers.install_all(_say)
    load_before = os.getloadavg()[0]
    with staged(args.length, missing, _say) as stage:
        findings = _measure(stage, wanted)
        about: dict[str, Any] = {
            "length": args.length.value,
            "seconds": round(time.monotonic() - stage.began),
            "missing": missing,
            "failed": stage.failed,
            "postfix": version_of_sink(),
            "postgres": stage.postgres.version if "postgres" in vars(stage) else "not run",
            "load_before": load_before,
            "load_after": os.getloadavg()[0],
        }
        # Before the servers are stopped: whatever may go wrong there, the figures are kept.
        told = report.as_json(findings, about)
        report.write(findings, told, args.json)
        if args.publish:
            report.publish(findings, told)
    report.show(findings, stage.failed)
    _say(f"{about['seconds']} s. The figures are in {args.json}.")
    for row, why in stage.failed.items():
        _say(f"{row} gave no figure: {why}")
    return 1 if stage.failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Speed as ratios against named peers.")
    length = parser.add_mutually_exclusive_group()
    parser.set_defaults(length=Length.USUAL)
    for word, help_text in (
        (Length.QUICK, "fewer letters and rounds: some minutes"),
        (Length.LONG, "ten million former jobs and a million search results: an hour"),
    ):
        length.add_argument(
            f"--{word.value}", dest="length", action="store_const", const=word, help=help_text
        )
    parser.add_argument("--only", default="", help="some rows, with commas between: " + ", ".join(ALL_ROWS))
    default = ROOT / ".stamp" / "bench" / "result.json"
    parser.add_argument("--json", type=Path, default=default, help="where to put the figures")
    parser.add_argument("--publish", action="store_true", help="write the documentation's page and chart")
    return parser.parse_args()


def _measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    findings: list[Finding] = []
    for module, rows in _parts(wanted):
        _say(f"[{time.monotonic() - stage.began:4.0f} s] {', '.join(rows)}")
        try:
            found = [finding for finding in module.measure(stage, rows) if finding.row in rows]
        except Exception as exc:  # noqa: BLE001 (whatever it was, the other rows have their figures)
            stage.failed |= dict.fromkeys(rows, f"{type(exc).__name__}: {exc}")
            continue
        findings += found
        for row in set(rows) - {finding.row for finding in found}:
            stage.failed.setdefault(row, "what it needs is not here")
    return findings


def _parts(wanted: Sequence[str]) -> Iterator[tuple[ModuleType, list[str]]]:
    """Modules, and the rows to measure at once."""
    for module in MODULES:
        rows = [row for row in module.ROWS if row in wanted]
        if rows and module in MEASURED_TOGETHER:
            yield module, rows
        else:
            yield from ((module, [row]) for row in rows)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
