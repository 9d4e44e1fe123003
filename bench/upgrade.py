"""How long `db upgrade` takes with a million jobs of a former schema, and how long others wait for it.

    python -m bench.upgrade [JOBS [SCHEMA]]

On SQLite and on PostgreSQL, while somebody else writes to the jobs every few milliseconds. The former schema
is the second, or a later one such as 0005.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from alembic import command

from bench.engine import postgres
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.store import SqlStore, migration_config, upgrade_schema
from sendonce.errors import Unavailable

AT = "'2026-01-01 00:00:00.000000'"
LETTER = "01900000-0000-7000-8000-000000000001"
MAILOUT = "01900000-0000-7000-8000-000000000002"
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {jobs}) ",
    "postgresql": "WITH n(i) AS (SELECT generate_series(1, {jobs})) ",
}
JOB_ID = {
    "sqlite": "printf('01900000-0000-7000-9000-%012d', i)",
    "postgresql": "('01900000-0000-7000-9000-' || lpad(i::text, 12, '0'))::uuid",
}
ROWS = (
    f"INSERT INTO tenants (id, name, created_at) VALUES ('default', 'default', {AT})",
    "INSERT INTO letters (id, tenant_id, subject, preheader, html, text, created_at) "
    f"VALUES ('{LETTER}', 'default', 'Hi', '', '<p>Hi</p>', 'Hi', {AT})",
    "INSERT INTO mailouts (id, tenant_id, letter_id, name, source, warnings, status, phase, started_at, "
    f"created_at, updated_at) VALUES ('{MAILOUT}', 'default', '{LETTER}', 'news', 'file', '[]', 'sending', "
    f"'running', {AT}, {AT}, {AT})",
)


def fill(url: str, jobs: int) -> None:
    """A database of the second schema: half of the jobs are sent, half wait."""
    upgrade_to(url, "0002")
    database = Database(url)
    with database.migrating() as tx:
        for statement in ROWS:
            tx.exec_driver_sql(statement)
        ledger = "INSERT INTO ledger (one, ledger_id, pepper, created_at) VALUES (1, :id, :pepper, :at)"
        tx.execute(sa.text(ledger), {"id": LETTER, "pepper": bytes(32), "at": AT.strip("'")})
        numbers = NUMBERS[database.dialect].format(jobs=jobs)
        tx.exec_driver_sql(
            "INSERT INTO message_jobs (id, tenant_id, mailout_id, recipient, recipient_key, suppression_key, "
            f"fields, state, due_at) {numbers}SELECT {JOB_ID[database.dialect]}, 'default', '{MAILOUT}', "
            "'user' || i || '@example.com', 'user' || i || '@example.com', 'key' || i, '{}', "
            f"CASE WHEN i > {jobs} / 2 THEN 'sent' ELSE 'scheduled' END, {AT} FROM n"
        )
    database.close()


def upgrade_to(url: str, schema: str) -> None:
    database = Database(url)
    with database.migrating() as tx:
        config = migration_config()
        config.attributes["connection"] = tx
        command.upgrade(config, schema)
    database.close()


def upgrade(url: str) -> None:
    database = Database(url)
    upgrade_schema(database)
    database.close()


class Neighbour(threading.Thread):
    """Somebody who writes to the jobs now and then; how long it had to wait at most."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._database = Database(url)
        self.over = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        while not self.over.is_set():
            began = time.monotonic()
            with suppress(Unavailable), self._database.writing() as tx:
                tx.exec_driver_sql(f"UPDATE message_jobs SET tries = tries WHERE id = '{LETTER}'")
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.01)
        self._database.close()


def timed_upgrade(url: str) -> tuple[float, float]:
    neighbour = Neighbour(url)
    neighbour.start()
    began = time.monotonic()
    upgrade(url)
    seconds = time.monotonic() - began
    neighbour.over.set()
    neighbour.join()
    return seconds, neighbour.longest


def main(jobs: str = "1000000", schema: str = "0002") -> None:
    with tempfile.TemporaryDirectory() as name, postgres(Path(name)) as server:
        measure("SQLite", f"sqlite:///{name}/sendonce.db", int(jobs), schema)
        url = server.new_database("sendonce")
        measure("PostgreSQL", url.replace("postgresql://", "postgresql+psycopg://", 1), int(jobs), schema)


def measure(name: str, url: str, jobs: int, schema: str) -> None:
    fill(url, jobs)
    upgrade_to(url, schema)
    seconds, longest = timed_upgrade(url)
    database = Database(url)
    books = SqlStore(database).jobs.books(MAILOUT)
    print(f"{name}: {books.planned} jobs came over in {seconds:.1f} s; a writer waited {longest:.1f} s")
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
