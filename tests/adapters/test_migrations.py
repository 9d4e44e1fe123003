"""The schema: what the migrations make is what the program reads, and a wrong one is refused with the fix."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from sendonce.adapters.stores.schema import HEAD, metadata
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.groups import groups_of
from sendonce.adapters.stores.sql.store import (
    SqlStore,
    migration_config,
    open_store,
    schema_version,
    upgrade_schema,
)
from sendonce.domain.engine.jobs import ClaimRequest, JobState
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import RefusedByRule, SchemaMismatch, Unavailable
from tests.conformance.backdoor import check_counters
from tests.conformance.stage import NOBODY, worker_record
from tests.postgres import PostgresServer


@contextmanager
def database_at(url: str) -> Iterator[Database]:
    with closing(Database(url)) as database:
        yield database


def set_version(url: str, version: str) -> None:
    with database_at(url) as database, database.writing() as tx:
        tx.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    """A migrated database of each kind."""
    return str(request.getfixturevalue(request.param))


def test_the_migrations_make_the_schema(url: str) -> None:
    """Column by column, what Alembic would still change is nothing."""
    with database_at(url) as database, database.reading() as tx:
        context = MigrationContext.configure(tx, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_program_knows_its_newest_migration() -> None:
    """HEAD is compared at every start, without Alembic: it must be the newest script."""
    scripts = ScriptDirectory.from_config(migration_config())
    assert scripts.get_heads() == [HEAD]


def test_a_schema_from_the_future_is_refused(url: str) -> None:
    """An older program does not touch a newer database, and tells what to do; nor does its upgrade."""
    set_version(url, "9999")
    with pytest.raises(SchemaMismatch, match=r"schema 9999, newer than .* upgrade sendonce"):
        open_store(url)
    with database_at(url) as database, pytest.raises(SchemaMismatch, match=r"9999.* upgrade sendonce"):
        upgrade_schema(database)


def test_another_programs_schema_is_refused(url: str) -> None:
    """A version that is no number of ours belongs to somebody else."""
    set_version(url, "3f2a9c")
    with pytest.raises(SchemaMismatch, match="3f2a9c"):
        open_store(url)


def test_postgres_is_upgraded_by_hand(empty_postgres_url: str) -> None:
    """A shared database changes only when its owner says so: the error names the command."""
    with pytest.raises(SchemaMismatch, match=rf"schema none, .* needs {HEAD}: run 'sendonce db upgrade'"):
        open_store(empty_postgres_url)
    with database_at(empty_postgres_url) as database:
        assert upgrade_schema(database) is None
    open_store(empty_postgres_url).close()


def test_an_sqlite_file_is_made_on_the_way(tmp_path: Path) -> None:
    """The default needs no command: folder, file and schema come with the first start."""
    url = f"sqlite:///{tmp_path}/new/folder/sendonce.db"
    with closing(open_store(url)) as store:
        first = store.ledger.identity()
    with closing(open_store(url)) as store:
        assert store.ledger.identity() == first


def test_a_new_sqlite_file_is_its_owners_alone(tmp_path: Path) -> None:
    """It holds the whole list, and so does its log, whatever the umask is."""
    before = os.umask(0)
    try:
        with closing(open_store(f"sqlite:///{tmp_path}/sendonce.db")):
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert "sendonce.db-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_job_takes_the_states_that_there_are_and_no_other(url: str) -> None:
    """The rule is in the table, so no program can break it."""
    insert = "INSERT INTO job_states (id, dispatch_id, due_at, state) VALUES ('{}', '{}', '2030-01-01', '{}')"
    with database_at(url) as database:
        for state in JobState:
            with database.writing() as tx:
                tx.exec_driver_sql(insert.format(uuid4(), uuid4(), state))
        with pytest.raises(Unavailable, match="job_states_state"), database.writing() as tx:
            tx.exec_driver_sql(insert.format(uuid4(), uuid4(), "lost"))


def test_upgrading_twice_is_fine(url: str) -> None:
    """The second time there is nothing to do, and the ledger is the same one."""
    with closing(open_store(url)) as store:
        upgrade_schema(store.database)
        before = store.ledger.identity()
        assert upgrade_schema(store.database) == HEAD
        assert store.ledger.identity() == before


def test_an_upgrade_records_the_fingerprint_where_there_is_none(url: str) -> None:
    """A ledger of an earlier version learns which database it is in; one that knows is left as it is."""
    with closing(open_store(url)) as store:
        assert store.ledger.identity().fingerprint is None
        upgrade_schema(store.database)
        assert store.ledger.identity().fingerprint == store.fingerprint()
        store.ledger.vouch("elsewhere", "the tests")
        upgrade_schema(store.database)
        assert store.ledger.identity().fingerprint == "elsewhere"


def upgrade(url: str) -> str | None:
    with database_at(url) as database:
        upgrade_schema(database)
        return schema_version(database)


def test_two_upgrades_at_once_are_fine(empty_postgres_url: str) -> None:
    """One waits for the other and finds the work done."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(upgrade, [empty_postgres_url] * 4)) == [HEAD] * 4


