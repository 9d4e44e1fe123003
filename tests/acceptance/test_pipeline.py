"""From found companies to planned letters: killed at any step and run again, it ends with the same rows."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import (
    companies,
    company_merges,
    contacts,
    message_jobs,
    written_letters,
)
from sendonce.adapters.stores.sql.store import open_store
from sendonce.adapters.web.site_reader import site_reader
from sendonce.domain.people.directions import Basis, NewDirection
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import FoundSite
from sendonce.domain.prospecting.failpoints import WRITING
from sendonce.domain.prospecting.pipeline import Role, steps_wanted
from sendonce.entrypoints.cli.demo_stage import wait_until
from sendonce.flows.prospecting.run_pipeline import run_cycle, run_until_idle
from sendonce.sandbox.companies import CompanyWeb
from sendonce.settings import load_settings
from sendonce.wiring.pipeline import pipeline_steps
from tests.acceptance.search_steps import later
from tests.adapters.sandbox_stage import Sandbox
from tests.conformance.prospecting_stage import NOW, Prospects
from tests.nursery import Forked, shared_nursery

COUNT, SEED, CHOSEN = 60, 3, 9
RUN = ("prospect", "run", "--until-idle", "--role", "worker")
LOOP = ("prospect", "run", "--loop", "--role", "worker")
OFFER = {"name": "Подшипники", "text": "Поставляем подшипники для насосов."}
# Letters need no waiting for a working day, nor a model, nor a person.
SETTINGS = {
    "PYTHONUTF8": "1",
    "CRAWL_PAUSE_SECONDS": "0",
    "LETTERS_AUTO_APPROVE": "true",
    "LETTERS_HOURS": "00:00-23:59",
    "LETTERS_DAYS": "1-7",
}
DAY = timedelta(days=1)


def chosen_sites() -> list[FoundSite]:
    """A handful of the sandbox's sites that answer at once, two of which are one company."""
    web = CompanyWeb(COUNT, SEED)
    quick = [c for c in web.companies if c.readable and c.manner not in ("slow", "moved")]
    twin = next(c for c in quick if c.same_as)
    names = {twin.domain, twin.same_as, *(c.domain for c in quick[: CHOSEN - 2])}
    reader, found = site_reader(), []
    for url, title, _ in web.results():
        site = reader.read(url)
        if site.domain in names:
            found.append(FoundSite(site.url or "", site.domain, title, "ru"))
    return found


