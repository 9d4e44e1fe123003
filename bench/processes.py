"""Child processes: started, timed, and stopped by their own handle."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "peer_programs"
LONGEST = 1800.0
"""Seconds after which a child is taken to hang."""


class BenchFailed(Exception):
    """A number cannot be believed: a child failed, or the counts do not agree."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A child that ended well. CPU seconds and peak memory are the kernel's, not the child's word."""

    seconds: float
    cpu: float
    peak_mb: float
    out: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What children need and no setting of the caller's that could change what is measured."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
    return {name: os.environ[name] for name in kept if name in os.environ} | dict(extra or {})


@dataclass
class Peak:
    megabytes: float = 0.0


@contextmanager
def watching_memory(pid: int) -> Iterator[Peak]:
    """The most that a process has in memory. ``ru_maxrss`` would be that of whoever started it, if more."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            peak.megabytes = high_water(pid) or peak.megabytes

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def high_water(pid: int | str) -> float:
    """In megabytes; 0 for a process that is over."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


class Child:
    """A started process whose output goes to files, so that no pipe can fill up."""

    def __init__(self, args: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None) -> None:
        self.args = [str(arg) for arg in args]
        self._out: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed when the child is waited for)
        self._err: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            self.args, cwd=cwd, env=clean_environment(environment), stdout=self._out, stderr=self._err
        )
        self.pid = self._process.pid

    def wait(self) -> Finished:
        """Raises BenchFailed, with the end of what the child said, unless it exits with 0."""
        with _ended_in_time(self._process), watching_memory(self.pid) as peak:
            _, status, usage = os.wait4(self.pid, 0)
        seconds = time.monotonic() - self.began
        self._process.returncode = os.waitstatus_to_exitcode(status)
        with self._out as out_file, self._err as err_file:
            out_file.seek(0)
            err_file.seek(0)
            out, err = out_file.read(), err_file.read()
        command = " ".join(self.args)[:200]
        if seconds >= LONGEST:
            raise BenchFailed(f"{command} was killed after {LONGEST:g} s: {(err or out)[-2000:]}")
        if self._process.returncode != 0:
            raise BenchFailed(f"{command} ended with {self._process.returncode}: {(err or out)[-2000:]}")
        return Finished(seconds, usage.ru_utime + usage.ru_stime, peak.megabytes, out)


@contextmanager
def _ended_in_time(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a child that hangs, and one that is still there when we are stopped ourselves."""
    impatience = threading.Timer(LONGEST, process.kill)
    impatience.daemon = True  # or whoever stops us would wait for it
    impatience.start()
    try:
        yield
    except BaseException:
        process.kill()
        raise
    finally:
        impatience.cancel()


def run(
    args: Sequence[str | Path], *, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> Finished:
    return Child(args, cwd, environment).wait()


def run_module(name: str, *args: str, environment: Mapping[str, str] | None = None) -> Finished:
    """A module of this package in a process of its own, on our own interpreter."""
    return run([sys.executable, "-m", name, *args], environment=environment)


@contextmanager
def serving(
    args: Sequence[str | Path], out: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server for the time of the block; what it prints goes to the file ``out``."""
    command = [str(arg) for arg in args]
    with out.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=clean_environment(environment), stdout=file)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(10)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process that still runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise BenchFailed(f"nothing listens on port {port}; the server ended with {process.poll()}")
