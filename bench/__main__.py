"""make bench: every row, or some, and what came out.

    python -m bench [--quick] [--only smtp-sqlite,ses] [--json FILE] [--publish]

``--publish`` writes the page and the chart of the documentation from this run; a run without it leaves
them alone and puts a chart beside its JSON file.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import peers, report
from bench.findings import Finding
from bench.processes import ROOT, BenchFailed
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
    scale,
    ses,
    smtp,
    start,
    workers,
)
from bench.sinks import version_of_sink
from bench.stage import Stage, staged

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
    pacing,
    importing,
    ingest,
    planning,
    history,
    scale,
)
ALL_ROWS = tuple(row for module in MODULES for row in module.ROWS)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stopped or not, the servers go with us
    args = _arguments()
    wanted = tuple(args.only.split(",")) if args.only else ALL_ROWS
    unknown = sorted(set(wanted) - set(ALL_ROWS))
    if unknown:
        print(f"No such row: {', '.join(unknown)}. There are: {', '.join(ALL_ROWS)}.", file=sys.stderr)
        return 2
    missing = peers.install_all(_say)
    load_before = os.getloadavg()[0]
    with staged(args.quick, missing, _say) as stage:
        findings, failed = _measure(stage, wanted)
        about: dict[str, Any] = {
            "quick": args.quick,
            "seconds": round(time.monotonic() - stage.began),
            "missing": missing,
            "postfix": version_of_sink(),
            "postgres": stage.postgres.version() if "postgres" in vars(stage) else "not run",
            "load_before": load_before,
            "load_after": os.getloadavg()[0],
        }
    told = report.as_json(findings, about)
    report.show(findings)
    report.write(findings, told, args.json, publish=args.publish)
    _say(f"{about['seconds']} s. The figures are in {args.json}.")
    for row, why in failed.items():
        _say(f"{row} gave no figure: {why}")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Speed as ratios against named peers.")
    parser.add_argument("--quick", action="store_true", help="fewer letters and rounds: some minutes")
    parser.add_argument("--only", default="", help="some rows, with commas between: " + ", ".join(ALL_ROWS))
    default = ROOT / ".stamp" / "bench" / "result.json"
    parser.add_argument("--json", type=Path, default=default, help="where to put the figures")
    parser.add_argument("--publish", action="store_true", help="write the documentation's page and chart")
    return parser.parse_args()


def _measure(stage: Stage, wanted: Sequence[str]) -> tuple[list[Finding], dict[str, str]]:
    """A row that fails is told at the end and costs no other."""
    findings: list[Finding] = []
    failed: dict[str, str] = {}
    for module in MODULES:
        rows = [row for row in module.ROWS if row in wanted]
        if not rows:
            continue
        _say(f"[{time.monotonic() - stage.began:4.0f} s] {', '.join(rows)}")
        try:
            found = module.measure(stage, wanted)
        except BenchFailed as exc:
            failed[", ".join(rows)] = str(exc)
            continue
        findings += [finding for finding in found if finding.row in wanted]
    return findings, failed


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
