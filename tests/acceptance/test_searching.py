"""From words to companies, against the sandbox's Yandex: whatever goes wrong, each row is there once."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import companies, quotas, serp_operations, serp_queries, serp_results
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.failpoints import SEARCHING
from sendonce.domain.prospecting.quotas import PERMIT_LIFE
from sendonce.domain.prospecting.search_answers import SerpDocument, SerpPage, Verdict
from sendonce.domain.prospecting.searches import SUBMITTING, Budget, OperationState, budget_at
from sendonce.flows.prospecting.add_searches import add_searches
from sendonce.flows.prospecting.ingest_results import ingest_results
from sendonce.settings import Settings, load_settings
from sendonce.wiring.archive import archive
from sendonce.wiring.prospecting import site_reader
from sendonce.wiring.searching import regions
from tests.acceptance.search_steps import later, run_steps
from tests.conformance.search_stage import TERMS
from tests.nursery import Forked, shared_nursery, start_sandbox

TEXTS = ("производители насосов", "кабель оптом", "мебель на заказ")
ALL = ("submit", "poll", "ingest")
ENDED = {OperationState.DONE, OperationState.FAILED, OperationState.EXPIRED, OperationState.UNKNOWN}


class World:
    """A Yandex in a process of its own, a database, and the settings that bring them together."""

    def __init__(self, folder: Path, url: str, sandbox: dict[str, Any], **changes: str) -> None:
        self.folder = folder
        self.endpoint = sandbox["endpoint"]
        environment = {
            name: value
            for name, value in sandbox["environment"].items()
            if name.startswith(("YANDEX_", "SEARCH_"))
        }
        self.environment = {
            **environment,
            "DATABASE_URL": url,
            "STATE_DIR": str(folder / "state"),
            "SEARCH_MONTHLY_BUDGET": "0",
            **changes,
        }
        self.store = open_store(url)

    @property
    def settings(self) -> Settings:
        return load_settings(self.environment, None)

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.endpoint}/sandbox/yandex/{path}", data) as reply:
            return json.load(reply)

    def add(self, *texts: str, pages: int = 2) -> None:
        add_searches(self.store, regions(), DEFAULT_TENANT, texts, region="Казань", pages=pages)

    def run(self, *steps: str, ahead: timedelta = timedelta(0), worker: str = "w") -> list[Any]:
        return run_steps(self.settings, later(self.store, ahead), *steps, worker=worker)

    def run_through(self) -> None:
        """As many cycles as it takes, each some hours after the one before."""
        ahead = timedelta(0)
        while self.store.search_operations.next_due() is not None:
            self.run(*ALL, ahead=ahead)
            ahead += timedelta(hours=6)
            assert ahead < timedelta(days=10)

    def killed_at(self, failpoint: str) -> None:
        environment = {**self.environment, "FAILPOINT": failpoint}
        quiet = self.folder / "quiet"
        child = shared_nursery().start(
            ALL, environment, self.folder, quiet, quiet, module="tests.acceptance.search_steps"
        )
        assert child.wait(60) == -signal.SIGKILL, quiet.read_text()

    def rows(self) -> dict[str, Any]:
        """All that a person would see; not the ids, times and counts of a run."""
        return rows_of(self.store)


def rows_of(store: SqlStore) -> dict[str, Any]:
    R, O, Q, C = serp_results.c, serp_operations.c, serp_queries.c, companies.c  # noqa: N806, E741
    found = (R.url, R.domain, R.kind, R.position, R.title, R.snippet, R.language)
    queries = {
        "results": sa.select(O.request_hash, *found)
        .join_from(serp_results, serp_operations, R.operation_id == O.id)
        .order_by(O.request_hash, R.position, R.url),
        "operations": sa.select(O.request_hash, O.page, O.state, O.results).order_by(O.request_hash),
        "queries": sa.select(Q.text, Q.region, Q.pages).order_by(Q.text),
        "companies": sa.select(C.domain, C.status).order_by(C.domain),
    }
    with store.database.reading() as tx:
        return {name: [tuple(row) for row in tx.execute(query)] for name, query in queries.items()}


@pytest.fixture(scope="module")
def yandex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Forked, dict[str, Any]]]:
    process, addresses = start_sandbox(
        [
            *("--dir", str(tmp_path_factory.mktemp("yandex")), "--port", "0"),
            # Several databases of these tests share it, and none knows what the others ask.
            *("--yandex-pending-seconds", "0", "--yandex-rate", "1000"),
        ]
    )
    yield process, addresses
    process.send_signal(signal.SIGTERM)
    process.wait()


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest) -> str:
    """A fresh database of each kind in turn."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def world(url: str, yandex: tuple[Forked, dict[str, Any]], tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, url, yandex[1])
    yield made
    made.store.close()
    urllib.request.urlopen(
        urllib.request.Request(f"{made.endpoint}/sandbox/yandex/faults", method="DELETE")
    ).close()


