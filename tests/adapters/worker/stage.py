"""What tests of worker processes share."""

from __future__ import annotations

import sys
from pathlib import Path

from sendonce.adapters.stores.sql.store import open_store
from sendonce.adapters.wire_journal import StateDirectory
from sendonce.flows.engine.bury import bury_the_dead
from tests.crash.world import Process, World

STOPPING = [sys.executable, "-m", "tests.crash.stopping"]
JUMPING = [sys.executable, "-m", "tests.crash.jumping_clock"]


def accepted(world: World) -> list[str]:
    return [row["to"][0] for row in world.sandbox.acceptances()]


def stopped(worker: Process) -> bool:
    return Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def bury(world: World) -> int:
    """Bury by hand what is dead; how many workers were."""
    store = open_store(world.database_url)
    try:
        state = StateDirectory(Path(world.environment["STATE_DIR"]), store.ledger.identity().ledger_id)
        return len(bury_the_dead(store, state, retry_after=0.0))
    finally:
        store.close()
