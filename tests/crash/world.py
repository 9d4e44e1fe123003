"""The real program among real processes: a sandbox SES, the HTTP service, workers, and their database.

Nothing here reaches into the program. It is driven by its command line and its settings, and what it
did is read from the sandbox's log of acceptances and from its database.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from sendonce.adapters.sources.markdown import read_markdown
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from tests.nursery import run_program, shared_nursery, start_sandbox

ROOT = Path(__file__).parents[2]
CONNECTIONS = 4
QUIET = 3.0
PROGRAM = (sys.executable, "-m", "sendonce")
LETTER = "---\nsubject: Hello {{ name }}\n---\n\nDear {{ name }}, this letter comes once.\n"

BUSY = 3


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for something that takes ``seconds`` at most to become true, and thrice as long on a busy machine.
    A wait that is too long is a failure that says what for."""
    ends = time.monotonic() + BUSY * seconds
    while not (value := condition()):
        if time.monotonic() > ends:
            raise TimeoutError(f"Waited {BUSY * seconds:g} s in vain until {what}.")
        time.sleep(0.005)
    return value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Child(Protocol):
    """What is needed of ``subprocess.Popen``."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


class Running:
    """A child whose output goes to a file, and which is not left behind."""

    def __init__(self, child: Child, log: Path) -> None:
        self.log = log
        self._child = child

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    @property
    def was_killed(self) -> bool:
        return self._child.poll() == -signal.SIGKILL

    def signal(self, number: int) -> None:
        self._child.send_signal(number)

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)
        self._child.wait()

    def wait(self, seconds: float = 20.0) -> int:
        """The exit code of a child that ends by itself, and soon; on a busy machine a little later."""
        return self._child.wait(BUSY * seconds)

    def end(self, seconds: float = 20.0) -> int:
        """SIGTERM, and the exit code."""
        if self.running:
            self._child.send_signal(signal.SIGCONT)
            self._child.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def lines(self) -> list[dict[str, Any]]:
        """What it logged."""
        logged = []
        for line in self.log.read_bytes().splitlines():
            if line.startswith(b"{"):
                logged.append(json.loads(line))
        return logged


class Process(Running):
    """Such a child, started here."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, cwd: Path) -> None:
        with log.open("ab") as output:
            super().__init__(
                subprocess.Popen(command, env=dict(environment), cwd=cwd, stdout=output, stderr=output), log
            )


def quick_start(
    arguments: Sequence[str], environment: Mapping[str, str], log: Path, directory: Path
) -> Running:
    """``sendonce`` with these arguments, from the nursery."""
    return Running(shared_nursery().start(arguments, environment, directory, log, log), log)


class SandboxSes:
    def __init__(self, directory: Path, flags: Sequence[str]) -> None:
        self.directory = directory
        wishes = ["--dir", str(directory), "--port=0", "--daily-quota=-1", "--keep-messages=0", *flags]
        self._child, summary = start_sandbox(wishes)
        self.endpoint: str = summary["endpoint"]
        self.environment: dict[str, str] = summary["environment"]

    def ask(self, path: str, value: Any = None, method: str | None = None) -> Any:
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(f"{self.endpoint}/sandbox/{path}", data, method=method)
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def faults(self, **wishes: Any) -> None:
        self.ask("faults", wishes)

    def behave(self) -> None:
        """No faults any more, and what was kept back is told."""
        self.ask("faults", method="DELETE")
        self.ask("release_events", {}, "POST")

    def drained(self, seconds: float = 300.0) -> bool:
        try:
            self.ask(f"wait?events_pending=0&timeout={seconds}")
        except urllib.error.HTTPError:
            return False
        return True

    def acceptances(self) -> list[dict[str, Any]]:
        """The log, without the canaries: they are of no job. A line that is being written is for later."""
        log = self.directory / "accepted.jsonl"
        lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if row["job"]]

    def stop(self) -> None:
        self._child.send_signal(signal.SIGTERM)
        self._child.wait()


