"""Finish dispatches: run what a door left half planned, skip what was cancelled, end what is done.

What a wrong clock put off is called back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import BEFORE_ALL
from sendonce.domain.engine.tenants import DispatchId
from sendonce.flows.engine.batch_log import EndLog
from sendonce.ports.engine import SendingStore

log = logging.getLogger(__name__)

CHUNK = 5_000
LOOK_EVERY = 60.0
LOOK_AT_MOST = 25
BEYOND_EVERY_RETRY = timedelta(days=1)
"""A job that the engine put off so much further than any retry got its time from a clock that was wrong."""


class Finisher:
    """``pause`` lets others write between chunks; True from it means that the process is about to end.

    ``longest_retry`` is in seconds.
    """

    def __init__(self, store: SendingStore, pause: Callable[[], bool], longest_retry: float) -> None:
        self._store = store
        self._pause = pause
        self._longest_wait = timedelta(seconds=longest_retry) + BEYOND_EVERY_RETRY
        self._look_at = time.monotonic()
        self._looked_to = BEFORE_ALL
        self._ends = EndLog()

    def run(self) -> None:
        """One round. What nobody noted in the dispatch itself is looked for now and then only."""
        some: Sequence[DispatchId] = ()
        if time.monotonic() >= self._look_at:
            self._run_abandoned()
            some = self._next_to_look_at()
            for dispatch_id in self._store.dispatches.put_off_beyond(self._longest_wait, some):
                self._call_back(dispatch_id)
        for dispatch in self._store.dispatches.to_finish(among=some):
            if dispatch.cancelled:
                self._skip_cancelled(dispatch.id)
            self._complete(dispatch.id, dispatch.kind)
        self._ends.tell(time.monotonic())

    def _next_to_look_at(self) -> Sequence[DispatchId]:
        """Some at a time, all of them in turn: a round costs the same however many wait."""
        some = self._store.dispatches.running(self._looked_to, LOOK_AT_MOST)
        more = len(some) == LOOK_AT_MOST
        self._looked_to = some[-1] if more else BEFORE_ALL
        self._look_at = time.monotonic() + (0.0 if more else LOOK_EVERY)
        return some

    def _run_abandoned(self) -> None:
        """The process that planned it was killed. What it had planned is meant to leave, and a door that
        comes back may plan the rest."""
        for dispatch_id in self._store.dispatches.abandoned():
            if self._store.dispatches.run(dispatch_id):
                log.warning("a dispatch left half planned runs", extra={"fields": {"dispatch": dispatch_id}})

    def _skip_cancelled(self, dispatch_id: DispatchId) -> None:
        while self._store.dispatches.cancel_chunk(dispatch_id, CHUNK):
            if self._pause():
                return

    def _call_back(self, dispatch_id: DispatchId) -> None:
        """A clock that was years ahead left jobs that nobody would live to see sent."""
        while found := self._store.dispatches.call_back_chunk(dispatch_id, self._longest_wait, CHUNK):
            log.warning("letters due far ahead are due now", extra={"fields": {"jobs": found}})
            if self._pause():
                return

    def _complete(self, dispatch_id: DispatchId, kind: str) -> None:
        failpoint("complete-before")
        result = self._store.dispatches.complete(dispatch_id)
        if result is not None:
            self._ends.note(kind, dispatch_id, result)
