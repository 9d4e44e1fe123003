"""sendonce demo-campaign: three clients, a bad list, a bad sender and a killed worker, in a few minutes."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from sendonce.domain.campaigns.campaigns import CampaignStatus
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.windows import DAYS
from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.demo_stage import DemoStage, answers, free_port, make_directory, wait_until
from sendonce.entrypoints.cli.output import print_table, say
from sendonce.errors import Unavailable

SPEED = 4320
"""A day is twenty seconds."""
PATIENCE = 600.0
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
_TOLERANCE = 0.05
_NEARLY_ALL = 0.9
_BARS = " ▁▂▃▄▅▆▇█"
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


class Letter(NamedTuple):
    """One that the provider took, by the campaigns' clock."""

    at: datetime
    sender: str
    recipient: str
    job: str

    @property
    def tenant(self) -> str:
        return self.recipient.partition("@")[2].partition("-")[0]


@dataclass(frozen=True)
class Client:
    """``senders`` are addresses and their letters a day. One address in ``bouncing`` is dead."""

    name: str
    leads: int
    senders: dict[str, int]
    weight: int = 1
    daily: int = 0
    bouncing: int = 0


CLIENTS = (
    Client("alpha", 500, {"anna@alpha.example.com": 400, "oleg@post.alpha.example.com": 200}, weight=2),
    Client("beta", 400, {"boris@beta.example.com": 400}, bouncing=4),
    Client("gamma", 300, {"vera@gamma.example.com": 300, "spam@gamma-news.example.com": 200}, daily=250),
)
ACCOUNT, ACCOUNT_LIMIT = "ses/us-east-1", 600
"""All senders are in one account, whose letters a day are fewer than all of them might send."""
DISLIKED = "spam@gamma-news.example.com"


def demo_campaign(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where everything is put; must not exist yet or be a demo's.")
    ] = Path("sendonce-demo-campaign"),
    seed: Annotated[int | None, typer.Option(help="The dice of the sandbox and of the kill.")] = None,
    database_url: Annotated[str | None, typer.Option(help="Another database than an SQLite file.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=8, help="How many share the work.")] = 1,
) -> None:
    """Run three clients' campaigns through the sandbox, days in seconds: no account, no network."""
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    make_directory(directory)
    with ExitStack() as stack:
        CampaignDemo(DemoStage(directory.resolve(), stack), seed, database_url, workers).run()


@dataclass
class CampaignDemo:
    stage: DemoStage
    seed: int
    database_url: str | None
    workers: int

    def run(self) -> None:
        say(f"Seed {self.seed}. Everything is in {self.stage.directory}. A day takes {86400 / SPEED:.0f} s.")
        self._start_the_world()
        ids = [self._start_a_campaign(client) for client in CLIENTS]
        self._send(ids)
        self.stage.end()
        views = [self.stage.call("campaign", "status", each) for each in ids]
        self._judge(views)

    def _start_the_world(self) -> None:
        port = free_port()
        arguments = ["--max-rate", "400", "--daily-quota", "-1", "--seed", str(self.seed)]
        arguments += ["--events-url", f"http://127.0.0.1:{port}/ses-events", "--disliked", DISLIKED]
        self._sandbox = self.stage.start_sandbox(*arguments)
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
            "ACCOUNT_LIMITS": f"{ACCOUNT}={ACCOUNT_LIMIT}",
            "CLOCK_SPEED": str(SPEED),
        }
        self.stage.start("service", "serve", "--no-worker")
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the HTTP service")

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
        window = f'[window]\ndays = [{days}]\nfrom = "08:00"\nto = "20:00"\n'
        (directory / f"{name}.toml").write_text(head + window + _LETTER, encoding="utf-8")
        campaign = self.stage.call("campaign", "create", f"{name}.toml")
        self.stage.call("campaign", "start", campaign["id"])
        senders = count_of(len(client.senders), "sender", "senders")
        say(f"{name}: {client.leads} leads, {senders}, three steps.")
        return str(campaign["id"])

    def _send(self, ids: Sequence[str]) -> None:
        """The first worker is killed on the way; another takes its place."""
        first = [
            self.stage.start(f"worker-{n}", "worker", "--name", f"worker-{n}") for n in range(self.workers)
        ]
        moment = random.Random(self.seed).uniform(5, 60)  # noqa: S311 (not a secret)
        began, killed = time.monotonic(), False
        while True:
            if not killed and time.monotonic() - began > moment:
                first[0].kill()
                first[0].wait()
                say(f"Worker {first[0].pid} was killed with SIGKILL after {moment:.0f} s; another goes on.")
                self.stage.start("worker-next", "worker", "--name", "worker-next")
                killed = True
            if killed and not self._goes_on(ids):
                return
            if time.monotonic() - began > PATIENCE:
                raise Unavailable(f"The campaigns did not end in {PATIENCE:.0f} s: see the logs beside.")
            time.sleep(1)

    def _goes_on(self, ids: Sequence[str]) -> bool:
        with self.stage.store() as store:
            return any(store.campaigns.find(each).status == CampaignStatus.RUNNING for each in ids)

    # -- what came of it -----------------------------------------------------------------------------

    def _judge(self, views: Sequence[dict[str, Any]]) -> None:
        with self.stage.store() as store:
            clock = CampaignClock(store.ledger.identity().since, SPEED)
        letters = list(self._accepted(clock))
        self._show(views, letters)
        problems = list(_problems(views, letters))
        for problem in problems:
            say(f"NOT AS PROMISED: {problem}")
        if problems:
            raise Unavailable(f"The demo did not end as promised: see {self.stage.directory}.")
        say("As promised: nothing twice, no limit exceeded, the bad list paused, the bad sender blocked.")

    def _accepted(self, clock: CampaignClock) -> Iterator[Letter]:
        """From the provider's own log."""
        for line in map(json.loads, Path(self._sandbox["accepted_log"]).read_text().splitlines()):
            if line["job"]:
                at = clock.at(datetime.fromtimestamp(line["t"], UTC))
                yield Letter(at, parseaddr(line["from"])[1], line["to"][0], line["job"])

    def _show(self, views: Sequence[dict[str, Any]], letters: Sequence[Letter]) -> None:
        rows = [
            [
                each["tenant"],
                each["status"],
                each["counts"]["sent"],
                each["counts"]["bounced"],
                each["reason"],
            ]
            for each in views
        ]
        print_table("Campaigns", ["tenant", "status", "sent", "bounced", "reason"], rows)
        senders = [sender for each in views for sender in each["senders"]]
        columns = ["address", "state", "complaints", "reason"]
        print_table("Senders", columns, [[sender[name] for name in columns] for sender in senders])
        _chart(letters)


