"""Where the letters go: Postfix's smtp-sink, our own SES sink, and a slow link in front of either.

The sinks count in processes of their own: what they say arrived is a number that no run can overwrite.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.processes import BenchFailed, free_port, serving, wait_for_port


@dataclass(frozen=True, slots=True)
class SmtpSink:
    """A running smtp-sink. ``-c`` makes it write a running counter, here into a file."""

    port: int
    counter: Path

    def received(self) -> int:
        """Messages since it was started."""
        with self.counter.open("rb") as file:
            file.seek(max(0, self.counter.stat().st_size - 200))
            found = re.findall(rb"mesg=(\d+)", file.read())
        return int(found[-1]) if found else 0


@contextmanager
def smtp_sink(folder: Path) -> Iterator[SmtpSink]:
    port = free_port()
    counter = folder / f"smtp-sink-{port}"
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with serving(["/usr/sbin/smtp-sink", "-c", *user, f"127.0.0.1:{port}", "1024"], counter) as process:
        wait_for_port(port, process)
        yield SmtpSink(port, counter)


@dataclass(frozen=True, slots=True)
class SesSink:
    """A running ``bench.ses_sink``."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _ask(self, what: str) -> Any:
        with urlopen(f"{self.url}/{what}", timeout=60) as answer:  # a loopback address of our own
            return json.load(answer)

    def tally(self) -> dict[str, int]:
        """``received`` requests, ``distinct`` letters among them, since the last ``forget``."""
        return dict(self._ask("tally"))

    def times(self) -> list[float]:
        """When each request arrived whole, by the sink's monotonic clock."""
        return list(self._ask("times"))

    def forget(self) -> None:
        self._ask("forget")


@contextmanager
def ses_sink(folder: Path, latency: float = 0.0) -> Iterator[SesSink]:
    port = free_port()
    command = [sys.executable, "-m", "bench.ses_sink", str(port), str(latency)]
    with serving(command, folder / f"ses-sink-{port}") as process:
        wait_for_port(port, process)
        yield SesSink(port)


@contextmanager
def slow_link(folder: Path, to_port: int, round_trip: float) -> Iterator[int]:
    """A port that forwards to ``to_port``; bytes take half of ``round_trip`` each way."""
    port = free_port()
    command = [sys.executable, "-m", "bench.slow_link", str(port), str(to_port), str(round_trip / 2)]
    with serving(command, folder / f"slow-link-{port}") as process:
        wait_for_port(port, process)
        yield port


class Count:
    """How many messages reached an smtp-sink since this was made; the sink tells them a moment later."""

    def __init__(self, sink: SmtpSink) -> None:
        self._sink = sink
        self._before = sink.received()

    def check(self, expected: int, who: str) -> None:
        ends = time.monotonic() + 5
        while (arrived := self._sink.received() - self._before) != expected:
            if time.monotonic() > ends or arrived > expected:
                raise BenchFailed(f"{who} should have sent {expected} letters; {arrived} reached the sink")
            time.sleep(0.01)


def version_of_sink() -> str:
    """The Debian package that smtp-sink and smtp-source come from."""
    query = ["dpkg-query", "-W", "-f", "${Version}", "postfix"]
    found = subprocess.run(query, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "of unknown version"
