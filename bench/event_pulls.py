"""Pulls events from a queue until it is drained, as a worker does beside its letters.

    python -m bench.event_pulls RECEIVERS [former]

With ``former`` each event has a transaction of its own, as before they shared commits. Prints JSON.
"""

from __future__ import annotations

import json
import sys
import time

import uvloop

from bench.former_events import FormerEvents
from bench.processes import BenchFailed
from sendonce.adapters.metrics import Metrics
from sendonce.adapters.stores.sql import store as sql_store
from sendonce.flows.engine.take_events import EventIntake
from sendonce.settings import load_settings
from sendonce.wiring.events import event_queue, make_event_puller
from sendonce.wiring.stores import open_store


def main(receivers: int) -> float:
    """How many seconds it took. Nothing may be left in the queue."""
    settings = load_settings(dotenv=None)
    store = open_store(settings)
    puller = make_event_puller(settings, store, Metrics(), receivers=receivers)
    assert puller is not None
    began = time.monotonic()
    uvloop.run(puller.run_once())
    seconds = time.monotonic() - began
    left = event_queue(settings).waiting()
    if left:
        raise BenchFailed(f"{left} messages are still in the queue")
    store.close()
    return seconds


if __name__ == "__main__":
    receivers, *former = sys.argv[1:]
    if former:
        EventIntake.most_together = 1
        sql_store.SqlEvents = FormerEvents  # type: ignore[attr-defined]
    print(json.dumps({"seconds": main(int(receivers))}))
