"""The audit log: whatever is done to its rows from outside shows, and what sendonce does itself does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from sendonce.adapters.stores.schema import audit_log
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.flows.people.add_client import add_tenant
from sendonce.flows.people.verify_audit import verify_audit

C = audit_log.c
JANE = parse_address("jane.doe@example.com")


def act(store: SqlStore, count: int = 3) -> None:
    for number in range(count):
        add_tenant(store, f"client-{number}", "Client", "ann")


def spoil(store: SqlStore, statement: Any) -> None:
    with store.database.writing() as tx:
        assert tx.execute(statement).rowcount == 1


def faults(store: SqlStore, head: str | None = None) -> tuple[str, ...]:
    return verify_audit(store.audit_log, head).faults


def test_what_was_done_is_a_whole_chain(shared_store: SqlStore) -> None:
    assert verify_audit(shared_store.audit_log).entries == 0
    act(shared_store)
    report = verify_audit(shared_store.audit_log)
    assert (report.entries, report.faults, report.before_the_chain) == (3, (), 0)
    newest = shared_store.audit_log.all(1)[0]
    assert (newest.actor, newest.action, newest.subject) == ("ann", "add_tenant", "client-2")
    assert report.head == newest.hash


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (audit_log.update().values(actor="bob"), "was changed"),
        (audit_log.update().values(details={"name": "Other"}), "was changed"),
        (audit_log.update().values(at=datetime(2020, 1, 1, tzinfo=UTC)), "does not follow"),
        (audit_log.update().values(salt=None, subject="x"), "no erasure says so"),
        (audit_log.update().values(digest="0" * 64), "does not follow"),
        (audit_log.delete(), "are missing"),
    ],
    ids=["actor", "details", "time", "redacted", "digest", "deleted"],
)
def test_tampering_shows(sqlite_url: str, statement: Any, told: str) -> None:
    store = open_store(sqlite_url)
    act(store)
    spoil(store, statement.where(C.number == 2))
    assert told in " ".join(faults(store))
    store.close()


def test_a_noted_head_tells_of_a_log_that_was_cut_short(shared_store: SqlStore) -> None:
    """Without its last entry the log is whole in itself: only a hash from outside tells."""
    act(shared_store)
    head = verify_audit(shared_store.audit_log).head
    act(shared_store, 4)
    assert faults(shared_store, head) == ()
    spoil(shared_store, audit_log.delete().where(C.number == 4))
    spoil(shared_store, audit_log.delete().where(C.number == 3))
    assert faults(shared_store) == ()
    assert "not in the chain" in faults(shared_store, head)[0]


def test_erasing_and_rotating_keep_the_chain(shared_store: SqlStore) -> None:
    """The entry loses its name, the erasure says so, and nobody can test a guess against the digest."""
    shared_store.suppressions.add(EVERYBODY, JANE, SuppressionReason.MANUAL)
    shared_store.suppressions.remove(EVERYBODY, JANE, "ann")
    shared_store.people.erase(JANE, "ann")
    shared_store.keys.rotate("ann")
    report = verify_audit(shared_store.audit_log)
    assert (report.faults, report.redacted) == ((), 1)
    (entry,) = [each for each in shared_store.audit_log.all(9) if each.action == "unsuppress"]
    assert entry.salt is None
    assert "jane" not in entry.subject


def test_writers_at_the_same_time_make_one_chain(shared_store: SqlStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: add_tenant(shared_store, f"client-{n}", "Client", "ann"), range(24)))
    report = verify_audit(shared_store.audit_log)
    assert (report.entries, report.faults) == (24, ())


def test_what_is_rolled_back_leaves_no_entry_to_the_next(shared_store: SqlStore) -> None:
    def fail() -> None:
        with shared_store.database.writing() as tx:
            insert_audit(tx, shared_store.database.now(tx), "ann", "fail", "x", {})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    act(shared_store, 1)
    assert [entry.action for entry in shared_store.audit_log.entries()] == ["add_tenant"]
