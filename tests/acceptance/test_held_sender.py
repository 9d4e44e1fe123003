"""A provider that refuses the sender, met as a new user meets it: nobody's letter is burnt.

Real processes: the sandbox plays an SES account that is in the SES sandbox, does not know the From address,
or has no such configuration set.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.senders import OUTAGE, HoldOrder
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.flows.mailouts.start_mailout import page_mailout
from sendonce.sandbox.notion.seeds import Seeds
from tests.crash.world import SandboxSes, quick_start, until
from tests.nursery import run_program

PEOPLE = 30


class Desk:
    """A user's folder, and the command line in it."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.environment = {
            "PYTHONUTF8": "1",
            "DATABASE_URL": database_url,
            "STATE_DIR": str(folder / "state"),
            "APP_BASE_URL": "http://127.0.0.1:9",
            "UNSUBSCRIBE_SECRET": "unsubscribe" * 4,
            "MAIL_FOOTER_ADDRESS": "Riga, 1 Example Street",
            "TEST_EMAILS": "tester@example.org",
            "RATE_LIMIT_PER_SEC": "0",
            "CONCURRENCY": "4",
        }

    def run(self, *arguments: str, code: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
        done = run_program(arguments, {**self.environment, **settings}, self.folder)
        assert done.returncode == code, done.stderr + done.stdout
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments: str, code: int = 0, **settings: str) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code, **settings).stdout)

    def prepare(self) -> str:
        """A list and a mailout to it."""
        with closing(open_store(self.environment["DATABASE_URL"])) as store:
            people = [NewSubscriber(parse_address(f"user{n:03}@example.org")) for n in range(PEOPLE)]
            store.subscribers.upsert(DEFAULT_TENANT, people)
            letter = Letter("News", "", "<p>Hello!</p>", "Hello!")
            return store.mailouts.create(DEFAULT_TENANT, NewMailout("news", "file", letter)).id


@contextmanager
def world(desk: Desk, *flags: str) -> Iterator[SandboxSes]:
    """A provider; another one at the same desk has the same log."""
    sandbox = SandboxSes(desk.folder / "sandbox", ["--max-rate=1000", *flags])
    desk.environment.update(sandbox.environment)
    try:
        yield sandbox
    finally:
        sandbox.stop()


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str) -> Desk:
    return Desk(tmp_path, sqlite_url)


TROUBLES = {
    "the account is in the SES sandbox": (["--no-production-access"], {}, "MessageRejected", "not verified"),
    "the From address is not verified": (["--identities=example.net"], {}, "MessageRejected", "not verified"),
    "the configuration set is mistyped": ([], {"SES_CONFIGURATION_SET": "typo"}, "NotFoundException", "typo"),
    "the keys are wrong": (
        [],
        {"AWS_SECRET_ACCESS_KEY": "wrong"},
        "InvalidSignatureException",
        "AWS credentials",
    ),
}


PAGE = {
    "parent": Seeds().letters,
    "properties": {"Название": "Новости", "Статус": "Готово к отправке"},
    "blocks": [{"type": "paragraph", "paragraph": {"rich_text": [{"text": {"content": "Здравствуйте!"}}]}}],
}


@contextmanager
def at_work(desk: Desk, program: str, **settings: str) -> Iterator[None]:
    log = desk.folder / f"{program}.log"
    process = quick_start([program], {**desk.environment, **settings}, log, desk.folder)
    try:
        yield
    finally:
        process.end()


def seen(desk: Desk, mailout_id: str, wanted: Callable[[Any], Any]) -> Any:
    """The status of a mailout, as soon as it is as wanted."""

    def look() -> Any:
        shown = desk.json("mailout", "status", mailout_id)
        return shown if wanted(shown) else None

    return until(look, 60, "the mailout's status changes")


def on_page(sandbox: SandboxSes, page: str) -> dict[str, Any]:
    properties: dict[str, Any] = sandbox.ask(f"notion/pages/{page}")["properties"]
    return properties


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_refused_sender_burns_no_letter(desk: Desk, trouble: str) -> None:
    """A start is refused with the reason. Forced, it stops at the first refusals and says why; after the
    cause is mended and the hold released, everybody gets the letter once."""
    flags, settings, code, words = TROUBLES[trouble]
    mailout_id = desk.prepare()
    with world(desk, *flags) as sandbox:
        told = desk.run("mailout", "send", mailout_id, code=3, **settings).stderr
        assert "The provider would refuse every letter" in told
        assert "--force" in told
        done = desk.run("mailout", "send", mailout_id, "--force", code=3, **settings)
        assert words in done.stderr
        assert "sendonce sender release" in done.stderr
        assert words not in done.stdout, "the reason is said once"
        shown = desk.json("mailout", "status", mailout_id)
        assert shown["counts"]["scheduled"] == PEOPLE == shown["counts"]["planned"]
        assert shown["standstill"]["cause"] == "held"
        assert words in shown["standstill"]["detail"]
        assert shown["standstill"]["next_try_at"] is not None
        (sender,) = desk.json("sender", "list")
        assert (sender["state"], sender["code"], sender["tries"]) == ("held", code, 1)
        assert sender["address"] == "news@example.com"
        assert sandbox.acceptances() == []
    with world(desk) as sandbox:
        desk.run("sender", "release")
        desk.run("mailout", "send", mailout_id)
        assert len({row["to"][0] for row in sandbox.acceptances()}) == len(sandbox.acceptances()) == PEOPLE


