"""What a worker asks of SQLite every second costs the same beside a million letters of former mailouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import dispatches
from sendonce.adapters.stores.sql import places
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.campaigns.campaigns import CampaignId
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.doubts import Doubt
from sendonce.domain.engine.jobs import ClaimRequest, JobState
from sendonce.domain.engine.tenants import DispatchId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from tests.conformance.stage import LONG_AGO, NOBODY, Stage, address, worker_record
from tests.conftest import OpenStore

# They hold the jobs of one state, and those are few: two groups, some doubts, the rest of a mailout.
OF_A_STATE = ("job_states_scheduled", "job_states_sending", "job_states_in_doubt", "job_states_dead")
# The view of jobs is shown as the tables that it joins.
ABOUT_JOBS = re.compile("message_jobs|job_states|planned_jobs")


def running(store: SqlStore) -> str:
    dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("test", "owner"))
    assert store.dispatches.run(dispatch.id)
    return dispatch.id


def claim_twice(store: SqlStore) -> None:
    store.workers.register(worker_record("w"))
    for _ in range(2):
        store.ledger.turn([], ClaimRequest("w", "token", 50, retry=True))


ASKED_OFTEN: dict[str, Callable[[SqlStore], object]] = {
    "what one worker has": lambda store: store.ledger.sending_of("w"),
    "the oldest claim": lambda store: store.ledger.oldest_claim(),
    "doubts that a person looks at": lambda store: store.jobs.list(states=[JobState.IN_DOUBT]),
    "jobs given up": lambda store: store.jobs.list(states=[JobState.DEAD]),
    "doubts": lambda store: store.ledger.doubts(100, transport="ses"),
    "when the next is due": lambda store: store.jobs.oldest_due(),
    "dispatches with letters due far ahead": lambda store: store.dispatches.put_off_beyond(
        timedelta(days=1), [DispatchId(NOBODY)]
    ),
    "letters due far ahead": lambda store: store.dispatches.call_back_chunk(
        running(store), timedelta(days=1), 100
    ),
    "whether a mailout is over": lambda store: store.dispatches.complete(running(store)),
    "a claim made twice": lambda store: claim_twice(store),
    "a worker's leave": lambda store: store.workers.end("w", "left"),
    "the gauges": lambda store: store.gauge_log.take(),
}


@contextmanager
def overheard(engine: sa.Engine) -> Iterator[list[tuple[str, Any]]]:
    statements: list[tuple[str, Any]] = []

    def listen(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        statements.append((statement, values))

    sa.event.listen(engine, "before_cursor_execute", listen)
    yield statements
    sa.event.remove(engine, "before_cursor_execute", listen)


@pytest.mark.parametrize("question", ASKED_OFTEN)
def test_only_the_jobs_of_a_state_are_looked_at(question: str, sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            ASKED_OFTEN[question](store)
        about_jobs = [each for each in statements if ABOUT_JOBS.search(each[0])]
        assert about_jobs
        with engine.connect() as connection:
            for statement, values in about_jobs:
                explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
                looks = [row[3] for row in explained if ABOUT_JOBS.search(row[3])]
                through_a_state = [step for step in looks if any(index in step for index in OF_A_STATE)]
                assert through_a_state, explained
                assert not [s for s in looks if s.startswith("SCAN") and s not in through_a_state], explained


WATCHED: dict[str, Callable[[SqlStore], object]] = {
    "job_states_unheard": lambda store: store.gauge_log.unheard("ses", LONG_AGO, store.ledger.now()),
    "delivery_events_received": lambda store: store.gauge_log.last_event(),
}


@pytest.mark.parametrize("index", WATCHED)
def test_the_watch_reads_the_newest_rows_by_their_index(index: str, sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            WATCHED[index](store)
        statement, values = statements[-1]
        with engine.connect() as connection:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert any(index in step for step in plan), plan
        assert not any("TEMP B-TREE" in step for step in plan), plan


def test_the_books_of_tenants_leave_out_what_is_long_over(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            store.gauge_log.take()
        ((statement, values),) = [each for each in statements if "UNION" in each[0]]
        with engine.connect() as connection:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
        looks = [step for step in plan if " dispatches" in step]
        assert any("dispatches_open" in step for step in looks), plan
        assert all("dispatches_open" in step or "(id>?)" in step for step in looks), plan


ASKED_THROUGH_LETTERS: dict[str, Callable[[SqlStore], object]] = {
    "how many letters were written": lambda store: store.written_letters.count(DEFAULT_TENANT),
    "letters that were written": lambda store: store.written_letters.all(DEFAULT_TENANT, limit=10),
    "the leads of a campaign": lambda store: list(store.campaigns.leads_of(CampaignId(NOBODY))),
    "the ends of a campaign's letters": lambda store: store.campaigns.ends(CampaignId(NOBODY), 10),
    "a campaign's record": lambda store: store.campaigns.record(CampaignId(NOBODY), 10),
    "how letters to a company went": lambda store: store.funnels.outreach(DEFAULT_TENANT, LONG_AGO),
}


@pytest.mark.parametrize("question", ASKED_THROUGH_LETTERS)
def test_no_question_gathers_all_jobs_first(question: str, sqlite_url: str) -> None:
    """As SQLite does with a view of two tables behind a LEFT JOIN."""
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            ASKED_THROUGH_LETTERS[question](store)
        with engine.connect() as connection:
            steps = [
                row[3]
                for statement, values in statements
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            ]
    looks = [step for step in steps if ABOUT_JOBS.search(step)]
    assert looks
    assert not [step for step in looks if not step.startswith("SEARCH")], steps


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_claim_reads_no_dispatch_of_another_sender(kind: str, open_any_store: OpenStore) -> None:
    """Nor does the look for senders that have letters read more than the first of each."""
    with open_any_store(kind) as store:
        assert isinstance(store, SqlStore)
        engine = store.database.engine
        with store.database.writing() as tx:
            tx.execute(dispatches.insert(), [_due_dispatch(n) for n in range(2000)])
            tx.exec_driver_sql("ANALYZE")
        with overheard(engine) as statements:
            store.senders.waiting()
        statement, values = statements[-1]
        with engine.connect() as connection:
            explain = "EXPLAIN QUERY PLAN" if kind == "sqlite" else "EXPLAIN"
            plan = [str(row) for row in connection.exec_driver_sql(f"{explain} {statement}", values)]
        looks = [step for step in plan if "dispatches" in step]
        assert looks
        assert all("dispatches_of_senders" in step for step in looks), "\n".join(plan)
        stage = Stage(store)
        claimed = running_job(store)
        assert [job.dispatch_id for job in stage.claim(limit=2).claimed] == [claimed]


def _due_dispatch(number: int) -> dict[str, Any]:
    moment = datetime(2026, 11, 15, tzinfo=UTC)
    dispatch_id = f"01900000-0000-7000-8000-{number:012}"
    own = {"id": dispatch_id, "tenant_id": DEFAULT_TENANT, "kind": "test", "owner_id": "owner"}
    due = {"phase": "running", "awake": True, "due_from": moment, "sender_id": NOBODY}
    return {**own, **due, "created_at": moment, "updated_at": moment}


def running_job(store: SqlStore) -> str:
    """A dispatch of the environment's own sender with one job."""
    dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("test", "owner"))
    store.dispatches.plan(dispatch.id, [NewJob(address(1))])
    assert store.dispatches.run(dispatch.id)
    return dispatch.id


