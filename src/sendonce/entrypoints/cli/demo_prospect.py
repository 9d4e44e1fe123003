"""sendonce demo-prospect: from searches to letters that arrived, on loopback."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.funnel import Funnel
from sendonce.domain.prospecting.searches import OperationState
from sendonce.entrypoints.cli.demo_stage import DemoStage, free_port, make_directory, typed, wait_until
from sendonce.entrypoints.cli.output import say
from sendonce.errors import Unavailable

SEARCHES = (
    *("производство насосов", "кабельная продукция", "промышленные котлы", "станки для металлообработки"),
    *("фильтры для воды", "краны и тали", "упаковка из картона", "мебель для офисов"),
)
OFFER = """\
name = "Подшипники со склада"
text = "Поставляем подшипники для насосов и двигателей со склада в Риге за три дня."
benefits = ["Отгрузка в день заказа", "Замена по гарантии без переписки"]
"""
# Letters wait for a slot in working hours, a day's limit apart. Here a day has 24 hours and many letters.
AT_ANY_HOUR = {"LETTERS_HOURS": "00:00-23:59", "LETTERS_DAYS": "1-7", "DAILY_SEND_LIMIT": "1000000"}
PATIENCE = 90.0
_ENDED = (OperationState.DONE, OperationState.FAILED, OperationState.EXPIRED, OperationState.UNKNOWN)


def demo_prospect(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where everything is put; must not exist yet or be a demo's.")
    ] = Path("sendonce-demo-prospect"),
    companies: Annotated[int, typer.Option(min=5, max=300, help="How many companies have a site.")] = 60,
    seed: Annotated[int, typer.Option(help="Other companies, and other tricks of the model.")] = 1,
) -> None:
    """Search, visit sites, merge duplicates, write and send letters in the sandbox: no account, no network.

    With DATABASE_URL of a PostgreSQL server in the environment it works there, in a schema of its own.
    """
    make_directory(directory)
    with ExitStack() as stack:
        ProspectDemo(DemoStage(directory.resolve(), stack), companies, seed).run()


@dataclass
class ProspectDemo:
    stage: DemoStage
    companies: int
    seed: int

    def run(self) -> None:
        began = time.monotonic()
        say(f"Seed {self.seed}. Everything is in {self.stage.directory}")
        self._start_the_world()
        self._say_what_and_to_whom()
        self._search()
        self._visit_and_write()
        self._review()
        self._send()
        self.stage.show("prospect", "status")
        self._judge()
        say(f"{time.monotonic() - began:.0f} s. Look at it:")
        self._say_where()

    # -- the steps -----------------------------------------------------------------------------

    def _start_the_world(self) -> None:
        """The sandbox plays the search provider, the web, the language model and the mail provider."""
        sandbox = self.stage.start_sandbox(
            *("--companies", str(self.companies), "--seed", str(self.seed)),
            *("--max-rate", "200", "--llm-misbehaves", "0.2"),
        )
        self._sandbox = sandbox
        port = free_port()
        self.stage.environment = {
            **sandbox["environment"],
            **self._database(),
            **AT_ANY_HOUR,
            "STATE_DIR": str(self.stage.directory / "state"),
            "APP_BASE_URL": f"http://127.0.0.1:{port}",
            "EXECUTOR_SHARED_SECRET": "demo",
            "UNSUBSCRIBE_SECRET": "demo",
            "MAIL_FOOTER_ADDRESS": "The Workshop, 1 Example Street, Riga",
            "RATE_LIMIT_PER_SEC": "100",
            "CRAWL_PAUSE_SECONDS": "0",
            "CRAWL_VISIT_SECONDS": "5",
            "PROSPECT_INTERVAL_SECONDS": "0.5",
        }
        self.stage.call("db", "upgrade")
        say(f"The sandbox at {sandbox['endpoint']} plays Yandex, {self.companies} sites, a model and SES.")

    def _database(self) -> dict[str, str]:
        """A file, or a schema of its own on the PostgreSQL server that the environment names."""
        from sendonce.settings import load_settings

        # Not what .env says: that is where real work is.
        url = load_settings(dotenv=None).database_url
        if url.startswith("postgres"):
            return {"DATABASE_URL": url, "DATABASE_SCHEMA": f"sendonce_demo_{secrets.token_hex(4)}"}
        return {"DATABASE_URL": f"sqlite:///{self.stage.directory / 'sendonce.db'}"}

    def _say_what_and_to_whom(self) -> None:
        offer = self.stage.directory / "offer.toml"
        offer.write_text(OFFER, encoding="utf-8")
        law = ("--jurisdiction", "US", "--basis", "legitimate-interest")
        note = ("--note", "Spare parts, offered to makers of machines")
        self.stage.call("direction", "add", "bearings", *law, *note, "--offer", str(offer))

    def _search(self) -> None:
        words = self.stage.directory / "searches.txt"
        words.write_text("\n".join(SEARCHES), encoding="utf-8")
        self.stage.call("search", "add", "--file", str(words), "--region", "Казань", "--pages", "2")
        scheduler = self.stage.start("scheduler", "prospect", "run", "--loop", "--role", "scheduler")
        say(f"{len(SEARCHES)} searches, two pages of each, are submitted and their answers fetched …")
        wait_until(self._answers_are_read, "the answers of the searches", PATIENCE)
        scheduler.terminate()
        scheduler.wait(15)
        funnel = self._funnel()
        found = sum(funnel.outreach.companies.values())
        say(f"{funnel.searches.results} results on {found} sites that may be a company's.")

    def _answers_are_read(self) -> bool:
        operations = self._funnel().searches.operations
        return all(state in _ENDED for state, count in operations.items() if count)

    def _visit_and_write(self) -> None:
        say("The sites are visited, duplicates merged, letters written …")
        for line in self.stage.call("prospect", "run", "--until-idle", "--role", "worker"):
            if line["taken"]:
                say(f"  {line['step']}: {line['done']} of {line['taken']}  {line['note']}")

    def _review(self) -> None:
        """A person would read each; here the first is shown and all that wait are approved."""
        waiting = self.stage.call("letters", "list", "--status", "waiting", "--limit", "1000")["letters"]
        if waiting:
            say(f"\nThe first of {len(waiting)} letters that wait for review:\n")
            say(f"  {waiting[0]['subject']}\n")
            say("\n".join(f"  {line}" for line in waiting[0]["text"].splitlines()))
        self.stage.call("letters", "approve", "--all")

    def _send(self) -> None:
        planned = self.stage.call("prospect", "run", "--only", "plan")
        say(f"\n{sum(line['done'] for line in planned)} letters are planned and leave …")
        self.stage.start("worker", "worker")
        wait_until(self._letters_have_left, "the letters", PATIENCE)
        self.stage.end()

    def _letters_have_left(self) -> bool:
        jobs = self._funnel().outreach.jobs
        return not jobs.get(JobState.SCHEDULED) and not jobs.get(JobState.SENDING)

    def _funnel(self) -> Funnel:
        """What 'prospect status' shows, without starting a program for it every time."""
        from sendonce.flows.prospecting.read_funnel import read_funnel
        from sendonce.settings import load_settings
        from sendonce.wiring.pipeline import search_rules
        from sendonce.wiring.stores import open_store

        settings = load_settings(self.stage.environment, dotenv=None)
        with closing(open_store(settings)) as store:
            return read_funnel(store, DEFAULT_TENANT, search_rules(settings))

    # -- what came of it -----------------------------------------------------------------------

    def _judge(self) -> None:
        """By the sandbox's own books: nobody got two letters, and nobody got one who is no company's."""
        lines = Path(self._sandbox["accepted_log"]).read_text(encoding="utf-8").splitlines()
        recipients = Counter(line["to"][0] for line in map(json.loads, lines))
        truth = json.loads((self.stage.directory / "sandbox" / "companies.json").read_text(encoding="utf-8"))
        known = {email for company in truth.values() for email in company["emails"]}
        twice = [address for address, times in recipients.items() if times > 1]
        strangers = sorted(set(recipients) - known)
        say(
            f"{len(recipients)} addresses got a letter, {len(twice)} got two, {len(strangers)} are strangers."
        )
        if not recipients or twice or strangers:
            raise Unavailable(
                f"The demo did not end as promised: see {self.stage.directory}, seed {self.seed}."
            )

    def _say_where(self) -> None:
        # A server's address may hold a password, and whoever set it has it.
        name = "DATABASE_SCHEMA" if "DATABASE_SCHEMA" in self.stage.environment else "DATABASE_URL"
        say(f"  companies  {name}={self.stage.environment[name]} {typed('companies', 'list')}")
        say(f"  letters    {self.stage.directory / 'sandbox' / 'messages'}")
        say(f"  logs       {self.stage.directory}/*.log")
