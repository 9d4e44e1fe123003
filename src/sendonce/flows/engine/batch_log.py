"""The log's lines on settled letters and ended dispatches: one in ten seconds, at whatever speed."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict

from sendonce.domain.engine.dispatches import DispatchResult
from sendonce.domain.engine.jobs import Settlement, Turn
from sendonce.domain.engine.tenants import DispatchId

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


class EndLog:
    """The first end of a kind is told at once. Where a door plans letter by letter, each letter is one."""

    def __init__(self) -> None:
        self._ended: defaultdict[str, list[tuple[DispatchId, DispatchResult]]] = defaultdict(list)
        self._told: dict[str, float] = {}

    def note(self, kind: str, dispatch_id: DispatchId, result: DispatchResult) -> None:
        self._ended[kind].append((dispatch_id, result))

    def tell(self, now: float) -> None:
        due = [kind for kind in self._ended if now - self._told.get(kind, float("-inf")) >= LOG_EVERY]
        for kind in due:
            ends = self._ended.pop(kind)
            self._told[kind] = now
            last, result = ends[-1]
            others = {"others": len(ends) - 1} if len(ends) > 1 else {}
            log.info(f"{kind} over", extra={"fields": {kind: last, "status": str(result), **others}})
