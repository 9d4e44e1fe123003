"""Planning a large mailout: rows a second, and how long other writers have to wait.

    python -m bench.rows.planning DATABASE_URL

plans one mailout in chunks, as the worker does, and times each chunk, which is one transaction.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Sequence

from bench import engine, letters
from bench.findings import Finding, with_unit
from bench.processes import BenchFailed, run_module
from bench.stage import Stage

ROWS = ("plan",)

_AT_ONCE = """
CREATE TABLE bare_jobs (id TEXT PRIMARY KEY, mailout_id TEXT, recipient TEXT, recipient_key TEXT, fields TEXT,
                        state TEXT, UNIQUE (mailout_id, recipient_key));
BEGIN IMMEDIATE;
INSERT INTO bare_jobs SELECT lower(hex(randomblob(16))), 'm', email, address_key, attributes, 'scheduled'
FROM subscribers WHERE status = 'active' ORDER BY address_key;
COMMIT;
"""


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    count = stage.size(400_000, 50_000, long=1_000_000)
    people = letters.write_people(stage.folder / "plan-people.csv", count)
    installation = engine.on_sqlite(stage.folder, "plan", {})
    installation.make_ready(people)
    mailout_id = installation.start_mailout()
    told = run_module("bench.rows.planning", installation.database_url).json
    (rows,) = installation.query("SELECT count(*) FROM message_jobs WHERE dispatch_id = {}", mailout_id)
    if rows != count:
        raise BenchFailed(f"{count} people are on the list, {rows} jobs were planned")
    connection = sqlite3.connect(installation.database_url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    began = time.monotonic()
    connection.executescript(_AT_ONCE)
    at_once = time.monotonic() - began
    connection.close()
    (installation.folder / "ledger.db").unlink()
    stage.say(
        f"  {count / told['seconds']:,.0f} jobs/s, longest hold {with_unit(1000 * told['longest'], 'ms')}"
    )
    figures = {
        "jobs per s": count / told["seconds"],
        "longest hold s": told["longest"],
        "one transaction s": at_once,
    }
    against = "one INSERT … SELECT, random ids"
    return [
        Finding("plan", f"planning {count:,} jobs", against, at_once / told["seconds"], figures=figures),
        Finding(
            "plan",
            "how much sooner other writers get their turn",
            against,
            at_once / told["longest"],
            figures=figures,
        ),
    ]


def plan(url: str) -> None:
    from sendonce.adapters.stores.sql import open_store
    from sendonce.domain.mailouts.mailouts import MailoutStatus
    from sendonce.flows.mailouts.steward import CHUNK

    store = open_store(url)
    (mailout,) = store.mailouts.with_status(MailoutStatus.SENDING)
    holds: list[float] = []
    began = time.monotonic()
    finished = False
    while not finished:
        hold_began = time.monotonic()
        progress = store.mailouts.plan_chunk(mailout.id, "bench", CHUNK)
        holds.append(time.monotonic() - hold_began)
        assert progress is not None
        finished = progress.finished
    print(json.dumps({"seconds": time.monotonic() - began, "longest": max(holds)}))
    store.close()


if __name__ == "__main__":
    plan(sys.argv[1])
