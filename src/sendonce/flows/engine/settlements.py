"""Outcomes on their way into the ledger: they wait here until a commit takes them along."""

from __future__ import annotations

import asyncio
from random import Random

from sendonce.domain.engine.jobs import Settlement
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome
from sendonce.domain.engine.retries import RetryPolicy

RELEASED = Deferred("released", "claimed, but it never left", retry_after=0.0, throttle=True)


class Settlements:
    """``due`` is set when a commit is worth making."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._retry = retry
        self._dice = Random()  # noqa: S311 (jitter)
        self._waiting: list[Settlement] = []
        self.group = 1
        self.due = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def make_a_group(self) -> bool:
        return len(self._waiting) >= self.group

    def add(self, job_id: str, attempt: int, tries: int, outcome: Outcome, dispatch_id: str) -> None:
        settlement = Settlement(job_id, attempt, outcome, dispatch_id=dispatch_id)
        if type(outcome) is not Accepted:
            settlement = self._completed(settlement, tries)
        self._waiting.append(settlement)

    def _completed(self, settlement: Settlement, tries: int) -> Settlement:
        outcome = settlement.outcome
        if isinstance(outcome, Deferred):
            wait = self._retry.after(tries, outcome, self._dice)
            return settlement._replace(retry_after=wait or 0.0, exhausted=wait is None)
        if isinstance(outcome, InDoubt):
            return settlement._replace(death_proof="the worker's own word")
        return settlement

    def take(self) -> list[Settlement]:
        """All of them."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def put_back(self, settlements: list[Settlement]) -> None:
        """They were taken and could not be committed."""
        self._waiting = settlements + self._waiting
