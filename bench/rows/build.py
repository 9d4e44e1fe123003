"""Building a message: splicing into pre-encoded parts against the standard library, CPU time on one core."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module

from bench import letters
from bench.findings import Finding, ratio_finding
from bench.processes import PROGRAMS
from bench.stage import Stage

ROWS = ("build",)


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    sys.path.insert(0, str(PROGRAMS))  # the peers are scripts; what they share lies beside them
    common = import_module("common")
    letter = common.read_letter(str(letters.write_for_peers(stage.folder / "build-letter.json")))
    compiled = letters.compiled()
    now = datetime.now(UTC)
    people = [(str(uuid.uuid4()), *letters.person(number)) for number in range(stage.size(20_000, 5_000))]
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(stage.size(7, 3)):
        began = time.process_time()
        for job_id, recipient, fields in people:
            compiled.build(job_id, recipient, fields, now)
        ours.append(len(people) / (time.process_time() - began))
        began = time.process_time()
        for number in range(200):
            common.build(letter, number).as_bytes()
        theirs.append(200 / (time.process_time() - began))
    stage.say(f"  {ours[-1]:,.0f} against {theirs[-1]:,.0f} messages/s")
    return [ratio_finding("build", "building a message", "email.message", ours, theirs, bar=200.0)]