def test_a_worker_tells_that_sending_is_switched_off(desk: Desk) -> None:
    """Nothing is tried and nothing is held: the worker rests, and the mailout's status says why."""
    mailout_id = desk.prepare()
    with world(desk, "--no-sending-enabled"):
        desk.run("mailout", "send", mailout_id, "--detach", "--force")
        with at_work(desk, "worker"):
            paused = {"cause": "sending_paused"}
            shown = seen(desk, mailout_id, lambda it: (it["standstill"] or {}).items() >= paused.items())
        assert (shown["workers"], shown["counts"]["scheduled"]) == (1, PEOPLE)
        assert "switched sending off" in shown["standstill"]["detail"]


@pytest.mark.parametrize("program", ["worker", "scheduler"])
def test_a_time_that_comes_while_the_provider_refuses_starts_nothing(desk: Desk, program: str) -> None:
    """The mailout is ready again and says why; no letter met the refusal."""
    mailout_id = desk.prepare()
    with closing(open_store(desk.environment["DATABASE_URL"])) as store:
        assert store.mailouts.schedule(mailout_id, store.ledger.now())
    with world(desk, "--no-production-access"), at_work(desk, program):
        shown = seen(desk, mailout_id, lambda it: not it["scheduled"])
    assert (shown["status"], shown["counts"]["planned"]) == ("ready", 0)
    assert "in the SES sandbox" in shown["reason"]


def test_a_page_that_the_provider_would_refuse_is_not_started(desk: Desk) -> None:
    """Its author finds the reason on the page, in place of a list that is burnt."""
    desk.prepare()
    with world(desk, "--no-production-access") as sandbox:
        page = sandbox.ask("notion/pages", PAGE)["id"]
        with closing(open_store(desk.environment["DATABASE_URL"])) as store:
            mailout_id = page_mailout(store, DEFAULT_TENANT, "notion", page).id
            assert store.mailouts.start(mailout_id)
        with at_work(desk, "worker"):
            shown = seen(desk, mailout_id, lambda it: it["reason"])
            until(lambda: on_page(sandbox, page)["Причина"], 60, "the page tells the reason")
    assert (shown["status"], shown["counts"]["planned"]) == ("ready", 0)
    assert "in the SES sandbox" in shown["reason"]
    assert sandbox.acceptances() == []


def test_a_run_of_refusals_stops_and_its_letters_get_another_life(desk: Desk) -> None:
    """Letters that failed before the sender was held are scheduled again by one command."""
    mailout_id = desk.prepare()
    with world(desk) as sandbox:
        sandbox.faults(refuse=1.0)
        told = desk.run("mailout", "send", mailout_id, code=3).stderr
        again = ["jobs", "retry", "--failed", "--mailout", mailout_id, "--code", "MessageRejected"]
        assert " ".join(["sendonce", *again]) in told
        failed = desk.json("mailout", "status", mailout_id)["counts"]["failed"]
        assert 20 <= failed < PEOPLE
        sandbox.behave()
        said = desk.run(*again).stdout
        assert said == f"Scheduled {failed} letters again ({failed} failed with MessageRejected).\n"
        desk.run("sender", "release")
        desk.run("mailout", "send", mailout_id)
        assert len({row["to"][0] for row in sandbox.acceptances()}) == len(sandbox.acceptances()) == PEOPLE


def test_whoever_sends_waits_for_the_end_of_an_outage(desk: Desk) -> None:
    """Nobody has to mend anything here: the provider may be back at any moment."""
    mailout_id = desk.prepare()
    with world(desk) as sandbox:
        (sender,) = desk.json("sender", "list")
        with closing(open_store(desk.environment["DATABASE_URL"])) as store:
            store.sender_holds.hold(sender["key"], HoldOrder(OUTAGE, "cannot reach it", seconds=12.0))
        desk.run("mailout", "send", mailout_id)
        assert len(sandbox.acceptances()) == PEOPLE
        assert desk.json("sender", "list")[0]["state"] == "ok"


def test_a_hold_ends_by_a_persons_word_alone(desk: Desk) -> None:
    """A worker that is to leave when idle does not wait for a held sender; resuming a mailout releases
    nobody, and only a held sender is released."""
    mailout_id = desk.prepare()
    with world(desk, "--no-production-access"):
        assert "is not held" in desk.run("sender", "release", code=3).stderr
        desk.run("mailout", "send", mailout_id, "--force", code=3)
        desk.run("worker", "--until-idle")
        desk.run("mailout", "pause", mailout_id)
        desk.run("mailout", "resume", mailout_id)
        assert desk.json("mailout", "status", mailout_id)["standstill"]["cause"] == "held"


def test_an_account_in_the_sandbox_may_write_to_verified_addresses(desk: Desk) -> None:
    """A test to a verified tester goes out, and to another one it is refused before it starts."""
    mailout_id = desk.prepare()
    with world(desk, "--no-production-access", "--identities=example.com,tester@example.org") as sandbox:
        desk.run("mailout", "test", mailout_id)
        assert [row["to"] for row in sandbox.acceptances()] == [["tester@example.org"]]
        told = desk.run("mailout", "test", mailout_id, code=3, TEST_EMAILS="other@example.org").stderr
        assert "in the SES sandbox" in told
        assert len(sandbox.acceptances()) == 1