class World:
    """A database with companies that a search found, and the sandbox that plays their sites."""

    def __init__(self, folder: Path, url: str, sandbox: Sandbox, *, searched: bool = True) -> None:
        self.folder = folder
        stand_in = sandbox.addresses["environment"]["WEB_STAND_IN"]
        places = {"DATABASE_URL": url, "STATE_DIR": str(folder / "state"), "WEB_STAND_IN": stand_in}
        self.environment = {**SETTINGS, **places}
        self.store = open_store(url)
        direction = NewDirection("default", "RU", Basis.CONSENT, "asked at a fair", "ru", "pumps", OFFER)
        self.prospects = Prospects(self.store)
        self.store.directions.put(DEFAULT_TENANT, direction, "ann")
        if searched:
            self.search(self.prospects.query)

    def search(self, query: str, after: timedelta = timedelta(0)) -> int:
        found = self.prospects.companies.found(DEFAULT_TENANT, query, chosen_sites(), NOW + after)
        return found.created

    def start(self, number: int = 0, run: Sequence[str] = RUN, **more: str) -> Forked:
        output = self.folder / f"output-{number}"
        environment = {**self.environment, **more}
        return shared_nursery().start(run, environment, self.folder, output, output)

    def run(self, ahead: timedelta = timedelta(0)) -> None:
        """In this process, by a clock that is ahead: whatever was leased before is due again."""
        settings, store = load_settings(self.environment, None), later(self.store, ahead)
        steps = pipeline_steps(settings, store, steps_wanted((), Role.WORKER), "w")
        journal, clock = self.store.pipeline_journal, store.ledger.now
        lines = run_until_idle(lambda: run_cycle(steps, journal, "w", clock), lambda: False)
        assert not [line for line in lines if line.failed], lines

    def rows(self) -> dict[str, Any]:
        """All that a person would see; not the ids and times of a run."""
        C, K, W = companies.c, contacts.c, written_letters.c  # noqa: N806
        primary, other = companies.alias(), companies.alias()
        told = (C.domain, C.name, C.status, C.opt_out, C.inn, C.ogrn, C.city, primary.c.domain.label("one"))
        merges = company_merges.c
        queries = {
            "companies": sa.select(*told).outerjoin_from(companies, primary, C.primary_id == primary.c.id),
            "contacts": sa.select(C.domain, K.kind, K.value, K.is_primary, K.source).join_from(
                companies, contacts, K.company_id == C.id
            ),
            "pairs": sa.select(C.domain, other.c.domain.label("other"), merges.evidence, merges.state)
            .join_from(company_merges, companies, merges.primary_id == C.id)
            .join(other, merges.duplicate_id == other.c.id),
            "letters": sa.select(C.domain, W.recipient, W.subject, W.text, W.status).join_from(
                companies, written_letters, W.company_id == C.id
            ),
            "jobs": sa.select(message_jobs.c.recipient, message_jobs.c.state),
        }
        with self.store.database.reading() as tx:
            return {name: sorted(map(repr, tx.execute(query))) for name, query in queries.items()}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    opened = Sandbox(tmp_path_factory.mktemp("sandbox"), {"companies": COUNT, "seed": SEED})
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def undisturbed(
    migrated_sqlite: Path, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    shutil.copy(migrated_sqlite, folder / "sendonce.db")
    calm = World(folder, f"sqlite:///{folder}/sendonce.db", sandbox)
    calm.run()
    rows = calm.rows()
    calm.store.close()
    return rows


@pytest.fixture
def world(sqlite_url: str, sandbox: Sandbox, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, sqlite_url, sandbox)
    yield made
    made.store.close()


def test_sites_become_letters(undisturbed: dict[str, Any]) -> None:
    """Every company that is nobody's duplicate gets one, and none gets two. Some wait for a person."""
    assert len(undisturbed["companies"]) == len({site.domain for site in chosen_sites()})
    duplicates = [row for row in undisturbed["companies"] if "'duplicate'" in row]
    assert len(duplicates) == 1
    assert len({row.split("', '")[1] for row in undisturbed["pairs"]}) == 1
    assert all("'merged'" in row for row in undisturbed["pairs"] if "'name'" not in row)
    assert len(undisturbed["letters"]) == len(undisturbed["companies"]) - len(duplicates)
    planned = [row for row in undisturbed["letters"] if row.endswith("'planned')")]
    assert len(set(undisturbed["jobs"])) == len(planned) > len(undisturbed["letters"]) / 2


@pytest.mark.parametrize("failpoint", WRITING)
def test_killed_anywhere_and_run_again_it_ends_with_the_same_rows(
    failpoint: str, world: World, undisturbed: dict[str, Any]
) -> None:
    """Another process goes on at once: it sees that the first is dead."""
    nth = 1 if failpoint == "dedupe-judged" else 2
    killed = world.start(FAILPOINT=f"{failpoint}:{nth}")
    assert killed.wait(60) == -signal.SIGKILL
    assert world.rows() != undisturbed
    assert world.start(1).wait(60) == 0
    assert world.rows() == undisturbed


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
def test_a_loop_does_what_comes_due_until_a_signal_ends_it(
    request: pytest.FixtureRequest,
    database: str,
    sandbox: Sandbox,
    tmp_path: Path,
    undisturbed: dict[str, Any],
) -> None:
    """Companies that a search finds while it runs, too. What is under way at the signal is ended first."""
    world = World(tmp_path, request.getfixturevalue(database), sandbox, searched=False)
    loop = world.start(run=LOOP, PROSPECT_INTERVAL_SECONDS="0.1")
    output = tmp_path / "output-0"
    wait_until(lambda: output.exists() and "the pipeline runs" in output.read_text(), "the loop")
    world.search(world.prospects.query)
    wait_until(lambda: world.rows() == undisturbed, "all letters")
    loop.send_signal(signal.SIGTERM)
    assert loop.wait(30) == 0
    assert "Traceback" not in output.read_text()
    assert world.rows() == undisturbed
    world.store.close()


def test_a_second_night_adds_no_duplicates(world: World, undisturbed: dict[str, Any]) -> None:
    """The same sites are found again, by another search, a day later."""
    world.run()
    assert world.search(world.prospects.add_query("насосы оптом"), DAY) == 0
    world.run(ahead=DAY)
    assert world.rows() == undisturbed


def test_three_workers_on_postgres(
    postgres_url: str, sandbox: Sandbox, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    """They share the sites, one of them is killed, and it ends with the same rows."""
    world = World(tmp_path, postgres_url, sandbox)
    workers = [world.start(number) for number in range(2)]
    killed = world.start(2, FAILPOINT="contacts-kept")
    codes = [worker.wait(60) for worker in (*workers, killed)]
    assert codes[:2] == [0, 0]
    assert world.start(3).wait(60) == 0
    assert world.rows() == undisturbed
    world.store.close()
