"""Quick starts: the program is imported once, and each command of it runs in a fork of that process.

Most of the processor time of a start is saved. What runs in the fork is the same command line with its own
arguments, settings, directory and output, to the end of the interpreter. What the loader of the operating
system or Python itself reads from the environment (LD_PRELOAD, PYTHON…) needs a process of its own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
DRIVERS = ("psycopg", "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite", "uvloop")
# Imported by the program or by its libraries when they are first used.
USED_LATER = (
    "_strptime",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "prometheus_client",
    "rich.table",
    "structlog.stdlib",
    "typer._adapters",
)
# Modules that do something as soon as they are imported.
NOT_COMMANDS = (".__main__", ".vercel", ".env")


class Nursery:
    """Starts commands, for any number of threads. Whoever it has started ends with it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery"],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lock = threading.Lock()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        output: Path,
        errors: Path,
        *,
        module: str = "sendonce",
    ) -> Forked:
        wish = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory),
            "output": str(output),
            "errors": str(errors),
        }
        return Forked(self, self.ask(wish))

    def ask(self, question: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._lock:
            self._server.stdin.write(json.dumps(question).encode() + b"\n")
            self._server.stdin.flush()
            return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


class Forked:
    """A child of the nursery, with the part of ``subprocess.Popen`` that is used here.

    It is a zombie until ``poll`` has told its exit code, so its number is nobody else's until then.
    """

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._nursery.ask(self.pid)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            watch = os.pidfd_open(self.pid)
            try:
                ended, _, _ = select.select([watch], [], [], timeout)
            finally:
                os.close(watch)
            if not ended:
                raise TimeoutError(f"Process {self.pid} did not end within {timeout} s.")
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self._code is None:
            os.kill(self.pid, number)


@cache
def shared_nursery() -> Nursery:
    """The one that the tests of this process share."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


def run_program(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, *, seconds: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """``python -m sendonce`` to its end, as ``subprocess.run`` tells of it."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        child = shared_nursery().start(arguments, environment, directory, output, errors)
        try:
            code = child.wait(seconds)
        except TimeoutError:
            child.send_signal(signal.SIGKILL)
            child.wait()
            raise
        return subprocess.CompletedProcess(
            ["sendonce", *arguments], code, output.read_text("utf-8"), errors.read_text("utf-8")
        )


def start_sandbox(arguments: Sequence[str]) -> tuple[Forked, Any]:
    """``python -m sendonce.sandbox``: the process, and the addresses that it tells first."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        told.touch()
        child = shared_nursery().start(
            arguments, os.environ, Path.cwd(), told, told, module="sendonce.sandbox"
        )
        while not (line := told.read_text("utf-8")).endswith("\n"):
            assert child.poll() is None, f"the sandbox ended: {told.read_text('utf-8')}"
            time.sleep(0.003)
        return child, json.loads(line)


# -- the server ------------------------------------------------------------------------------------


def import_the_program() -> None:
    """All of it, with what it imports when it runs, so that the forks need not."""
    import sendonce

    names = [module.name for module in pkgutil.walk_packages(sendonce.__path__, "sendonce.")]
    for name in [*names, *DRIVERS, *USED_LATER]:
        if not name.endswith(NOT_COMMANDS):
            importlib.import_module(name)


def serve() -> dict[str, Any] | None:
    """Start what is asked for until the input ends. In a fork: what it is to run."""
    living: set[int] = set()
    for line in sys.stdin.buffer:
        question = json.loads(line)
        if isinstance(question, int):
            answer = exit_code(question)
            if answer is not None:
                living.discard(question)
        else:
            answer = os.fork()
            if answer == 0:
                return dict(question)
            living.add(answer)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    return None


def exit_code(pid: int) -> int | None:
    reaped, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if reaped else None


def run(wish: dict[str, Any]) -> int:
    """Be the program, with its arguments, settings, directory and output: its exit code."""
    appending = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, wish["output"], appending),
        (2, wish["errors"], appending),
    ):
        file = os.open(name, flags, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.chdir(wish["directory"])
    os.environ.clear()
    os.environ.update(wish["environment"])
    sys.argv = [wish["module"], *wish["arguments"]]
    try:
        runpy.run_module(wish["module"], run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        return int(exc.code or 0)
    return 0


def end_at_once(code: int) -> NoReturn:
    """What Python does at its end, but for taking every module apart, which copies the nursery's memory."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    import_the_program()
    gc.freeze()
    if (wish := serve()) is not None:
        end_at_once(run(wish))
