"""Settle doubt over SMTP by the folder of sent letters, where the server itself files what it takes.

in the folder        ─► sent
not in the folder    ─► scheduled again, once the quiet time is over and its neighbours are found there
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sendonce.domain.engine.doubts import Doubt
from sendonce.domain.engine.events import DeliveryEvent, EventKind
from sendonce.domain.engine.jobs import BEFORE_ALL
from sendonce.domain.engine.sent_folder import NEIGHBOURS, is_absent
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.ports.engine import EngineStore

log = logging.getLogger(__name__)

MOST_AT_ONCE = 200


class SentFolder(Protocol):
    def holds(self, job_id: str) -> bool:
        """Whether a letter of this job is there. Raises Unavailable."""


class SentAccount(Protocol):
    name: str

    def opened_sent(self) -> AbstractContextManager[SentFolder]:
        """The folder of sent letters. Raises Unavailable, also where there is none."""


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Only letters of this sender were filed by this account. ``every`` is the rest between two looks."""

    sender_id: str
    quiet: timedelta
    every: timedelta


class SentSearcher:
    """Kept by a worker for its whole life, so that it knows when it looked last."""

    def __init__(self, account: SentAccount, store: EngineStore, rules: SearchRules) -> None:
        self._account = account
        self._store = store
        self._rules = rules
        self._looked_at = float("-inf")

    async def run(self) -> int:
        """One round; how many jobs were proven absent and scheduled again. Raises Unavailable."""
        if time.monotonic() - self._looked_at < self._rules.every.total_seconds():
            return 0
        self._looked_at = time.monotonic()
        return await to_daemon_thread(self._look)

    def _look(self) -> int:
        doubts = list(self._own_doubts())
        if not doubts:
            return 0
        with self._account.opened_sent() as sent:
            absent = [doubt for doubt in doubts if not self._found(doubt, sent) and self._absent(doubt, sent)]
        if not absent:
            return 0
        refs = [(doubt.job_id, doubt.attempt) for doubt in absent]
        proof = f"not among the sent letters of {self._account.name}, and its neighbours are"
        moved = self._store.ledger.prove_absence(refs, proof)
        log.warning("not taken by the provider, scheduled again", extra={"fields": {"jobs": moved}})
        return moved

    def _own_doubts(self) -> Iterator[Doubt]:
        senders: dict[str, str | None] = {}
        last = BEFORE_ALL
        while page := self._store.ledger.doubts(MOST_AT_ONCE, after=last, transport="smtp"):
            for doubt in page:
                if doubt.dispatch_id not in senders:
                    dispatch = self._store.dispatches.get(doubt.dispatch_id)
                    senders[doubt.dispatch_id] = dispatch.sender_id if dispatch else None
                if senders[doubt.dispatch_id] == self._rules.sender_id:
                    yield doubt
            last = page[-1].job_id

    def _found(self, doubt: Doubt, sent: SentFolder) -> bool:
        """A letter that lies there was taken: that settles it."""
        if not sent.holds(doubt.job_id):
            return False
        self._store.events.record(
            DeliveryEvent(
                event_id=f"sent-folder:{doubt.job_id}:{doubt.attempt}",
                natural_key=f"sent-folder:{doubt.job_id}:{doubt.attempt}",
                kind=EventKind.SENT,
                occurred_at=self._store.ledger.now(),
                message_id=None,
                job_id=doubt.job_id,
                attempt=doubt.attempt,
                raw={"mailbox": self._account.name},
            )
        )
        log.info("found among the sent letters", extra={"fields": {"job": doubt.job_id}})
        return True

    def _absent(self, doubt: Doubt, sent: SentFolder) -> bool:
        now = self._store.ledger.now()
        return is_absent(
            doubt,
            now,
            self._rules.quiet,
            lambda: self._store.jobs.accepted_near(doubt, self._rules.sender_id, NEIGHBOURS),
            sent.holds,
        )
