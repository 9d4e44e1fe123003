"""The house duties beside sending: start what is due, plan what is started, finish what is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus, Phase
from sendonce.ports.mailouts import MailoutStore

log = logging.getLogger(__name__)

CHUNK = 5_000
CALL_BACK_EVERY = 60.0
BEYOND_EVERY_RETRY = timedelta(days=1)
"""A job due so much later than the longest wait for a retry got its time from a clock that was wrong."""


class Steward:
    """``planner`` names this process in the planning lease.

    ``pause`` lets others write between chunks; True from it means that the process is about to end.
    ``start_due`` starts the mailouts whose time has come. ``longest_retry`` is in seconds.
    """

    def __init__(
        self,
        store: MailoutStore,
        planner: str,
        pause: Callable[[], bool],
        start_due: Callable[[], None],
        longest_retry: float,
    ) -> None:
        self._store = store
        self._start_due = start_due
        self._planner = planner
        self._pause = pause
        self._longest_wait = timedelta(seconds=longest_retry) + BEYOND_EVERY_RETRY
        self._call_back_at = time.monotonic()

    def run(self) -> bool:
        """One round; whether a mailout is still being read or planned (by anybody)."""
        self._start_due()
        planning = False
        calls_back = time.monotonic() >= self._call_back_at
        if calls_back:
            self._call_back_at = time.monotonic() + CALL_BACK_EVERY
        for mailout in self._store.mailouts.with_status(MailoutStatus.SENDING):
            if mailout.phase == Phase.FETCHING or (
                mailout.phase == Phase.PLANNING and not self.plan(mailout)
            ):
                planning = True
            if mailout.cancelled:
                self._skip_cancelled(mailout)
            elif calls_back:
                self._call_back(mailout)
            self._complete(mailout)
        return planning

    def has_due(self) -> bool:
        """Whether a mailout's time has come."""
        return bool(self._store.mailouts.due())

    def plan(self, mailout: Mailout) -> bool:
        """Plan chunk by chunk; False when another planner is at it, or this process is about to end."""
        while True:
            progress = self._store.mailouts.plan_chunk(mailout.id, self._planner, CHUNK)
            failpoint("plan-chunk")
            if progress is None:
                return False
            if progress.finished:
                log.info("planned", extra={"fields": {"mailout": mailout.id}})
                return True
            if self._pause():
                return False

    def _skip_cancelled(self, mailout: Mailout) -> None:
        while self._store.mailouts.cancel_chunk(mailout.id, CHUNK):
            if self._pause():
                return

    def _call_back(self, mailout: Mailout) -> None:
        """A clock that was years ahead left jobs that nobody would live to see sent."""
        while found := self._store.mailouts.call_back_chunk(mailout.id, self._longest_wait, CHUNK):
            log.warning("letters due far ahead are due now", extra={"fields": {"jobs": found}})
            if self._pause():
                return

    def _complete(self, mailout: Mailout) -> None:
        failpoint("complete-before")
        status = self._store.mailouts.complete(mailout.id)
        if status is not None:
            log.info("mailout over", extra={"fields": {"mailout": mailout.id, "status": str(status)}})