def test_two_first_starts_on_one_file_are_fine(tmp_path: Path) -> None:
    """A service and a worker that start together on no database make one ledger."""

    def identity(_: int) -> str:
        with closing(open_store(f"sqlite:///{tmp_path}/sendonce.db")) as store:
            return store.ledger.identity().ledger_id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(identity, range(4)))) == 1


def test_a_first_start_waits_for_another_one(tmp_path: Path) -> None:
    """SQLite lets nobody wait who switches a new file to its log: it says "locked" at once."""
    file = tmp_path / "sendonce.db"

    def journal_mode() -> str:
        with database_at(f"sqlite:///{file}") as database, database.reading() as tx:
            return str(tx.exec_driver_sql("PRAGMA journal_mode").scalar_one())

    with ThreadPoolExecutor(1) as pool, closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = pool.submit(journal_mode)
        wait([answer], timeout=0.2)
        other.execute("COMMIT")
        assert answer.result() == "wal"


@pytest.mark.parametrize(
    "view",
    [
        *("message_jobs", "send_logs", "opt_out_registry", "outreach_messages"),
        *("campaign_jobs", "campaign_events"),
    ],
)
def test_the_views_can_be_read(url: str, view: str) -> None:
    """The names under which others know the same rows."""
    with database_at(url) as database, database.reading() as tx:
        assert tx.exec_driver_sql(f"SELECT * FROM {view}").fetchall() == []


def test_sqlite_syncs_every_commit(sqlite_url: str) -> None:
    """synchronous = FULL and WAL, on every connection."""
    with database_at(sqlite_url) as database:
        for _ in range(2):
            with database.reading() as tx:
                assert tx.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
                assert tx.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
            database.engine.dispose()


def test_postgres_confirms_commits_after_they_are_safe(postgres_url: str) -> None:
    """Also in a database whose owner turned synchronous_commit off."""
    with database_at(postgres_url) as database, database.writing() as tx:
        name = tx.exec_driver_sql("SELECT current_database()").scalar_one()
        tx.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with database_at(postgres_url) as database:
        with database.reading() as tx:
            assert tx.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "off"
        with database.writing() as tx:
            assert tx.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


@pytest.mark.parametrize("claims", [True, False], ids=["claim", "settle"])
def test_every_turn_is_confirmed_after_it_is_safe(postgres_url: str, claims: bool) -> None:
    """A turn opens its transaction by itself, to save a round trip, and must not forget this."""
    with database_at(postgres_url) as database, database.writing() as tx:
        name = tx.exec_driver_sql("SELECT current_database()").scalar_one()
        tx.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with closing(open_store(postgres_url)) as store:
        worker = worker_record(str(uuid4()))
        store.workers.register(worker)
        claim = ClaimRequest(worker.id, "token", 1) if claims else None
        with store.database.writing(made_durable=False) as tx:
            groups_of(store.database).open(tx, claim, count_anyway=True)
            assert tx.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


@contextmanager
def fsync_off(server: PostgresServer) -> Iterator[None]:
    server.execute("ALTER SYSTEM SET fsync = off")
    server.reload_until("SHOW fsync", "off")
    try:
        yield
    finally:
        server.execute("ALTER SYSTEM RESET fsync")
        server.reload_until("SHOW fsync", "on")


@pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="changes the server's own settings")
def test_postgres_without_fsync_is_refused(postgres_url: str, postgres_server: PostgresServer) -> None:
    """A server that forgets commits would make us send letters twice."""
    with fsync_off(postgres_server), pytest.raises(RefusedByRule, match="fsync = off: turn it on"):
        open_store(postgres_url)
    open_store(postgres_url).close()


