"""Where demonstrations play: a folder, the sandbox, and our own program run as a user would run it."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

from sendonce.errors import BadInput, Unavailable

_PR_SET_PDEATHSIG = 1


def make_directory(directory: Path) -> None:
    """A new folder, or that of an earlier demonstration without its contents."""
    marker = directory / ".sendonce-demo"
    try:
        if directory.exists() and not marker.exists():
            raise BadInput(f"{directory} exists and is not a demo's: give another with --dir.")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        marker.touch()
    except OSError as exc:
        raise BadInput(
            f"The folder {directory} cannot be made: {exc.strerror}. Give another with --dir."
        ) from exc


@dataclass
class DemoStage:
    """Processes that it started end with ``stack``, at the latest."""

    directory: Path
    stack: ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_sandbox(self, *arguments: str) -> dict[str, Any]:
        """Its addresses, once it can be asked."""
        command = [sys.executable, "-m", "sendonce.sandbox", "--dir", str(self.directory / "sandbox")]
        sandbox = self.spawn("sandbox", [*command, "--port", "0", *arguments], {}, pipe=True)
        addresses: dict[str, Any] = json.loads(_first_line(sandbox))
        return {**addresses, "pid": sandbox.pid}

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A command of ours that runs beside; its output goes to a log."""
        return self.spawn(name, _sendonce(*arguments), self.environment)

    def spawn(
        self, name: str, command: list[str], environment: dict[str, str], *, pipe: bool = False
    ) -> subprocess.Popen[bytes]:
        log: IO[bytes] = self.stack.enter_context((self.directory / f"{name}.log").open("wb"))
        process = subprocess.Popen(  # noqa: S603 (our own program)
            command,
            cwd=self.directory,
            env={"PYTHONUTF8": "1", **environment},
            stdout=subprocess.PIPE if pipe else log,
            stderr=log,
            preexec_fn=_dying_with_us(),
        )
        self.stack.callback(_end, process)
        self.processes.append(process)
        return process

    def call(self, *arguments: str) -> Any:
        """Run a command as a user would, with --json, and read what it prints."""
        done = subprocess.run(  # noqa: S603 (our own program)
            [*_sendonce(*arguments), "--json"],
            cwd=self.directory,
            env={"PYTHONUTF8": "1", **self.environment},
            capture_output=True,
            check=False,
        )
        if done.returncode:
            # With --json some reasons are data: which lines of a list were rejected, and why.
            reason = (done.stderr + done.stdout).decode(errors="replace").strip()
            raise Unavailable(f"sendonce {' '.join(arguments)} failed: {reason or 'it gave no reason'}")
        return json.loads(done.stdout)

    def show(self, *arguments: str) -> None:
        """Run a command whose output is for the person who watches."""
        sys.stdout.flush()
        environment = {"PYTHONUTF8": "1", "COLUMNS": str(shutil.get_terminal_size().columns)}
        subprocess.run(  # noqa: S603 (our own program)
            _sendonce(*arguments), cwd=self.directory, env={**environment, **self.environment}, check=True
        )

    def store(self) -> Any:
        from sendonce.wiring.stores import open_store_at

        return closing(open_store_at(self.environment["DATABASE_URL"]))

    def end(self) -> None:
        """In good order, the last one first."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(15)


def typed(*arguments: str) -> str:
    """A command of ours as it can be typed in this shell, also where it is not on the PATH."""
    beside = Path(sys.executable).with_name("sendonce")
    if not beside.exists():
        return shlex.join(_sendonce(*arguments))
    on_path = shutil.which("sendonce")
    if on_path and Path(on_path).samefile(beside):
        return shlex.join(["sendonce", *arguments])
    below = beside.is_relative_to(Path.cwd())
    return shlex.join([str(beside.relative_to(Path.cwd()) if below else beside), *arguments])


def _sendonce(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sendonce", *arguments]


def _dying_with_us() -> Callable[[], None] | None:
    """On Linux, whoever kills a demonstration with SIGKILL leaves none of its processes behind."""
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise Unavailable("The sandbox did not start: see sandbox.log.")
    return line


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:  # noqa: S310 (loopback)
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], what: str, patience: float = 60.0) -> None:
    ends = time.monotonic() + patience
    while not condition():
        if time.monotonic() > ends:
            raise Unavailable(f"Waited {patience:.0f} s for {what} in vain: the logs beside tell why.")
        time.sleep(0.05)