@pytest.fixture(scope="module")
def undisturbed(
    migrated_sqlite: Path, yandex: tuple[Forked, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    shutil.copy(migrated_sqlite, folder / "sendonce.db")
    calm = World(folder, f"sqlite:///{folder}/sendonce.db", yandex[1])
    calm.add(*TEXTS)
    calm.run_through()
    calm.store.close()
    return calm.rows()


def test_words_become_companies(world: World, undisturbed: dict[str, Any]) -> None:
    world.add(*TEXTS)
    submitted, polled, ingested = world.run(*ALL)
    assert (submitted.taken, submitted.done, submitted.failed) == (6, 6, 0)
    assert (polled.done, ingested.done) == (6, 6)
    rows = world.rows()
    assert rows == undisturbed
    kinds = Counter(row[3] for row in rows["results"])
    assert set(kinds) == {"company", "marketplace", "directory", "social", "blocked", "government"}
    assert len(rows["companies"]) == len({row[2] for row in rows["results"] if row[3] == "company"})
    assert any(domain.startswith("xn--") for domain, _ in rows["companies"])


def test_another_night_adds_nothing(world: World, undisturbed: dict[str, Any]) -> None:
    world.add(*TEXTS)
    world.run_through()
    before = world.ask("stats")["accepted"]
    world.add(*TEXTS)
    world.run(*ALL, ahead=timedelta(days=1))
    assert world.ask("stats")["accepted"] == before
    assert world.rows() == undisturbed


# The first and a later request of a group; the other places are passed once in a cycle.
PLACES = [*((name, 1) for name in SEARCHING), ("submit-before", 3), ("submit-after", 3)]


@pytest.mark.parametrize(("failpoint", "nth"), PLACES)
def test_killed_anywhere_and_run_again_it_ends_with_the_same_rows(
    failpoint: str, nth: int, world: World, undisturbed: dict[str, Any]
) -> None:
    """What was being submitted is of unknown fate for half a day, and then submitted once more."""
    world.add(*TEXTS)
    before = world.ask("stats")["accepted"]
    world.killed_at(f"{failpoint}:{nth}")
    world.run_through()
    assert world.rows() == undisturbed
    twice = world.ask("stats")["accepted"] - before - 6
    assert twice <= (6 if failpoint == "submit-after" else nth - 1 if failpoint == "submit-before" else 0)


def test_outside_the_window_nothing_is_submitted_but_answers_are_fetched(world: World) -> None:
    world.add("насосы", pages=1)
    world.run("submit")
    world.add("кабель", pages=1)
    now = world.store.ledger.now()
    # From an hour ahead of now, for an hour.
    start = (now + timedelta(hours=1)).strftime("%H:%M")
    end = (now + timedelta(hours=2)).strftime("%H:%M")
    world.environment |= {"SEARCH_WINDOW": f"{start}-{end}", "APP_TIMEZONE": "UTC"}
    submitted, polled, ingested = world.run(*ALL)
    assert (submitted.taken, polled.done, ingested.done) == (0, 1, 1)
    assert f"opens at {(now + timedelta(hours=1)):%Y-%m-%d} {start} (UTC)" in submitted.note
    assert world.run("submit", ahead=timedelta(hours=1, minutes=5))[0].done == 1


def test_the_budget_ends_the_submitting(world: World) -> None:
    world.add(*TEXTS, pages=1)
    world.environment |= {"SEARCH_MONTHLY_BUDGET": "0.06", "SEARCH_PRICE": "25.41"}
    (submitted,) = world.run("submit")
    assert submitted.done == 2
    assert "SEARCH_MONTHLY_BUDGET" in submitted.note
    assert world.store.quotas.spent(this_month(world)) == pytest.approx(2 * 0.02541)


def this_month(world: World) -> Budget:
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(world.settings.app_timezone)
    return budget_at(world.store.ledger.now(), zone, 0.02541, 0.0)


def test_wrong_credentials_stop_the_cycle_and_cost_nothing(world: World, undisturbed: dict[str, Any]) -> None:
    world.add(*TEXTS)
    right = world.environment["YANDEX_CLOUD_API_KEY"]
    world.environment["YANDEX_CLOUD_API_KEY"] = "wrong"
    (submitted,) = world.run("submit")
    assert (submitted.taken, submitted.done, submitted.failed) == (0, 0, 6), "the step itself failed"
    assert "YANDEX_CLOUD_API_KEY" in submitted.note
    assert world.store.quotas.spent(this_month(world)) == pytest.approx(0.0)
    world.environment["YANDEX_CLOUD_API_KEY"] = right
    world.run(*ALL, ahead=timedelta(minutes=11))
    assert world.rows() == undisturbed


def test_answers_that_are_lost_from_the_archive_are_fetched_again(
    world: World, undisturbed: dict[str, Any]
) -> None:
    world.add(*TEXTS)
    world.run("submit", "poll")
    shutil.rmtree(world.folder / "state" / "archive")
    assert world.run("ingest")[0].done == 0
    world.run_through()
    assert world.rows() == undisturbed


STORM = {
    **{"unauthorized": 0.03, "throttled": 0.05, "unavailable": 0.05, "reset_before": 0.05},
    **{"reset_after": 0.1, "error_after": 0.05, "garbage_after": 0.05, "stuck": 0.05, "expired": 0.05},
    **{"internal": 0.05, "invalid": 0.03, "bad_base64": 0.05, "cut_xml": 0.05, "deep_xml": 0.02},
    **{"doctype": 0.03, "nothing": 0.05, "xml_error": 0.05, "xml_refusal": 0.03},
}


def test_in_a_storm_of_faults_everything_ends_and_nothing_is_twice(world: World) -> None:
    """Of each request at most two submissions are made, and no row of a result or company is there twice."""
    world.ask("faults", STORM)
    before = Counter(row["text"] for row in world.ask("operations"))
    texts = [f"насосы {number}" for number in range(20)]
    world.add(*texts, pages=1)
    world.run_through()
    accepted = Counter(row["text"] for row in world.ask("operations")) - before
    assert max(accepted.values()) <= 2
    states = Counter(row[2] for row in world.rows()["operations"])
    assert set(states) <= ENDED
    assert states[OperationState.DONE] > 8
    results = [row[:2] for row in world.rows()["results"]]
    assert len(results) == len(set(results))


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_two_workers_keep_the_limits_together(world: World) -> None:
    """In any second, and a little more, no more than ten of both are sent."""
    world.add(*(f"насосы {number}" for number in range(16)), pages=1)
    stores = [open_store(world.environment["DATABASE_URL"]) for _ in range(2)]
    with ThreadPoolExecutor(2) as both:
        work = [
            both.submit(run_steps, world.settings, store, "submit", worker=f"w{number}")
            for number, store in enumerate(stores)
        ]
        counts = [job.result()[0] for job in work]
    for store in stores:
        store.close()
    assert sum(count.done for count in counts) == 16
    with world.store.database.reading() as tx:
        used = tx.execute(sa.select(quotas).where(quotas.c.key == SUBMITTING)).all()
    window = timedelta(seconds=1 + PERMIT_LIFE)
    for start in used:
        together = [row.used for row in used if timedelta(0) <= row.at - start.at < window]
        assert sum(together) <= 10
    assert sum(row.used for row in used) >= 16


class FixedAnswers:
    """A provider whose every answer is the same; only its reading matters here."""

    name = "fixed"
    terms = TERMS

    def __init__(self, documents: list[SerpDocument]) -> None:
        self._page = SerpPage(Verdict.RESULTS, documents)

    def read(self, data: bytes) -> SerpPage:
        return self._page


HOSTILE_URLS = (
    *("https://firma.ru/" + "ж" * 1_900, "https://firma.ru/" + "a" * 1_950, 'https://firma.ru/\\"{},'),
    *(
        "javascript:alert(1)",
        "http://[",
        "https://firma.ru\\@evil.com/",
        "file:///etc/passwd",
        "https://a" * 99,
    ),
)


def test_no_address_of_a_result_stops_the_others(world: World) -> None:
    """One that no index could hold, or that is none, is left out."""
    world.add("насосы", pages=1)
    world.run("submit", "poll")
    documents = [
        SerpDocument(url, number, "Насосы", "", None)
        for number, url in enumerate((*HOSTILE_URLS, "https://good.ru/"), start=1)
    ]
    provider: Any = FixedAnswers(documents)
    kept = archive(world.settings)
    count = ingest_results(world.store, provider, kept, site_reader(), "w", 10)
    assert (count.done, count.failed) == (1, 0)
    assert max(len(row[1]) for row in world.rows()["results"]) <= 2_000
    assert "good.ru" in [domain for domain, _ in world.rows()["companies"]]
