"""The world of the campaign demonstration: three clients, a bad list, a bad sender, and killed workers."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parseaddr
from itertools import count
from pathlib import Path
from typing import Any

from sendonce.domain.campaigns.campaigns import CampaignStatus
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.windows import DAYS
from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.campaigns.demo_judge import (
    ACCOUNT,
    CLOSES,
    DEMO,
    DISLIKED,
    OPENS,
    SPEED,
    Client,
    Letter,
    Terms,
)
from sendonce.entrypoints.cli.demo_stage import DemoStage, answers, free_port, wait_until
from sendonce.entrypoints.cli.output import say
from sendonce.errors import Unavailable

PATIENCE = 1200.0
_LOOK_EVERY = 0.5
_LETTER = """
[[step]]
subject = "Pumps for {{ company }}"
text = "Good day, {{ name }}!\\n\\nOur pumps are quiet. May we show you one?"

[[step]]
after = "1d"
subject = "Re: Pumps for {{ company }}"
text = "{{ name }}, did you have time to look at our offer?"

[[step]]
after = "1d"
subject = "Re: Pumps for {{ company }}"
text = "{{ name }}, shall we leave you in peace?"
"""

Worker = subprocess.Popen[bytes]
Killer = Callable[[Sequence[Worker]], Sequence[Worker]]
"""Looks at the workers every half second, and says which of them it has killed."""


class OneKill:
    """Kills the first worker once, at a moment that the seed chooses."""

    def __init__(self, seed: int) -> None:
        self._moment = random.Random(seed).uniform(5, 40)  # noqa: S311 (not a secret)
        self._began = time.monotonic()
        self._done = False

    def __call__(self, workers: Sequence[Worker]) -> Sequence[Worker]:
        if self._done or time.monotonic() - self._began < self._moment:
            return ()
        self._done = True
        workers[0].kill()
        workers[0].wait()
        say(f"Worker {workers[0].pid} was killed with SIGKILL after {self._moment:.0f} s; another goes on.")
        return workers[:1]


@dataclass
class CampaignWorld:
    """``sandbox_flags`` are for the stand-in of the provider."""

    stage: DemoStage
    seed: int
    database_url: str | None = None
    sandbox_flags: Sequence[str] = ()
    terms: Terms = DEMO
    campaigns: list[str] = field(default_factory=list)

    def start(self) -> None:
        port = free_port()
        arguments = ["--max-rate", "400", "--daily-quota", "-1", "--seed", str(self.seed)]
        arguments += ["--events-url", f"http://127.0.0.1:{port}/ses-events", "--disliked", DISLIKED]
        self._sandbox = self.stage.start_sandbox(*arguments, *self.sandbox_flags)
        directory = self.stage.directory
        self.stage.environment = {
            **self._sandbox["environment"],
            "DATABASE_URL": self.database_url or f"sqlite:///{directory / 'sendonce.db'}",
            "STATE_DIR": str(directory / "state"),
            "PORT": str(port),
            "APP_BASE_URL": f"http://127.0.0.1:{port}",
            "EXECUTOR_SHARED_SECRET": "demo",
            "UNSUBSCRIBE_SECRET": "demo",
            "MAIL_FOOTER_ADDRESS": "The Workshop, 1 Example Street, Riga",
            "RATE_LIMIT_PER_SEC": "300",
            "BURY_INTERVAL_SECONDS": "1",
            "IN_DOUBT_QUIET_SECONDS": "3",
            "APP_TIMEZONE": "UTC",
            "ACCOUNT_LIMITS": f"{ACCOUNT}={self.terms.account_limit}",
            "CLOCK_SPEED": str(SPEED),
        }
        self.stage.call("db", "upgrade")
        self.stage.start("service", "serve", "--no-worker")
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the HTTP service")
        self.campaigns = [self._start_a_campaign(client) for client in self.terms.clients]

    def _start_a_campaign(self, client: Client) -> str:
        name, directory = client.name, self.stage.directory
        terms = ("--weight", str(client.weight), "--daily", str(client.daily))
        self.stage.call("tenant", "add", name, *terms)
        basis = ("--jurisdiction", "RU", "--basis", "consent", "--note", "asked at the fair")
        self.stage.call("direction", "add", "--tenant", name, "pumps", *basis)
        for address, daily in client.senders.items():
            where = ("--transport", "ses", "--region", "us-east-1", "--configuration-set", "sandbox")
            whose = ("--tenant", name, "--direction", "pumps", "--daily", str(daily))
            self.stage.call("sender", "add", address, *whose, *where)
        (directory / f"{name}.csv").write_text("\n".join(_leads(client)), encoding="utf-8")
        self.stage.call("leads", "import", f"{name}.csv", "--tenant", name, "--direction", "pumps")
        head = f'name = "{name}, autumn"\ntenant = "{name}"\ndirection = "pumps"\n'
        days = ", ".join(f'"{day}"' for day in DAYS)
        window = f'[window]\ndays = [{days}]\nfrom = "{OPENS:%H:%M}"\nto = "{CLOSES:%H:%M}"\n'
        (directory / f"{name}.toml").write_text(head + window + _LETTER, encoding="utf-8")
        campaign = self.stage.call("campaign", "create", f"{name}.toml")
        self.stage.call("campaign", "start", campaign["id"])
        senders = count_of(len(client.senders), "sender", "senders")
        say(f"{name}: {client.leads} leads, {senders}, three steps.")
        return str(campaign["id"])

    def send(self, workers: int, killer: Killer) -> None:
        """To the end of all campaigns. Another worker takes the place of each that is killed."""
        numbers, began = count(), time.monotonic()
        at_work = [self._worker(next(numbers)) for _ in range(workers)]
        while self._goes_on():
            for dead in killer(at_work):
                at_work.remove(dead)
                at_work.append(self._worker(next(numbers)))
            if time.monotonic() - began > PATIENCE:
                raise Unavailable(f"The campaigns did not end in {PATIENCE:.0f} s: see the logs beside.")
            time.sleep(_LOOK_EVERY)

    def _worker(self, number: int) -> Worker:
        return self.stage.start(f"worker-{number}", "worker", "--name", f"worker-{number}")

    def _goes_on(self) -> bool:
        with self.stage.store() as store:
            found = [store.campaigns.find(each) for each in self.campaigns]
        return any(each.status == CampaignStatus.RUNNING for each in found)

    def views(self) -> list[dict[str, Any]]:
        """What the program says of its campaigns."""
        return [self.stage.call("campaign", "status", each) for each in self.campaigns]

    def accepted(self) -> Iterator[Letter]:
        """From the provider's own log; the ledger only tells which step of which campaign a job is."""
        with self.stage.store() as store:
            clock = CampaignClock(store.ledger.identity().since, SPEED)
            steps = {
                dispatch: (campaign, step)
                for campaign in self.campaigns
                for step, _, dispatch in store.campaigns.dispatches(campaign)
            }
            for line in map(json.loads, Path(self._sandbox["accepted_log"]).read_text().splitlines()):
                if line["job"]:
                    at = clock.at(datetime.fromtimestamp(line["t"], UTC))
                    campaign, step = steps[store.jobs.get(line["job"]).dispatch_id]
                    yield Letter(at, parseaddr(line["from"])[1], line["to"][0], campaign, step)


def _leads(client: Client) -> Iterator[str]:
    yield "email,name,company"
    for number in range(client.leads):
        dead = client.bouncing and number % client.bouncing == 0
        local = f"p{number}+bounce" if dead else f"p{number}"
        yield f"{local}@{client.name}-{number}.example.org,Person {number},Firm {number}"
