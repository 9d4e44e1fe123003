"""The house duties beside sending: start what is due, plan what is started, finish what is done."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sendonce.domain.failpoints import failpoint
from sendonce.domain.mailouts import Mailout, MailoutStatus, Phase
from sendonce.ports import Store

log = logging.getLogger(__name__)

CHUNK = 5_000


class Steward:
    """``planner`` names this process in the planning lease.

    ``pause`` lets others write between chunks; True from it means that the process is about to end.
    ``start_due`` starts the mailouts whose time has come.
    """

    def __init__(
        self, store: Store, planner: str, pause: Callable[[], bool], start_due: Callable[[], None]
    ) -> None:
        self._store = store
        self._start_due = start_due
        self._planner = planner
        self._pause = pause

    def run(self) -> bool:
        """One round; whether a mailout is still being read or planned (by anybody)."""
        self._start_due()
        planning = False
        for mailout in self._store.mailouts.with_status(MailoutStatus.SENDING):
            if mailout.phase == Phase.FETCHING or (
                mailout.phase == Phase.PLANNING and not self.plan(mailout)
            ):
                planning = True
            if mailout.cancelled:
                self._skip_cancelled(mailout)
            self._complete(mailout)
        return planning

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

    def _complete(self, mailout: Mailout) -> None:
        failpoint("complete-before")
        status = self._store.mailouts.complete(mailout.id)
        if status is not None:
            log.info("mailout over", extra={"fields": {"mailout": mailout.id, "status": str(status)}})