def test_the_surroundings_of_a_doubt_are_found_without_a_walk_through_history(sqlite_url: str) -> None:
    """Letters that were not heard of by their own index, events by the time of their arrival, jobs by id."""
    moment = datetime(2026, 11, 15, tzinfo=UTC)
    doubt = Doubt("j", 1, "m", "ses", "ses/here/set", moment, moment)
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            store.ledger.surroundings(doubt)
        with engine.connect() as connection:
            steps = [
                row[3]
                for statement, values in statements
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            ]
    jobs = [step for step in steps if ABOUT_JOBS.search(step)]
    events = [step for step in steps if "delivery_events" in step]
    assert any("job_states_unheard" in step for step in jobs)
    assert [step for step in jobs if step.startswith("SCAN")] == []
    assert [step for step in events if "delivery_events_received" not in step] == []


def test_postgres_finds_a_due_job_by_its_index(postgres_url: str) -> None:
    """Also where nearly all jobs are due, and the server thinks that the first row it reads will do."""
    with closing(open_store(postgres_url)) as store:
        Stage(store).running(3000)
        with store.database.writing() as tx:
            tx.exec_driver_sql("ANALYZE")
            columns = store.database.server.columns(tx)
            statement = store.database.statement("open_claim").replace("{fingerprint}", columns)
            statement = statement.replace("{limit}", "50")
            values = {"worker": NOBODY, "token": "t", "claims": 0, "anyway": False, "sender": ""}
            values |= {"sender_id": "", "known_start": None, **places.Places().last("")}
            explained = store.database.driver(tx).execute(f"EXPLAIN {statement}", values)
            plan = [row[0] for row in explained if ABOUT_JOBS.search(row[0])]
    assert plan
    assert all("job_states_scheduled" in step for step in plan), plan


