"""The log's lines on what was settled and claimed: one in ten seconds, at whatever speed."""

from __future__ import annotations

import logging
from collections import Counter

from sendonce.domain.engine.jobs import Settlement, Turn

log = logging.getLogger(__name__)

LOG_EVERY = 10.0


class BatchLog:
    def __init__(self) -> None:
        self._settled: Counter[str] = Counter()
        self._claimed = self._skipped = 0
        self._told = float("-inf")

    def note(self, turn: Turn, settlements: list[Settlement], now: float) -> None:
        self._settled.update([type(settlement.outcome).__name__.lower() for settlement in settlements])
        self._claimed += len(turn.claimed)
        self._skipped += turn.skipped
        if settlements and now - self._told >= LOG_EVERY:
            self._told = now
            self.tell()

    def tell(self) -> None:
        if self._settled:
            fields = {"settled": dict(self._settled), "claimed": self._claimed, "skipped": self._skipped}
            log.info("batch", extra={"fields": fields})
        self._settled.clear()
        self._claimed = self._skipped = 0