@pytest.fixture(params=["sqlite", "postgres"])
def first_schema(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database as the first release left it, with a letter and its mailout in it."""
    file = f"sqlite:///{tmp_path}/first.db"
    url: str = file if request.param == "sqlite" else request.getfixturevalue("empty_postgres_url")
    config = migration_config()
    with database_at(url) as database, database.writing() as tx:
        config.attributes["connection"] = tx
        command.upgrade(config, "0001")
        ledger = sa.text(
            "INSERT INTO ledger (one, ledger_id, pepper, created_at) VALUES (1, :id, :pepper, :at)"
        )
        tx.execute(ledger, {"id": LETTER_ID, "pepper": bytes(32), "at": _AT.strip("'")})
        for statement in FIRST_ROWS:
            tx.exec_driver_sql(statement)
    return url


LETTER_ID, MAILOUT_ID = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
_AT = "'2026-01-01 00:00:00.000000'"
FIRST_ROWS = [
    f"INSERT INTO tenants (id, name, created_at) VALUES ('default', 'default', {_AT})",
    "INSERT INTO letters (id, tenant_id, subject, preheader, html, text, created_at) "
    f"VALUES ('{LETTER_ID}', 'default', 'Hi', '', '<p>Hi</p>', 'Hi', {_AT})",
    "INSERT INTO mailouts (id, tenant_id, letter_id, name, source, warnings, status, created_at, updated_at) "
    f"VALUES ('{MAILOUT_ID}', 'default', '{LETTER_ID}', 'news', 'file', '[]', 'ready', {_AT}, {_AT})",
]


def test_letters_of_the_first_schema_come_over(first_schema: str) -> None:
    """They are no plain-text letters, nothing is scheduled, and they can be started."""
    with database_at(first_schema) as database:
        assert upgrade_schema(database) == "0001"
        store = SqlStore(database)
        letter = store.mailouts.letter(MAILOUT_ID)
        assert (letter.subject, letter.reply_to, letter.text_only) == ("Hi", None, False)
        mailout = store.mailouts.get(DEFAULT_TENANT, MAILOUT_ID)
        assert mailout is not None
        assert (mailout.scheduled, mailout.send_at, mailout.except_of) == (False, None, ())
        assert store.mailouts.due() == []
        assert store.mailouts.start(MAILOUT_ID)


STATES = {
    # status, phase, paused, cancelled, started: as the second schema says it, and as it is shown for ever
    "draft": ("draft", None, False, False, False),
    "ready": ("ready", None, False, False, False),
    "fetching": ("sending", "fetching", False, False, True),
    "planning": ("sending", "planning", False, False, True),
    "running": ("sending", "running", False, False, True),
    "paused": ("sending", "running", True, False, True),
    "being cancelled": ("sending", "running", False, True, True),
    "sent": ("sent", "over", False, False, True),
    "failed": ("failed", "over", False, False, True),
    "cancelled before its start": ("failed", "over", False, True, False),
}


def mailout_id(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012}"


def fill(tx: sa.Connection) -> None:
    """A mailout in every state, each with a job that waits and one that is sent, if it has any."""
    for statement in FIRST_ROWS[:2]:
        tx.exec_driver_sql(statement)
    for number, (status, phase, paused, cancelled, started) in enumerate(STATES.values(), start=10):
        at = _AT if started else "NULL"
        told = f"'{status}', {repr(phase) if phase else 'NULL'}, {paused}, {cancelled}, {at}, 'why'"
        own = f"'{mailout_id(number)}', 'default', '{LETTER_ID}', 'news', 'file', '[]'"
        tx.exec_driver_sql(
            "INSERT INTO mailouts (id, tenant_id, letter_id, name, source, warnings, status, phase, paused, "
            "cancelled, started_at, reason, created_at, updated_at) VALUES "
            f"({own}, {told}, {_AT}, {_AT})"
        )
        for job, state in enumerate(("scheduled", "sent") if phase in ("running", "over") else ()):
            tx.exec_driver_sql(
                "INSERT INTO message_jobs (id, tenant_id, mailout_id, recipient, recipient_key, "
                "suppression_key, fields, state, due_at) VALUES "
                f"('{mailout_id(number * 10 + job)}', 'default', '{mailout_id(number)}', 'a{job}@b.example', "
                f"'a{job}@b.example', 'k{job}', '{{}}', '{state}', {_AT})"
            )
    tx.exec_driver_sql(
        "INSERT INTO outbox (id, topic, body, created_at, due_at) VALUES "
        f"('{LETTER_ID}', 'mailout.report', '{{\"mailout_id\": \"{mailout_id(17)}\"}}', {_AT}, {_AT})"
    )


@pytest.fixture(params=["0001", "0002", "0013"])
def former_schema(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def former(request: pytest.FixtureRequest, tmp_path: Path, former_schema: str) -> str:
    """A database of an earlier release with a mailout in every state."""
    file = f"sqlite:///{tmp_path}/former.db"
    url: str = file if request.param == "sqlite" else request.getfixturevalue("empty_postgres_url")
    with database_at(url) as database, database.migrating() as tx:
        config = migration_config()
        config.attributes["connection"] = tx
        command.upgrade(config, min(former_schema, "0002"))
        ledger = sa.text(
            "INSERT INTO ledger (one, ledger_id, pepper, created_at) VALUES (1, :id, :pepper, :at)"
        )
        tx.execute(ledger, {"id": LETTER_ID, "pepper": bytes(32), "at": _AT.strip("'")})
        fill(tx)
        command.upgrade(config, former_schema)
    return url


def test_mailouts_in_every_state_come_over(former: str, former_schema: str) -> None:
    """What they are shown as is what they were; their jobs are where they were, and claimed as before."""
    with database_at(former) as database:
        assert upgrade_schema(database) == former_schema
        store = SqlStore(database)
        for number, (status, phase, paused, cancelled, started) in enumerate(STATES.values(), start=10):
            mailout = store.mailouts.get(DEFAULT_TENANT, mailout_id(number))
            assert mailout is not None
            shown = (mailout.status, mailout.phase, mailout.paused, mailout.cancelled)
            assert shown == (status, phase, paused, cancelled)
            assert (mailout.started_at is not None, mailout.reason) == (started, "why")
            planned = 2 if phase in ("running", "over") else 0
            assert store.jobs.books(mailout.id).planned == planned
        check_counters(store)
        store.workers.register(worker_record(NOBODY))
        turn = store.ledger.turn([], ClaimRequest(NOBODY, "token", 50))
        assert {job.dispatch_id for job in turn.claimed} == {mailout_id(14)}
        assert {job.letter_id for job in turn.claimed} == {LETTER_ID}


JOB_STATES = ("scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt")


def test_jobs_in_every_state_come_over_whole(former: str) -> None:
    """Every column that a job had, and the attempts that ended before."""
    with database_at(former) as database:
        with database.writing() as tx:
            let_jobs_have_a_past(tx)
            before = jobs_in(tx)
        upgrade_schema(database)
        with database.reading() as tx:
            after = jobs_in(tx)
            assert tx.exec_driver_sql("SELECT count(*) FROM attempts").scalar_one() == 1
        assert {job["state"] for job in after} == set(JOB_STATES)
        assert [{name: new[name] for name in old} for old, new in zip(before, after, strict=True)] == before


def let_jobs_have_a_past(tx: sa.Connection) -> None:
    """Something in every column, and a job in every state."""
    moments = ("claimed", "settled", "death_proof", "send_event", "delivered", "bounced", "complained")
    texts = ("code", "reason", "message_id", "claim_token", "death_proof", "absence_proof")
    numbers = ("attempt", "tries", "accepted_attempt")
    changes = [
        *(f"{name}_at = {_AT}" for name in (*moments, "rejected", "duplicate")),
        *(f"{name} = '{name}'" for name in texts),
        *(f"{name} = {value}" for value, name in enumerate(numbers, start=2)),
        f"worker_id = '{LETTER_ID}'",
    ]
    tx.exec_driver_sql(f"UPDATE message_jobs SET {', '.join(changes)}")
    ids = [job["id"] for job in jobs_in(tx)]
    for job_id, state in zip(ids, JOB_STATES, strict=False):
        tx.exec_driver_sql(f"UPDATE message_jobs SET state = '{state}' WHERE id = '{job_id}'")
    tx.exec_driver_sql(
        f"INSERT INTO attempts (job_id, attempt, ended_at, outcome) VALUES ('{ids[0]}', 1, {_AT}, 'deferred')"
    )


def jobs_in(tx: sa.Connection) -> list[dict[str, object]]:
    rows = tx.exec_driver_sql("SELECT * FROM message_jobs ORDER BY id").mappings()
    return [{name.replace("mailout_id", "dispatch_id"): value for name, value in row.items()} for row in rows]


def test_reports_that_were_due_are_still_written(former: str) -> None:
    with database_at(former) as database:
        upgrade_schema(database)
        [(_, body)] = SqlStore(database).outbox.due("mailout.ended", 10)
        assert body["dispatch_id"] == mailout_id(17)


def test_every_foreign_key_is_kept(former: str) -> None:
    """SQLite does not look at them while tables are replaced, so nothing may point at nothing afterwards."""
    with database_at(former) as database:
        upgrade_schema(database)
        with database.writing() as tx:
            if database.is_sqlite:
                assert tx.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []
                assert tx.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
            keys = sa.inspect(tx).get_foreign_keys("planned_jobs")
        assert {key["referred_table"] for key in keys} == {"dispatches", "tenants"}


KILLED_BEFORE_ITS_COMMIT = """
import os, signal, sys
from sendonce.adapters.stores.sql import store
from sendonce.adapters.stores.sql.database import Database
store._first_rows = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
store.upgrade_schema(Database(sys.argv[1]))
"""


def test_an_upgrade_that_was_killed_is_done_by_the_next(former: str, former_schema: str) -> None:
    """All of it is one transaction: a SIGKILL at its end leaves the former schema, whole."""
    killed = subprocess.run([sys.executable, "-c", KILLED_BEFORE_ITS_COMMIT, former], check=False)
    assert killed.returncode == -signal.SIGKILL
    with database_at(former) as database:
        assert schema_version(database) == former_schema
        assert upgrade_schema(database) == former_schema
        assert SqlStore(database).jobs.books(mailout_id(14)).planned == 2