def test_postgres_reads_no_jobs_of_other_dispatches(postgres_url: str) -> None:
    """Whether a dispatch is over, also while the server's statistics are older than the jobs that wait."""
    with closing(open_store(postgres_url)) as store:
        engine = store.database.engine
        Stage(store).running(3000)
        with store.database.writing() as tx:
            tx.exec_driver_sql("UPDATE job_states SET state = 'sent'")
            tx.exec_driver_sql("ANALYZE")
        waiting = [DispatchId(running_job(store)) for _ in range(5)]
        with overheard(engine) as statements:
            assert store.dispatches.to_finish(among=waiting) == []
        [(statement, values)] = [each for each in statements if ABOUT_JOBS.search(each[0])]
        with engine.connect() as connection:
            explained = connection.exec_driver_sql(f"EXPLAIN {statement}", values)
            plan = "\n".join(row[0] for row in explained)
    assert "job_states_scheduled" in plan
    assert "hashed" not in plan, plan


def test_claims_beside_an_old_snapshot_look_at_each_job_a_few_times(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While pg_dump runs, no claimed job leaves the index: a claim begins where the last one ended."""
    monkeypatch.setattr(places, "GOOD_FOR", timedelta(hours=1))
    url = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as dump:
        dump.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        dump.execute("SELECT 1 FROM message_jobs").fetchone()
        with closing(open_store(postgres_url)) as store:
            stage = Stage(store)
            stage.running(1000)
            worker = stage.worker()
            claimed = [len(stage.claim(worker, limit=20).claimed) for _ in range(50)]
        dump.rollback()
        by_index, by_scan = dump.execute(_ENTRIES_READ).fetchone() or (None, None)
    assert claimed == [20] * 50
    # From the first job on it would be 25,000 for the claims alone.
    assert by_index is not None
    assert by_index < 5000
    assert by_scan == 0


_ENTRIES_READ = """
    SELECT i.idx_tup_read, t.seq_tup_read FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t USING (relid)
    WHERE i.indexrelname = 'job_states_scheduled'
"""


def test_a_door_with_a_million_times_of_its_own_is_not_walked_through(sqlite_url: str) -> None:
    """The look for letters that a wrong clock put off, once a minute, is among those tried before."""
    with closing(open_store(sqlite_url)) as store:
        engine = store.database.engine
        with overheard(engine) as statements:
            store.dispatches.put_off_beyond(timedelta(days=1), [DispatchId(NOBODY)])
        [(statement, values)] = [each for each in statements if ABOUT_JOBS.search(each[0])]
        with engine.connect() as connection:
            explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        assert any("job_states_retried" in row[3] for row in explained), explained
