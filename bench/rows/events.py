"""Delivery events over 32 connections, as SNS posts them, against the way they were taken before.

Somebody unsubscribes meanwhile. And the same events from a queue of SQS, with eight receivers and one writer.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from statistics import median, quantiles

from bench import engine, letters
from bench.findings import Finding, ratio_finding
from bench.processes import BenchFailed, cpu_seconds, free_port, run_module, serving, wait_for_port
from bench.stage import Stage
from sendonce.domain.engine.tokens import sign_token
from sendonce.sandbox.acceptance import Acceptance
from sendonce.sandbox.events import events_of
from sendonce.sandbox.settings import SandboxSettings
from sendonce.sandbox.sns import SigningKey, Topic

POSTED = {"events-sqlite": "SQLite", "events-postgres": "PostgreSQL"}
PULLED = "events-sqs"
ROWS = (*POSTED, PULLED)
CONNECTIONS = 32
RECEIVERS = 8
OURS = ("sendonce", "serve", "--no-worker")
FORMER = ("bench.former_events",)

_SENT = """
UPDATE job_states SET state = 'sent', attempt = 1, accepted_attempt = 1, message_id = 'provider',
    claimed_at = {}, settled_at = {}
"""
Job = tuple[str, str]
"""Its id and its recipient."""


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    found: list[Finding] = []
    for row, store in POSTED.items():
        if row in wanted:
            found += _compare(stage, row, store)
    if PULLED in wanted:
        found.append(_compare_pulling(stage))
    return found


def _compare(stage: Stage, row: str, store: str) -> list[Finding]:
    rounds, count, theirs_count = stage.size(3, 2), stage.size(5_000, 2_000), stage.size(1_000, 500)
    folder = stage.folder / row
    desk = Desk(folder, _installation(stage, row, folder), rounds * (count + theirs_count))
    ours: list[Posted] = []
    theirs: list[Posted] = []
    for _ in range(rounds):
        ours.append(desk.post(count, OURS))
        theirs.append(desk.post(theirs_count, FORMER, clicks=False))
        stage.say(f"  {store}: {ours[-1].rate:,.0f}, the former way {theirs[-1].rate:,.0f} events/s")
    figures = {
        "CPU ms per event": median(posted.cpu_ms for posted in ours),
        "CPU ms per event, the former way": median(posted.cpu_ms for posted in theirs),
    }
    p99 = quantiles([waited for posted in ours for waited in posted.waited], n=100)[98] * 1000
    what, against = (
        f"events on {CONNECTIONS} connections, {store}",
        "a thread, a commit and SQLAlchemy for each",
    )
    rates = ([posted.rate for posted in ours], [posted.rate for posted in theirs])
    return [
        ratio_finding(row, what, against, *rates, bar=7.0, figures=figures),
        Finding(row, f"an unsubscription meanwhile, {store}", "p99", p99, "ms", 200.0, at_most=True),
    ]


def _compare_pulling(stage: Stage) -> Finding:
    rounds, count, theirs_count = stage.size(3, 2), stage.size(4_000, 1_500), stage.size(500, 300)
    folder = stage.folder / PULLED
    desk = Desk(folder, _installation(stage, PULLED, folder), rounds * (count + theirs_count))
    ours: list[Pulled] = []
    theirs: list[Pulled] = []
    for _ in range(rounds):
        ours.append(desk.pull(count, RECEIVERS))
        theirs.append(desk.pull(theirs_count, 1, former=True))
        stage.say(f"  SQS: {ours[-1].rate:,.0f}, the former way {theirs[-1].rate:,.0f} events/s")
    figures = {
        "CPU ms per event": median(pulled.cpu_ms for pulled in ours),
        "CPU ms per event, the former way": median(pulled.cpu_ms for pulled in theirs),
    }
    rates = ([pulled.rate for pulled in ours], [pulled.rate for pulled in theirs])
    what = f"events from SQS, {RECEIVERS} receivers and one writer, SQLite"
    return ratio_finding(PULLED, what, "one receiver, a commit for each", *rates, figures=figures)


@dataclass(frozen=True, slots=True)
class Pulled:
    """``cpu_ms`` is that of the whole process, its start included, per event."""

    rate: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Posted:
    """``cpu_ms`` is the service's own, per event; ``waited`` has the seconds of each unsubscription."""

    rate: float
    cpu_ms: float
    waited: list[float]


def _installation(stage: Stage, row: str, folder: Path) -> engine.Installation:
    settings = engine.ses_settings("http://127.0.0.1:9")
    if row != "events-postgres":
        return engine.on_sqlite(stage.folder, folder.name, settings)
    return engine.on_postgres(stage.folder, folder.name, settings, stage.postgres)


