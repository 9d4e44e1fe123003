"""Reading search results into companies: a result costs the same after a million of them, in flat memory.

    python -m bench.rows.ingest DATABASE_URL RESULTS

has so many results waiting in answers that were fetched, ingests them by the step of the pipeline, and prints
the CPU time of each window of 10,000 results, the database's included, and the memory that it took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median
from typing import Any

from bench.findings import Finding
from bench.processes import BenchFailed, cpu_seconds, high_water, run_module
from bench.stage import Stage

ROWS = ("ingest-sqlite", "ingest-postgres")
BAR = 1.5
MOST_MEGABYTES = 300
WINDOW = 10_000
ON_A_PAGE = 100
PAGES = 10
# Many results lead to a company that is known already: each of so many domains comes up four times.
RESULTS_OF_DOMAIN = 4


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    count = stage.size(200_000, 60_000, long=1_000_000)
    return [finding for row in ROWS if row in wanted for finding in _ingested(stage, row, count)]


def _ingested(stage: Stage, row: str, count: int) -> list[Finding]:
    file = stage.folder / f"{row}.db"
    url = f"sqlite:///{file}" if row == "ingest-sqlite" else stage.postgres.new_database("ingest")
    told = run_module("bench.rows.ingest", url, str(count)).json
    file.unlink(missing_ok=True)
    if told["results"] != count or told["companies"] != told["domains"]:
        raise BenchFailed(f"{row}: of {count} results came {told}")
    first, last = told["windows"][0], median(told["windows"][-5:])
    cost, at_first = (1e6 * seconds / WINDOW for seconds in (last, first))
    stage.say(f"  {row}: {cost:.0f} µs per result, {last / first:.2f} × the first, {told['mb']:.0f} MB")
    figures = {"µs of CPU per result": cost, f"µs at {WINDOW:,}": at_first, "mb": told["mb"]}
    what = f"a result at {count:,}"
    return [
        Finding(row, what, f"at {WINDOW:,}", last / first, bar=BAR, at_most=True, figures=figures),
        Finding(row, "memory", "", told["mb"], unit="MB", bar=MOST_MEGABYTES, at_most=True, figures=figures),
    ]


class Answers:
    """An archive whose records are made when they are read: a million results would fill the disk."""

    def __init__(self, domains: int) -> None:
        self._domains = domains

    def read(self, place: str) -> bytes:
        dice = Random(place)
        found = (
            f"<group><doc><url>https://www.zavod-{dice.randrange(self._domains)}.ru/catalog/{number}</url>"
            f"<title>Завод <hlword>насосов</hlword> {number}</title><passages><passage>Насосы, двигатели и "
            "части со склада</passage></passages><properties><lang>ru</lang></properties></doc></group>"
            for number in range(ON_A_PAGE)
        )
        grouping = f'<grouping attr="d">{"".join(found)}</grouping>'
        return f"<yandexsearch><response><results>{grouping}</results></response></yandexsearch>".encode()

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        raise NotImplementedError

    def prune(self, kind: str, before: datetime) -> int:  # noqa: ARG002 (the port's names)
        return 0


def ingest(url: str, count: int) -> None:
    from sendonce.adapters.search.exchanges import Exchanges
    from sendonce.adapters.search.yandex import YandexAddresses, YandexSearch
    from sendonce.adapters.search.yandex_auth import FixedCredential
    from sendonce.adapters.stores.sql.database import Database
    from sendonce.adapters.stores.sql.store import open_store, upgrade_schema
    from sendonce.adapters.web.site_reader import site_reader
    from sendonce.flows.prospecting.ingest_results import ingest_results

    upgrade_schema(Database(url))
    store = open_store(url)
    domains = _make_waiting(store, count)
    provider = YandexSearch(
        YandexAddresses("", "", ""), FixedCredential("Api-Key", ""), Exchanges(), timedelta(0)
    )
    windows = []
    taken = 1
    while taken:
        began = _cpu(store)
        step = ingest_results(store, provider, Answers(domains), site_reader(), "bench", WINDOW // ON_A_PAGE)
        taken = step.done
        if taken:
            windows.append(_cpu(store) - began)
    print(json.dumps({"windows": windows, **_counted(store), "mb": high_water("self")}))
    store.close()


def _make_waiting(store: Any, count: int) -> int:
    """Operations whose answers are fetched; how many domains those will name."""
    from sendonce.adapters.stores.schema import serp_operations, serp_queries
    from sendonce.domain.engine.ids import time_ordered_ids
    from sendonce.domain.people.subscribers import DEFAULT_TENANT

    now = datetime.now(UTC) - timedelta(hours=1)
    stamp = {"tenant_id": DEFAULT_TENANT, "created_at": now, "updated_at": now}
    operations = count // ON_A_PAGE
    queries = time_ordered_ids(-(-operations // PAGES), int(now.timestamp() * 1000))
    ids = time_ordered_ids(operations, int(now.timestamp() * 1000))
    words = [{"text": "насосы", "pages": PAGES, "query_hash": query, "id": query} for query in queries]
    waiting = {"state": "fetched", "due_at": now, "submitted_at": now, "submits": 1, **stamp}
    pages = [
        {
            **waiting,
            "id": ids[number],
            "query_id": queries[number // PAGES],
            "page": number % PAGES,
            "request_hash": ids[number],
            "answer_place": ids[number],
        }
        for number in range(operations)
    ]
    with store.database.writing() as tx:
        tx.execute(serp_queries.insert(), [{**stamp, **word} for word in words])
        tx.execute(serp_operations.insert(), pages)
    return count // RESULTS_OF_DOMAIN


def _counted(store: Any) -> dict[str, int]:
    count = {
        "results": "SELECT count(*) FROM serp_results",
        "companies": "SELECT count(*) FROM companies",
        "domains": "SELECT count(DISTINCT domain) FROM serp_results",
    }
    with store.database.reading() as tx:
        return {name: tx.exec_driver_sql(query).scalar_one() for name, query in count.items()}


# What comes and goes (autovacuum) is left out: its time is gone with it.
_SERVERS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type IN ('client backend', 'walwriter', 'checkpointer', 'background writer')
"""


def _cpu(store: Any) -> float:
    """Seconds of ours and, where the database is a server, of its processes."""
    if store.database.is_sqlite:
        return time.process_time()
    with store.database.reading() as tx:
        pids = tx.exec_driver_sql(_SERVERS).scalars().all()
    return time.process_time() + sum(map(cpu_seconds, pids))


if __name__ == "__main__":
    ingest(sys.argv[1], int(sys.argv[2]))
