"""Many callers, two services, one database: a mailout is started once, and the answer comes at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import NamedTuple

import pytest

from sendonce.adapters.sources.markdown import read_markdown
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import Address
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from tests.acceptance.house import SECRET, Answer, House, ask, housed
from tests.crash.world import free_port, quick_start
from tests.postgres import PostgresServer

SUBSCRIBERS = 20_000
CALLERS = 20
NOTION_SECONDS = 15
"""How long an answer of Notion takes. Twenty callers on an idle machine get ours in half a second."""
LETTER = "---\nsubject: Hello {{ name }}\n---\n\nDear {{ name }}, {{ town | default: 'at home' }}.\n"


class Timed(NamedTuple):
    answer: Answer
    seconds: float


class TwoServices(NamedTuple):
    house: House
    urls: tuple[str, str]

    def press(self, body: dict[str, object]) -> list[Timed]:
        """Twenty identical requests at the same moment, in turns to one service and the other."""
        with ThreadPoolExecutor(CALLERS) as callers:
            return list(callers.map(lambda n: self._post(self.urls[n % 2], body), range(CALLERS)))

    def _post(self, url: str, body: dict[str, object]) -> Timed:
        began = time.monotonic()
        answer = ask(f"{url}/send-mailout", {"auth_token": SECRET, **body})
        return Timed(answer, time.monotonic() - began)


@pytest.fixture(scope="module")
def services(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, migrated_postgres: str
) -> Iterator[TwoServices]:
    """Two `sendonce serve`, workers included, on a database with a long list."""
    folder = tmp_path_factory.mktemp("house")
    with postgres_server.database(template=migrated_postgres) as database_url:
        fill(database_url)
        with housed(folder, database_url) as house, ExitStack() as stack:
            second = f"http://127.0.0.1:{free_port()}"
            environment = {**house.environment, "PORT": second.rpartition(":")[2]}
            process = quick_start(["serve"], environment, folder / "second.log", folder)
            stack.callback(process.end)
            house.wait_until(lambda: ready(second), "the second service is ready", 30)
            yield TwoServices(house, (house.url, second))


def fill(database_url: str) -> None:
    addresses = [f"reader{number:06}@example.org" for number in range(SUBSCRIBERS)]
    with closing(open_store(database_url)) as store:
        for start in range(0, SUBSCRIBERS, 5000):
            some = addresses[start : start + 5000]
            people = [NewSubscriber(Address(text, text), name="Reader") for text in some]
            store.subscribers.upsert(DEFAULT_TENANT, people)


def one_started(answers: list[Timed]) -> Answer:
    """The one 200; all the others are 409, and nobody waited for Notion."""
    assert sorted(timed.answer.status for timed in answers) == [200] + [409] * (CALLERS - 1)
    assert max(timed.seconds for timed in answers) < NOTION_SECONDS
    (started,) = [timed.answer for timed in answers if timed.answer.status == 200]
    return started


def ready(url: str) -> bool:
    try:
        return ask(f"{url}/readyz").status == 200
    except OSError:
        return False


def test_a_page_is_started_once_however_slow_notion_is(services: TwoServices) -> None:
    """Our answers do not wait for those of Notion."""
    sandbox = services.house.sandbox
    text = ask(f"{sandbox.endpoint}/sandbox/notion").text
    page = next(line for line in text.splitlines() if line.startswith("letter")).split()[1]
    faults = f"{sandbox.endpoint}/sandbox/notion/faults"
    ask(faults, {"slow": [NOTION_SECONDS * 1000] * 2})
    try:
        started = one_started(services.press({"mailout_id": page}))
        shown = services.house.mailout(started.json["mailout_id"])
        assert (shown["status"], shown["phase"]) == ("sending", "fetching")
        assert started.json["planned"] == SUBSCRIBERS
        services.house.run("mailout", "cancel", shown["id"])
    finally:
        ask(faults, method="DELETE")


def test_a_letter_is_started_once_however_long_the_list_is(services: TwoServices) -> None:
    """The variables of the letter are checked for the whole list before the answer."""
    with closing(open_store(services.house.environment["DATABASE_URL"])) as store:
        new = NewMailout("letter", "file", read_markdown(LETTER))
        mailout_id = store.mailouts.create(DEFAULT_TENANT, new).id
    started = one_started(services.press({"mailout_id": mailout_id}))
    assert started.json["planned"] == SUBSCRIBERS
    services.house.run("mailout", "cancel", mailout_id)
