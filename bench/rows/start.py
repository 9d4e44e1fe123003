"""How long the command line takes to start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median

from bench.findings import Finding
from bench.processes import run
from bench.stage import Stage

ROWS = ("start",)


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    ours, theirs = [], []
    for _ in range(stage.size(9, 5)):
        ours.append(run([sys.executable, "-m", "sendonce", "--help"], cwd=stage.folder).seconds)
        theirs.append(run([sys.executable, "-c", "pass"], cwd=stage.folder).seconds)
    figures = {"python -c pass s": median(theirs)}
    what = "sendonce --help"
    stage.say(f"  {median(ours):.3f} s, an empty Python {median(theirs):.3f} s")
    return [
        Finding("start", what, "to the prompt", median(ours), "s", 0.4, at_most=True, figures=figures),
        Finding("start", what, "python -c pass", median(ours) / median(theirs), figures=figures),
    ]
