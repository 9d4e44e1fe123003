"""sendonce demo: the main job from end to end, with a crash in the middle, on loopback."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.request import urlopen

import typer

from sendonce.domain.mailouts.mailouts import MailoutId
from sendonce.entrypoints.cli.context import find_mailout
from sendonce.entrypoints.cli.demo_stage import (
    DemoStage,
    answers,
    free_port,
    make_directory,
    typed,
    wait_until,
)
from sendonce.entrypoints.cli.mailouts.progress import measuring
from sendonce.entrypoints.cli.output import print_table, say
from sendonce.errors import Unavailable

if TYPE_CHECKING:
    from sendonce.domain.engine.doubts import Weighed
    from sendonce.domain.engine.jobs import Books
    from sendonce.ports.store import Store

RATE = 120
SUPPRESSED = ("reader0007@example.org", "reader0700@example.org")
# One letter in a hundred meets some trouble at the provider; events come late and some come twice.
FAULTS = {
    "throttle": 0.004,
    "refuse": 0.002,
    "reset_after": 0.003,
    "truncate": 0.002,
    "error_after": 0.002,
    "events": {"duplicate": 0.05, "late": [0.0, 0.8], "shuffle": True},
}
PATIENCE = 50.0
QUIET_SECONDS = 3


def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where everything is put; must not exist yet or be a demo's.")
    ] = Path("sendonce-demo"),
    count: Annotated[int, typer.Option(min=50, max=100_000, help="How many subscribers.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="The dice of the sandbox and of the kill.")] = None,
) -> None:
    """Send a sample mailout through the sandbox: no account, no network, one worker killed on the way."""
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    make_directory(directory)
    with ExitStack() as stack:
        Demo(DemoStage(directory.resolve(), stack), count, seed).run()


@dataclass
class Demo:
    stage: DemoStage
    count: int
    seed: int

    @property
    def directory(self) -> Path:
        return self.stage.directory

    def run(self) -> None:
        began = time.monotonic()
        say(f"Seed {self.seed}. Everything is in {self.directory}")
        self._start_the_world()
        self._prepare_the_list()
        mailout_id = self._start_the_mailout()
        with self.stage.store() as store:
            self._send_and_crash(store, mailout_id)
            self._wait_for_evidence(store, mailout_id)
        self.stage.end()
        self._report(mailout_id, time.monotonic() - began)

    # -- the steps -----------------------------------------------------------------------------

    def _start_the_world(self) -> None:
        """The sandbox SES and the HTTP service that takes its events, each a process of its own."""
        from sendonce.sandbox.samples import LETTER, subscriber_lines

        self._letter = LETTER
        (self.directory / "subscribers.csv").write_text(
            "\n".join(subscriber_lines(self.count)), encoding="utf-8"
        )
        port = free_port()
        arguments = ["--max-rate", str(RATE + 20)]
        arguments += ["--events-url", f"http://127.0.0.1:{port}/ses-events", "--seed", str(self.seed)]
        arguments += ["--bounce-share", "0.02", "--complaint-share", "0.004", "--faults", json.dumps(FAULTS)]
        self._sandbox = self.stage.start_sandbox(*arguments)
        self.stage.environment = {
            **self._sandbox["environment"],
            "DATABASE_URL": f"sqlite:///{self.directory / 'sendonce.db'}",
            "STATE_DIR": str(self.directory / "state"),
            "PORT": str(port),
            "APP_BASE_URL": f"http://127.0.0.1:{port}",
            "EXECUTOR_SHARED_SECRET": "demo",
            "UNSUBSCRIBE_SECRET": "demo",
            "MAIL_FOOTER_ADDRESS": "The Workshop, 1 Example Street, Riga",
            "RATE_LIMIT_PER_SEC": str(RATE),
            "CONCURRENCY": "4",
            "RETRY_BASE_SECONDS": "1",
            "BURY_INTERVAL_SECONDS": "1",
            "IN_DOUBT_QUIET_SECONDS": str(QUIET_SECONDS),
        }
        say(f"Sandbox SES at {self._sandbox['endpoint']} (pid {self._sandbox['pid']})")
        service = self.stage.start("service", "serve", "--no-worker")
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the HTTP service")
        say(f"HTTP service at http://127.0.0.1:{port} (pid {service.pid})")

    def _prepare_the_list(self) -> None:
        counts = self.stage.call("subscribers", "import", str(self.directory / "subscribers.csv"))
        for address in SUPPRESSED:
            self.stage.call("suppression", "add", address, "--note", "asked us by phone")
        say(f"Imported {counts['inserted']} subscribers; {len(SUPPRESSED)} of them are suppressed.")

    def _start_the_mailout(self) -> MailoutId:
        mailout = self.stage.call("mailout", "create", str(self._letter))
        self.stage.call("mailout", "send", mailout["id"], "--detach")
        say(f"Mailout {mailout['id']}: «{mailout['subject']}»")
        with self.stage.store() as store:
            return find_mailout(store, mailout["id"]).id

    def _send_and_crash(self, store: Store, mailout_id: MailoutId) -> None:
        """One worker is killed at a random moment; another goes on."""
        worker = self._start_worker("worker-1")
        moment = int(self.count * random.Random(self.seed).uniform(0.2, 0.6))  # noqa: S311 (not a secret)
        say(f"Worker 1 sends (pid {worker.pid}) …")
        books = store.jobs.books(mailout_id)
        with measuring("Sending", self.count) as show:
            while books.open or not books.planned:
                show(books.planned - books.open, self.count)
                if (
                    worker.poll() is None
                    and books.planned - books.open >= moment
                    and len(self.stage.processes) == 3
                ):
                    worker.send_signal(signal.SIGKILL)
                    worker.wait()
                    say(f"Worker 1 (pid {worker.pid}) was killed with SIGKILL at {moment} of {self.count}.")
                    second = self._start_worker("worker-2")
                    say(f"Worker 2 goes on (pid {second.pid}) …")
                time.sleep(0.05)
                books = store.jobs.books(mailout_id)
            show(books.planned, self.count)

    def _wait_for_evidence(self, store: Store, mailout_id: MailoutId) -> None:
        """The provider's events settle what is in doubt."""
        say(f"{store.jobs.books(mailout_id).in_doubt} letters are in doubt; the provider's events decide …")

        def settled() -> bool:
            if store.jobs.books(mailout_id).open or self._stats()["events"]["pending"]:
                return False
            return all(weighed.parked for weighed, _ in self._doubts(store, mailout_id))

        wait_until(settled, "the events", PATIENCE)

    def _doubts(self, store: Store, mailout_id: MailoutId) -> list[tuple[Weighed, int]]:
        from sendonce.flows.engine.resolve_doubts import summarise_doubts

        return summarise_doubts(store, timedelta(seconds=QUIET_SECONDS), mailout_id)

    def _report(self, mailout_id: MailoutId, seconds: float) -> None:
        with self.stage.store() as store:
            books = store.jobs.books(mailout_id)
            parked = self._doubts(store, mailout_id)
        accepted = Counter(
            line["to"][0]
            for line in map(json.loads, Path(self._sandbox["accepted_log"]).read_text().splitlines())
            if line["job"]
        )
        duplicates = sum(times - 1 for times in accepted.values())
        print_table("", ["the books", ""], _rows(books, accepted, duplicates))
        for weighed, count in parked:
            say(f"{count} in doubt, {weighed.standing}: {weighed.why}")
        say(f"{seconds:.0f} s. Look at it:")
        say(f"  letters   {self.directory / 'sandbox' / 'messages'}")
        say(f"  accepted  {self._sandbox['accepted_log']}")
        ledger = f"DATABASE_URL={self.stage.environment['DATABASE_URL']}"
        say(f"  ledger    {ledger} {typed('mailout', 'status', mailout_id)}")
        say(f"  logs      {self.directory}/*.log")
        if duplicates or not books.balanced or len(accepted) != books.sent:
            raise Unavailable(f"The demo did not end as promised: see {self.directory}, seed {self.seed}.")

    def _start_worker(self, name: str) -> subprocess.Popen[bytes]:
        return self.stage.start(name, "worker", "--name", name)

    def _stats(self) -> dict[str, Any]:
        with urlopen(self._sandbox["control"] + "stats", timeout=5) as answer:  # noqa: S310 (loopback)
            stats: dict[str, Any] = json.load(answer)
            return stats


def _rows(books: Books, accepted: Counter[str], duplicates: int) -> list[tuple[str, object]]:
    parts = ("sent", "failed", "skipped", "dead", "in_doubt")
    total = " + ".join(str(getattr(books, part)) for part in parts)
    return [
        ("planned", books.planned),
        ("= sent + failed + skipped + dead + in doubt", total),
        ("accepted by the provider", sum(accepted.values())),
        ("duplicates", duplicates),
        ("delivered", books.delivered),
        ("bounced", books.bounced),
        ("complained", books.complained),
    ]
