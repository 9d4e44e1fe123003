"""The duties of door A beside sending: start what is due, plan what is started."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.mailouts.mailouts import Mailout, Phase
from sendonce.ports.mailouts import MailoutStore

log = logging.getLogger(__name__)

CHUNK = 5_000


class Steward:
    """``planner`` names this process in the planning lease.

    ``pause`` lets others write between chunks; True from it means that the process is about to end.
    ``start_due`` starts the mailouts whose time has come.
    """

    def __init__(
        self,
        store: MailoutStore,
        planner: str,
        pause: Callable[[], bool],
        start_due: Callable[[], None],
    ) -> None:
        self._store = store
        self._start_due = start_due
        self._planner = planner
        self._pause = pause

    def run(self) -> bool:
        """One round; whether a mailout is still being read or planned (by anybody)."""
        self._start_due()
        waiting = [
            mailout
            for mailout in self._store.mailouts.being_prepared()
            if mailout.phase == Phase.FETCHING or not self.plan(mailout)
        ]
        return bool(waiting)

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
