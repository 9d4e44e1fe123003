"""On a server that strangers can reach (Supabase), nobody but the owner reads the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from alembic import command
from sqlalchemy.engine import make_url

from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.store import SqlStore, migration_config, open_store, upgrade_schema
from sendonce.errors import RefusedByRule
from tests.conformance.stage import ACCEPTED, Stage
from tests.conftest import migrate
from tests.postgres import PostgresServer

STRANGERS = ("anon", "authenticated")


@pytest.fixture
def supabase_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database as Supabase makes it: whatever appears in ``public`` is granted to the public key."""
    for role in STRANGERS:
        postgres_server.execute(
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    with postgres_server.database() as url:
        for role in STRANGERS:
            run(url, f"GRANT USAGE ON SCHEMA public TO {role}")
            for what in ("TABLES", "SEQUENCES"):
                run(url, f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON {what} TO {role}")
        yield url


def run(url: str, statement: str, role: str | None = None) -> list[tuple[object, ...]]:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        if role is not None:
            connection.execute(f"SET ROLE {role}".encode())
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def unguarded(url: str, schema: str = "public") -> list[str]:
    """Straight from the catalogue: every table of the schema, whoever made it."""
    query = f"""SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace
        AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity"""
    return [str(row[0]) for row in run(url, query)]


def relations(url: str) -> list[str]:
    query = """SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')"""
    return [str(row[0]) for row in run(url, query)]


@contextmanager
def store_at(url: str, schema: str | None = None) -> Iterator[SqlStore]:
    with closing(open_store(url, schema=schema)) as store:
        yield store


def test_every_table_has_row_level_security(supabase_url: str) -> None:
    migrate(supabase_url)
    assert len(relations(supabase_url)) > 15
    assert unguarded(supabase_url) == []


def test_a_database_of_the_first_schema_gets_it_too(supabase_url: str) -> None:
    with closing(Database(supabase_url)) as database, database.writing() as tx:
        config = migration_config()
        config.attributes["connection"] = tx
        command.upgrade(config, "0001")
    assert "subscribers" in unguarded(supabase_url)
    migrate(supabase_url)
    assert unguarded(supabase_url) == []


@pytest.mark.parametrize("role", STRANGERS)
def test_the_public_key_reads_nothing(supabase_url: str, role: str) -> None:
    """Not a table, and not a view, which would look with the owner's eyes."""
    migrate(supabase_url)
    with store_at(supabase_url) as store:
        Stage(store).running(2)
    names = relations(supabase_url)
    for name in names:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(supabase_url, f"SELECT * FROM {name}", role)
    # Somebody grants it all again, by hand or by a tool: there is still nothing to see.
    run(supabase_url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    assert {name: run(supabase_url, f"SELECT * FROM {name}", role) for name in names} == {
        name: [] for name in names
    }


def test_a_role_that_sees_no_rows_is_refused(supabase_url: str, postgres_server: PostgresServer) -> None:
    """To it all who said no would look as if they had not."""
    migrate(supabase_url)
    postgres_server.execute(
        "DO $$ BEGIN CREATE ROLE other LOGIN PASSWORD 'other'; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    run(supabase_url, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO other")
    theirs = make_url(supabase_url).set(username="other", password="other")
    with pytest.raises(RefusedByRule, match=r"hides the rows of .* from the role 'other'"):
        open_store(theirs.render_as_string(hide_password=False))
    run(supabase_url, "DROP OWNED BY other")


def test_the_owner_sees_what_is_exposed(supabase_url: str) -> None:
    migrate(supabase_url)
    with store_at(supabase_url) as store:
        assert store.exposures() == []
        run(supabase_url, "ALTER TABLE subscribers DISABLE ROW LEVEL SECURITY")
        run(supabase_url, "ALTER VIEW send_logs RESET (security_invoker)")
        run(supabase_url, "GRANT SELECT ON send_logs TO anon")
        assert store.exposures() == ["send_logs", "subscribers"]


def test_the_tables_may_live_in_a_schema_of_their_own(empty_postgres_url: str) -> None:
    """Made by the upgrade, used by every statement, and nothing of ours is anywhere else."""
    with closing(Database(empty_postgres_url, "mail")) as database:
        assert upgrade_schema(database) is None
    assert relations(empty_postgres_url) == []
    assert unguarded(empty_postgres_url, "mail") == []
    with store_at(empty_postgres_url, "mail") as store:
        stage = Stage(store)
        mailout_id = stage.running(3)
        for job in stage.claim(limit=3).claimed:
            stage.settle(job, ACCEPTED)
        assert store.jobs.books(mailout_id).sent == 3
        assert str(store.dispatches.complete(mailout_id)) == "sent"
        assert store.exposures() == []
    assert relations(empty_postgres_url) == []


def test_the_setting_chooses_the_schema_and_the_doctor_looks_there(
    empty_postgres_url: str, tmp_path: Path
) -> None:
    """DATABASE_SCHEMA, for the upgrade as for every other command."""
    settings = {
        "DATABASE_URL": empty_postgres_url,
        "DATABASE_SCHEMA": "mail",
        "TRANSPORT": "maildir",
        "STATE_DIR": str(tmp_path / "state"),
    }

    def sendonce(*words: str) -> str:
        command = [sys.executable, "-m", "sendonce", *words]
        done = subprocess.run(command, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.stdout

    def exposure() -> str:
        checks = json.loads(sendonce("doctor", "--json"))["checks"]
        return str(next(check["verdict"] for check in checks if check["name"] == "exposure"))

    sendonce("db", "upgrade")
    assert "is on the list" in sendonce("subscribers", "add", "ann@example.com")
    assert run(empty_postgres_url, "SELECT email FROM mail.subscribers") == [("ann@example.com",)]
    assert relations(empty_postgres_url) == []
    assert exposure() == "ok"
    run(empty_postgres_url, "ALTER TABLE mail.subscribers DISABLE ROW LEVEL SECURITY")
    assert exposure() == "stop"
