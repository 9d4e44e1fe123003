"""Whose letters they are: found by person among millions, without making planning slower.

The keys of people are hashes, so an index of jobs by key would dirty a page of its own for each job that is
planned. Instead, jobs that were planned some time ago are put on shelves: fifty thousand at a time, in the
order of their keys, which is the order of the pages too. A search looks into each shelf, and through the
jobs that are on none yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import duty_cursors, person_index, planned_jobs
from sendonce.adapters.stores.sql.arrays import plain_array
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.ids import time_of
from sendonce.domain.engine.jobs import BEFORE_ALL

J, P, C = planned_jobs.c, person_index.c, duty_cursors.c
SHELVING = "people.shelved"
SHELF = 50_000
CHUNK = 5_000
# Longer than any planning transaction: behind the last job on a shelf no other appears.
SETTLED_AFTER = timedelta(hours=1)
_IN = 500


def jobs_of(tx: Connection, key: str) -> list[str]:
    """The ids of all jobs with this suppression key, in their order."""
    shelves = tx.execute(sa.select(sa.func.max(P.shelf))).scalar_one_or_none()
    candidates: set[str] = set()
    if shelves is not None:
        on_shelves = sa.select(P.job_id).where(P.shelf.in_(range(shelves + 1)), P.key_hash == _hash(key))
        candidates.update(tx.execute(on_shelves).scalars())
    own = sa.select(J.id).where(J.suppression_key == key)
    found = set(tx.execute(own.where(J.id > _shelved_to(tx))).scalars())
    ids = sorted(candidates)
    for start in range(0, len(ids), _IN):
        found.update(tx.execute(own.where(J.id.in_(ids[start : start + _IN]))).scalars())
    return sorted(found)


def add_shelf(database: Database) -> bool:
    """Put the next jobs on a shelf; False where there are too few, or somebody rotated the keys meanwhile.

    Whoever is killed in it leaves entries that do no harm: the next shelf has them too.
    """
    with database.reading() as tx:
        pepper, after = pepper_in_force(database, tx), _shelved_to(tx)
        jobs = sa.select(J.id).where(J.id > after).order_by(J.id)
        last = tx.execute(jobs.offset(SHELF - 1).limit(1)).scalar_one_or_none()
        if last is None or time_of(last) > database.now(tx) - SETTLED_AFTER:
            return False
        rows = tx.execute(sa.select(J.suppression_key, J.id).where(J.id > after, J.id <= last))
        entries = sorted((_hash(key), job_id) for key, job_id in rows)
        shelf = (tx.execute(sa.select(sa.func.max(P.shelf))).scalar_one_or_none() or 0) + 1
    for start in range(0, len(entries), CHUNK):
        with database.writing() as tx:
            hold_pepper(database, tx)
            if pepper_in_force(database, tx) != pepper:
                return False
            _put(database, tx, shelf, entries[start : start + CHUNK])
            if start + CHUNK >= len(entries):
                _advance(database, tx, last)
    return True


def clear_shelves(tx: Connection) -> None:
    """The keys are others now."""
    tx.execute(person_index.delete())
    tx.execute(duty_cursors.delete().where(C.duty == SHELVING))


def look_again_behind(tx: Connection, first: str) -> None:
    """Jobs are planned from ``first`` on. If that is behind the cursor, a clock was set back: start anew."""
    tx.execute(duty_cursors.delete().where(C.duty == SHELVING, C.last_id >= first))


def _put(database: Database, tx: Connection, shelf: int, entries: Sequence[tuple[int, str]]) -> None:
    if database.is_sqlite:
        statement = "INSERT OR IGNORE INTO person_index (shelf, key_hash, job_id) VALUES (?, ?, ?)"
        database.driver(tx).executemany(statement, [(shelf, *entry) for entry in entries])
        return
    statement = (
        "INSERT INTO person_index (shelf, key_hash, job_id) SELECT %(shelf)s, hash, job "
        "FROM unnest(%(hashes)s::bigint[], %(jobs)s::uuid[]) AS e (hash, job) ON CONFLICT DO NOTHING"
    )
    hashes, jobs = zip(*entries, strict=True)
    values = {"shelf": shelf, "hashes": plain_array(hashes), "jobs": plain_array(jobs)}
    database.driver(tx).execute(statement, values)


def _advance(database: Database, tx: Connection, last: str) -> None:
    cursor = insert_for(database)(duty_cursors).values(duty=SHELVING, last_id=last)
    tx.execute(cursor.on_conflict_do_update(index_elements=["duty"], set_={"last_id": last}))


def _shelved_to(tx: Connection) -> str:
    query = sa.select(C.last_id).where(C.duty == SHELVING)
    return tx.execute(query).scalar_one_or_none() or BEFORE_ALL


def _hash(key: str) -> int:
    """Enough of a key for an entry of a few bytes. What it finds is compared as a whole."""
    return int(key[-15:], 16)
