"""Visiting sites: what a run takes, against what one connection per host and the pauses between its requests
would take if the crawler itself took no time.

    python -m bench.rows.politeness COMPANIES PORT

is the web of the sandbox in a process of its own: it notes when it was asked and when it answered.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bench import engine
from bench.findings import Finding
from bench.processes import BenchFailed, free_port, serving, wait_for_port
from bench.stage import Stage

ROWS = ("politeness",)
BAR = 0.9
SEED = 7
PAUSE = 1.0
# The default of CRAWL_CONCURRENCY.
AT_ONCE = 20


class Asked(NamedTuple):
    """A request as the server saw it, in seconds of the machine's monotonic clock."""

    host: str
    began: float
    ended: float


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    companies = stage.size(200, 60)
    port, notes = free_port(), stage.folder / "politeness.jsonl"
    with serving([sys.executable, "-m", "bench.rows.politeness", str(companies), str(port)], notes) as web:
        wait_for_port(port, web)
        home = engine.on_sqlite(stage.folder, "politeness", _settings(port))
        home.call("db", "upgrade")
        sites = _find_companies(home.database_url, companies)
        done = home.call("contacts", "enrich", "--json")
    if done.json["visited"] != sites:
        raise BenchFailed(f"{sites} sites should be visited, the crawler says {done.json}")
    asked = [Asked(*json.loads(line)) for line in notes.read_text().splitlines()]
    took = max(one.ended for one in asked) - min(one.began for one in asked)
    allowed = least_seconds(asked)
    stage.say(f"  {sites} sites in {took:.1f} s, {allowed:.1f} s by politeness alone")
    figures = {
        "sites": sites,
        "requests": len(asked),
        "seconds": took,
        "seconds by politeness": allowed,
        "CPU seconds of ours": done.cpu,
    }
    what = f"visiting {sites} sites, {AT_ONCE} at once, {PAUSE:g} s between requests"
    bound = "one connection per host"
    return [Finding("politeness", what, bound, allowed / took, "of it", BAR, figures=figures)]


def _settings(port: int) -> dict[str, str]:
    return {
        "WEB_STAND_IN": f"http://127.0.0.1:{port}",
        "CRAWL_CONCURRENCY": str(AT_ONCE),
        "CRAWL_PAUSE_SECONDS": str(PAUSE),
    }


def least_seconds(asked: Iterable[Asked]) -> float:
    """The same visits in the same order by a crawler that takes no time, but for answers and pauses.

    ``AT_ONCE`` visitors take the next site whenever they are free.
    """
    visits: defaultdict[str, list[Asked]] = defaultdict(list)
    for one in sorted(asked, key=lambda one: one.began):
        visits[_site_of(one.host)].append(one)
    free_at = [0.0] * AT_ONCE
    for visit in visits.values():
        heapq.heapreplace(free_at, free_at[0] + _polite_seconds(visit))
    return max(free_at)


def _site_of(host: str) -> str:
    """A company has up to three names, and a visit may be led from one to another."""
    return host.removeprefix("www.").removeprefix("old-")


def _polite_seconds(visit: Sequence[Asked]) -> float:
    """Answers one after another, and a pause between two from the same host."""
    now = 0.0
    answered: dict[str, float] = {}
    for one in visit:
        start = max(now, answered.get(one.host, -PAUSE) + PAUSE)
        now = answered[one.host] = start + one.ended - one.began
    return now


def _find_companies(url: str, companies: int) -> int:
    """Have every site that can be read wait for a visit, once."""
    from sendonce.adapters.stores.schema import serp_queries
    from sendonce.adapters.stores.sql.store import open_store
    from sendonce.domain.engine.ids import time_ordered_id
    from sendonce.domain.people.subscribers import DEFAULT_TENANT
    from sendonce.domain.prospecting.companies import FoundSite
    from sendonce.sandbox.companies import CompanyWeb

    now = datetime.now(UTC)
    own = {"tenant_id": DEFAULT_TENANT, "created_at": now, "updated_at": now}
    query = time_ordered_id(int(now.timestamp() * 1000))
    readable = [company for company in CompanyWeb(companies, SEED).companies if company.readable]
    sites = [FoundSite(f"https://{it.domain}/", it.domain, it.what, "ru") for it in readable]
    store = open_store(url)
    with store.database.writing() as tx:
        tx.execute(serp_queries.insert().values(id=query, query_hash=query, text="заводы", pages=1, **own))
    store.companies.found(DEFAULT_TENANT, query, sites, now)
    store.close()
    return len(sites)


async def serve(companies: int, port: int) -> None:
    from sendonce.sandbox.companies import CompanyWeb
    from sendonce.sandbox.http_server import HttpServer, Reply, Request

    web = CompanyWeb(companies, SEED)

    async def answer(request: Request) -> Reply:
        began = time.monotonic()
        reply = await web.answer(request)
        print(json.dumps([request.headers["host"], began, time.monotonic()]), flush=True)
        return reply

    await HttpServer(answer, time.time).listen(port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
