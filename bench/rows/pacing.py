"""Pacing, judged from the sink's own log: how much of the allowed rate is used, and the worst second."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence

from bench import engine, letters
from bench.findings import Finding
from bench.processes import BenchFailed, Child
from bench.stage import Stage

ROWS = ("pacing",)
RATES = (6, 14, 100, 1000)
STALL, STALL_EVERY = 0.030, 0.200


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    seconds = stage.size(10, 4)
    found = []
    for rate in RATES[1::2] if stage.quick else RATES:
        found += _at(stage, rate, seconds, stalled=False)
    return found + _at(stage, 100, seconds, stalled=True)


def _at(stage: Stage, rate: int, seconds: int, *, stalled: bool) -> list[Finding]:
    count = rate * seconds
    name = f"pacing-{rate}{'-stalled' if stalled else ''}"
    people = letters.write_people(stage.folder / f"{name}.csv", count)
    settings = {**engine.ses_settings(stage.ses.url), "RATE_LIMIT_PER_SEC": str(rate)}
    installation = engine.on_sqlite(stage.folder, name, settings)
    installation.make_ready(people)
    installation.plan_mailout()
    stage.ses.forget()
    worker = installation.started("worker", "--until-idle")
    with _Stalling(worker, stalled):
        worker.wait()
    times = stage.ses.times()
    if len(times) != count:
        raise BenchFailed(f"{count} letters should have arrived, the sink has {len(times)}")
    used = (count - 1) / (times[-1] - times[0]) / rate
    worst = _worst_second(times)
    stage.say(f"  {rate}/s{', stalled' if stalled else ''}: {used:.4f} of it, worst second {worst}")
    how = f"pacing at {rate}/s" + (", the process stopped 30 ms of each 200" if stalled else "")
    return [
        Finding("pacing", how, "the allowed rate", used, "of it", 0.99),
        Finding(
            "pacing", f"{how}: worst second", "the allowed rate", worst / rate, "of it", 1.0, at_most=True
        ),
    ]


def _worst_second(times: list[float]) -> int:
    """The most arrivals in any window of one second, its end not included."""
    worst = start = 0
    for end, moment in enumerate(times):
        while times[start] <= moment - 1.0:
            start += 1
        worst = max(worst, end - start + 1)
    return worst


class _Stalling:
    """Stops and continues a process again and again, as a busy machine would."""

    def __init__(self, child: Child, wanted: bool) -> None:
        self._pid = child.pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run) if wanted else None

    def __enter__(self) -> None:
        if self._thread is not None:
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._over.wait(STALL_EVERY - STALL):
                os.kill(self._pid, signal.SIGSTOP)
                self._over.wait(STALL)
                os.kill(self._pid, signal.SIGCONT)
        except ProcessLookupError:
            return

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