class Eye:
    """Looks into the database without going through the program."""

    def __init__(self, url: str) -> None:
        # One connection, kept: it is asked a hundred times a second, and a server may be restarted under it.
        self._engine = sa.create_engine(
            url, poolclass=sa.pool.QueuePool, isolation_level="AUTOCOMMIT", pool_pre_ping=True
        )

    def let_go(self) -> None:
        """Close the database until it is looked at again."""
        self._engine.dispose()

    def rows(self, query: str, **values: Any) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(sa.text(query), values))

    def number(self, query: str, **values: Any) -> int:
        return int(self.rows(query, **values)[0][0])

    def change(self, statement: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def count(self, state: str) -> int:
        return self.number("SELECT count(*) FROM message_jobs WHERE state = :state", state=state)

    def sending_of(self, pid: int) -> int:
        return self.number(
            "SELECT count(*) FROM message_jobs j JOIN workers w ON w.id = j.worker_id "
            "WHERE j.state = 'sending' AND w.pid = :pid",
            pid=pid,
        )

    def jobs(self) -> list[Any]:
        return self.rows("SELECT id, recipient, state, attempt, reason FROM message_jobs")


class World:
    """One database, one sandbox, one mailout; started and taken down together.

    ``disk`` is the folder of what the program keeps: its state directory, and its file if it has one.
    """

    def __init__(
        self,
        directory: Path,
        database_url: str,
        flags: Sequence[str] = (),
        **settings: str,
    ) -> None:
        self.directory = directory
        self.disk = directory / "disk"
        self.disk.mkdir(parents=True, exist_ok=True)
        self.database_url = database_url
        self.port = free_port()
        if not any(flag.startswith("--max-rate") for flag in flags):
            flags = ["--max-rate=1000000", *flags]
        self.sandbox = SandboxSes(directory / "sandbox", flags)
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ},
            **self.sandbox.environment,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "DATABASE_URL": database_url,
            "STATE_DIR": str(self.disk / "state"),
            "PORT": str(self.port),
            "APP_BASE_URL": f"http://127.0.0.1:{self.port}",
            "EXECUTOR_SHARED_SECRET": "crash-tests",
            "UNSUBSCRIBE_SECRET": "crash-tests",
            "MAIL_FOOTER_ADDRESS": "1 Example Street",
            "RATE_LIMIT_PER_SEC": "0",
            "CONCURRENCY": str(CONNECTIONS),
            "IN_DOUBT_QUIET_SECONDS": str(QUIET),
            "BURY_INTERVAL_SECONDS": "0.5",
            "RETRY_BASE_SECONDS": "0.2",
            "SES_TIMEOUT_SECONDS": "1",
            "MAX_TRIES": "1000",
            "LOG_FORMAT": "json",
            **settings,
        }
        self.eye = Eye(database_url)
        self.service: Running | None = None
        self.workers: list[Running] = []
        self.recipients: set[str] = set()
        self.mailout = ""
        self.parked: set[str] = set()
        """Letters in doubt that only a person could settle."""

    # -- the command line ----------------------------------------------------------------------

    def start(self, *arguments: str, program: Sequence[str] = (), **settings: str) -> Running:
        """A command that goes on; from the nursery, unless a ``program`` is named."""
        log = self.directory / f"{arguments[0]}-{len(self.workers)}.log"
        environment = {**self.environment, **settings}
        if program:
            return Process([*program, *arguments], environment, log, self.directory)
        return quick_start(arguments, environment, log, self.directory)

    def run(self, *arguments: str, expect: int = 0, **settings: str) -> str:
        """A command to its end: what it printed (its complaint, if it is expected to fail)."""
        done = run_program(arguments, {**self.environment, **settings}, self.directory, seconds=120)
        assert done.returncode == expect, f"{arguments} ended with {done.returncode}: …{done.stderr[-500:]}"
        return done.stdout if expect == 0 else done.stderr

    def ask(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    # -- the actors ----------------------------------------------------------------------------

    def prepare(self, recipients: int, *, send: bool = True) -> None:
        """A database with a mailout to so many people, started but not planned."""
        if not self.database_url.startswith("sqlite"):
            self.run("db", "upgrade")
        self.recipients = {f"person{number:06}@example.org" for number in range(recipients)}
        people = self.directory / "people.csv"
        rows = "".join(f"{address},Person\n" for address in sorted(self.recipients))
        people.write_text(f"email,name\n{rows}", encoding="utf-8")
        letter = self.directory / "letter.md"
        letter.write_text(LETTER, encoding="utf-8")
        self.run("subscribers", "import", str(people))
        self.mailout = self.ask("mailout", "create", str(letter))["id"]
        if send:
            self.run("mailout", "send", self.mailout, "--detach")

    def begin(self, recipients: int) -> None:
        """The same without the command line: a mailout that is started but not planned."""
        self.recipients = {f"person{number:06}@example.org" for number in range(recipients)}
        people = [NewSubscriber(parse_address(text), name="Person") for text in sorted(self.recipients)]
        with closing(open_store(self.database_url)) as store:
            store.subscribers.upsert(DEFAULT_TENANT, people)
            new = NewMailout("letter", "file", read_markdown(LETTER))
            self.mailout = store.mailouts.create(DEFAULT_TENANT, new).id
            assert store.mailouts.start(self.mailout)

    def plan(self, recipients: int) -> list[str]:
        """A mailout that is planned to the end: the ids of its jobs in their order."""
        self.begin(recipients)
        with closing(open_store(self.database_url)) as store:
            progress = store.mailouts.plan_chunk(self.mailout, "", recipients + 1)
            assert progress is not None
            assert progress.finished
        return [row.id for row in self.eye.rows("SELECT id FROM message_jobs ORDER BY id")]

    def serve(self) -> Running:
        """The service that takes events. It subscribes once; the provider knocks until somebody opens."""
        self.service = self.start("serve", "--no-worker")
        until(self.answers, 20, "the service answers")
        self.sandbox.ask("resume_events", {}, "POST")
        self.sandbox.ask("subscribe", {"url": f"http://127.0.0.1:{self.port}/ses-events"})
        until(lambda: self.sandbox.ask("stats")["events"]["confirmed"], 20, "the subscription is confirmed")
        return self.service

    def stop_serving(self) -> None:
        """Events wait at the provider, as in a queue, until somebody serves again."""
        self.sandbox.ask("pause_events", {}, "POST")
        if self.service is not None:
            self.service.end()

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def worker(self, *arguments: str, program: Sequence[str] = (), **settings: str) -> Running:
        started = self.start("worker", *arguments, program=program, **settings)
        self.workers.append(started)
        return started

    def registered(self, worker: Running) -> bool:
        assert worker.running, f"the worker ended: {worker.log.read_text()[-2000:]}"
        return self.eye.number("SELECT count(*) FROM workers WHERE pid = :pid", pid=worker.pid) > 0

    def finish(self, seconds: float = 90.0) -> None:
        """Let the sandbox behave, and one more worker bring everything to its end.

        What is parked by rule is counted, and settled as its operator would: by the provider's own log.
        """
        self.sandbox.behave()
        worker = self.worker()
        until(lambda: self.registered(worker), 30, "the last worker has begun")
        until(lambda: self._over(worker), seconds, "everything is over")
        while parked := self._parked():
            self._resolve(parked)
            until(lambda: self._over(worker), seconds, "what was parked is over")
        assert self.sandbox.drained()
        assert worker.end() == 0, worker.log.read_text()
        for each in self.workers:
            if each.running:
                each.end()

    def _over(self, worker: Running) -> bool:
        assert worker.running, f"the last worker died: {worker.log.read_text()[-2000:]}"
        time.sleep(0.1)
        states = self.states()  # of one moment: a doubt that is settled is scheduled again
        not_over = "SELECT count(*) FROM dispatches WHERE phase <> 'over' AND started_at IS NOT NULL"
        if states.keys() & {"scheduled", "sending"} or self.eye.number(not_over):
            return False
        doubts = states.get("in_doubt", 0)
        return not doubts or (self.sandbox.drained() and len(self._parked()) == doubts)

    def _parked(self) -> list[dict[str, Any]]:
        if not self.eye.count("in_doubt"):
            return []
        return [job for job in self.ask("jobs", "in-doubt") if job["parked"]]

    def _resolve(self, parked: list[dict[str, Any]]) -> None:
        self.parked |= {job["recipient"] for job in parked}
        accepted = {row["to"][0] for row in self.sandbox.acceptances()}
        for verdict, taken in (("sent", True), ("not-sent", False)):
            chosen = [job["id"] for job in parked if (job["recipient"] in accepted) == taken]
            if chosen:
                self.run("jobs", "resolve", verdict, *chosen)

    def states(self) -> dict[str, int]:
        rows = self.eye.rows("SELECT state, count(*) FROM message_jobs GROUP BY state")
        return {row[0]: row[1] for row in rows}

    def close(self) -> None:
        for process in [*self.workers, *([self.service] if self.service else [])]:
            if process.running:
                process.kill()
        self.sandbox.stop()
        self.eye.let_go()


@contextmanager
def opened(world: World) -> Iterator[World]:
    try:
        yield world
    finally:
        world.close()
