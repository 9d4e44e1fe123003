"""What the scenes count is what the burials tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from sendonce.adapters.stores.sql.store import open_store
from sendonce.adapters.wire_journal import WireLog
from sendonce.domain.engine.outcomes import InDoubt
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.flows.engine.bury import bury_if_dead
from tests.conformance.stage import Stage, worker_record
from tests.crash.scenes import doubts_by_death
from tests.crash.world import Eye

PID = 4711


class OneGrave:
    """Knows what the dead worker's journal says."""

    lock_domain = "domain"

    def __init__(self, journal: WireLog) -> None:
        self._journal = journal

    @contextmanager
    def open_if_dead(self, worker: WorkerRecord) -> Iterator[WireLog]:
        yield self._journal

    def sees_alive(self, worker: WorkerRecord) -> bool:
        return False


def test_a_reply_lost_before_the_death_is_not_counted_as_a_doubt_by_death(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        stage = Stage(store)
        stage.running(recipients=3)
        record = replace(worker_record("dead"), pid=PID)
        store.workers.register(record)
        lost, wired, _never = stage.claim("dead").claimed
        said = {(lost.id, 1): InDoubt("the reply was lost"), (wired.id, 1): None}
        bury_if_dead(store, OneGrave(WireLog(said, True, "its lock is free", claims=1)), record, 0.0)
        assert stage.store.jobs.books(lost.dispatch_id).in_doubt == 2
    eye = Eye(sqlite_url)
    assert doubts_by_death(eye, PID) == 1
    assert doubts_by_death(eye, PID + 1) == 0
    eye.let_go()
