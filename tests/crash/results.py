"""What came out of runs, kept as lines of JSON: one for each row as soon as it is finished."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.crash.runs import Row


@dataclass(frozen=True)
class Run:
    """Which dice, on what. The same run may be gone on with after an interruption."""

    store: str
    seed: int
    asked: int

    @property
    def command(self) -> str:
        return f"make crash KILLS={self.asked} STORE={self.store} SEED={self.seed}"


@dataclass(frozen=True)
class Result:
    """A row, of which run it is, and when, where and how long it was played."""

    run: Run
    row: Row
    date: str
    machine: str
    seconds: float


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def machine(database: str) -> str:
    # The tail of a kernel's version may name the owner of the machine.
    kernel = re.match(r"[\d.]+\d", platform.release())
    return (
        f"{len(os.sched_getaffinity(0))} cores of {_cpu_model()}, {platform.system()} "
        f"{kernel[0] if kernel else ''}, Python {platform.python_version()}, {database}"
    )


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def append(file: Path, result: Result) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(result)) + "\n")


def read(files: Iterable[Path]) -> list[Result]:
    return [
        _result(json.loads(line))
        for file in files
        if file.exists()
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def _result(value: dict[str, Any]) -> Result:
    return Result(**{**value, "run": Run(**value["run"]), "row": Row(**value["row"])})