def _leads(client: Client) -> Iterator[str]:
    yield "email,name,company"
    for number in range(client.leads):
        dead = client.bouncing and number % client.bouncing == 0
        local = f"p{number}+bounce" if dead else f"p{number}"
        yield f"{local}@{client.name}-{number}.example.org,Person {number},Firm {number}"


def _chart(letters: Sequence[Letter]) -> None:
    """Letters of each tenant, an hour a column and a day a row."""
    start = min(letter.at for letter in letters).replace(hour=0, minute=0, second=0, microsecond=0)
    hours = Counter((letter.tenant, int((letter.at - start) / HOUR)) for letter in letters)
    most = max(hours.values())
    say(f"Letters by tenant and hour, from 0 to 24 o'clock; the highest column is {most}:")
    for client in CLIENTS:
        last = max((hour for name, hour in hours if name == client.name), default=0)
        for day in range(last // 24 + 1):
            counted = [hours[client.name, day * 24 + hour] for hour in range(24)]
            bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counted)
            say(f"  {client.name:6} day {day + 1} |{bars}| {sum(counted)}")


def _problems(views: Sequence[dict[str, Any]], letters: Sequence[Letter]) -> Iterator[str]:
    states = {each["tenant"]: each["status"] for each in views}
    if states != {"alpha": "finished", "beta": "paused", "gamma": "finished"}:
        yield f"the campaigns are {states}"
    blocked = [s["address"] for each in views for s in each["senders"] if s["state"] == "blocked"]
    if blocked != [DISLIKED]:
        yield f"blocked are {blocked}"
    twice = [job for job, times in Counter(letter.job for letter in letters).items() if times > 1]
    if twice:
        yield f"{len(twice)} letters arrived twice"
    days = Counter((letter.recipient, letter.at.date()) for letter in letters)
    if max(days.values()) > 1:
        yield "somebody got two letters on a day"
    yield from _exceeded(letters)
    yield from _unfair(letters)


def _exceeded(letters: Sequence[Letter]) -> Iterator[str]:
    """In any 24 hours, wherever they begin."""
    limits = {address: daily for client in CLIENTS for address, daily in client.senders.items()}
    limits |= {client.name: client.daily for client in CLIENTS if client.daily} | {ACCOUNT: ACCOUNT_LIMIT}
    for name, daily in limits.items():
        most = _most_in_a_day([each.at for each in letters if name in (each.sender, each.tenant, ACCOUNT)])
        if most > daily:
            yield f"{name} sent {most} letters in a day, and may send {daily}"


def _most_in_a_day(times: Iterable[datetime]) -> int:
    most, window = 0, deque[datetime]()
    for at in sorted(times):
        window.append(at)
        while window[0] <= at - DAY:
            window.popleft()
        most = max(most, len(window))
    return most


def _unfair(letters: Sequence[Letter]) -> Iterator[str]:
    """Shares of senders in what their client sent, and of clients in the first day that fills the account."""
    by_sender = Counter(letter.sender for letter in letters if letter.tenant == "alpha")
    yield from _off("anna", by_sender["anna@alpha.example.com"], by_sender.total(), 2 / 3)
    full_day = Counter(letter.tenant for letter in _first_full_day(letters))
    if full_day:
        yield from _off("alpha", full_day["alpha"], full_day["alpha"] + full_day["gamma"], 2 / 3)
    else:
        say("This machine was too slow to use up the account's letters on any day: no client had to wait.")


def _first_full_day(letters: Sequence[Letter]) -> Sequence[Letter]:
    ordered, begin = sorted(letters), 0
    for end, letter in enumerate(ordered):
        while ordered[begin].at <= letter.at - DAY:
            begin += 1
        if end - begin >= ACCOUNT_LIMIT * _NEARLY_ALL:
            return ordered[begin : end + 1]
    return []


def _off(name: str, count: int, total: int, wanted: float) -> Iterator[str]:
    say(f"{name}'s share: {count} of {total} letters, {count / total:.1%}; by weight {wanted:.1%}.")
    if abs(count / total - wanted) > _TOLERANCE:
        yield f"{name}'s share is {count / total:.1%}, and was to be {wanted:.1%}"