@dataclass
class Desk:
    """A ledger with letters that were sent, and a topic that tells what became of them."""

    folder: Path
    installation: engine.Installation
    letters: int

    def __post_init__(self) -> None:
        self.installation.make_ready(letters.write_people(self.folder / "people.csv", self.letters))
        self.installation.plan_mailout()
        moment = time.strftime("%Y-%m-%d %H:%M:%S.000000", time.gmtime())
        self.installation.execute(_SENT, moment, moment)
        jobs = self.installation.execute("SELECT CAST(id AS TEXT), recipient FROM message_jobs ORDER BY id")
        self._jobs: Iterator[Job] = iter(jobs)
        self._sandbox = SandboxSettings(self.folder, region="eu-central-1", bounce_share=0.02)
        self._key = SigningKey(self.folder, self._sandbox.region)
        self._topic = Topic(self._sandbox, self._key)
        self._headers = message_from_bytes(letters.one_message()).items()
        self._dice = random.Random(1)

    def post(self, events: int, program: Sequence[str], *, clicks: bool = True) -> Posted:
        """Clicks come by the clock, so a slow service would have more of them per event to answer."""
        bodies, tokens = self._bodies(events)
        port = free_port()
        environment = self.installation.environment() | {
            "PORT": str(port),
            "SNS_ALLOWED_TOPIC_ARNS": self._sandbox.topic_arn,
            "SNS_SIGNING_CERT_FILE": str(self._key.certificate_file),
            "LOG_LEVEL": "warning",
        }
        before = self._kept()
        with serving([sys.executable, "-m", *program], self.folder / "service.log", environment) as service:
            wait_for_port(port, service)
            began = cpu_seconds(service.pid)
            files = [str(bodies), str(tokens)] if clicks else [str(bodies)]
            told = run_module("bench.event_posts", str(port), str(CONNECTIONS), *files).json
            cpu = cpu_seconds(service.pid) - began
        verdicts = told["verdicts"]
        if set(verdicts) != {"applied", "duplicate_event"}:
            raise BenchFailed(f"every event should be applied; the answers were {verdicts}")
        if self._kept() - before != verdicts["applied"]:
            raise BenchFailed(f"{verdicts} were answered, {self._kept() - before} rows are new")
        taken = sum(verdicts.values())
        return Posted(taken / told["seconds"], cpu / taken * 1000, told["waited"])

    def pull(self, events: int, receivers: int, *, former: bool = False) -> Pulled:
        bodies, _ = self._bodies(events)
        port = free_port()
        environment = self.installation.environment() | {
            "SES_EVENTS_QUEUE_URL": f"http://127.0.0.1:{port}/123456789012/ses-events",
            "SNS_ALLOWED_TOPIC_ARNS": self._sandbox.topic_arn,
            "SNS_SIGNING_CERT_FILE": str(self._key.certificate_file),
            "LOG_LEVEL": "warning",
        }
        before, told = self._kept(), bodies.read_bytes().count(b"\n") + 1
        queue = [sys.executable, "-m", "bench.sqs_queue", str(port), str(bodies)]
        with serving(queue, self.folder / "queue.log") as service:
            wait_for_port(port, service)
            way = ["former"] if former else []
            done = run_module("bench.event_pulls", str(receivers), *way, environment=environment)
        copies = told // 21  # a twentieth comes twice
        if self._kept() - before != told - copies:
            raise BenchFailed(
                f"{told} events with {copies} copies came, {self._kept() - before} rows are new"
            )
        return Pulled(told / done.json["seconds"], done.cpu / told * 1000)

    def _kept(self) -> int:
        return int(self.installation.query("SELECT count(*) FROM delivery_events")[0])

    def _bodies(self, events: int) -> tuple[Path, Path]:
        """Send and what comes after it for each letter, a twentieth of them twice, in no order."""
        jobs = [next(self._jobs) for _ in range(events // 2)]
        bodies = [body for job in jobs for body in self._signed(*job)]
        bodies += self._dice.sample(bodies, len(bodies) // 20)
        self._dice.shuffle(bodies)
        bodies_file, tokens_file = self.folder / "bodies", self.folder / "tokens"
        bodies_file.write_bytes(b"\n".join(bodies))
        tokens_file.write_text("\n".join(sign_token(job, letters.SECRET.encode()) for job, _ in jobs[:200]))
        return bodies_file, tokens_file

    def _signed(self, job: str, recipient: str) -> Iterator[bytes]:
        now = time.time()
        letter = Acceptance(
            t=now,
            message_id=f"provider-{job}",
            recipients=(recipient,),
            sender=letters.SENDER,
            tags={"job": job, "attempt": "1"},
            configuration_set="bench",
            message_id_header=None,
            subject="News",
            size=10_000,
            headers=[(name, str(value)) for name, value in self._headers],
        )
        for event in events_of(letter, self._sandbox, seed=1):
            envelope = self._topic.notification(event, now)
            (signature,) = self._topic.signatures([envelope.signed_text])
            yield envelope.sealed(signature).replace(b"\n", b" ")
