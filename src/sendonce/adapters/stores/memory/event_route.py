"""Who receives events, in memory."""

from __future__ import annotations

from dataclasses import replace

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.event_route import SILENT_AFTER, Receiver, RouteWatch, watch


class MemoryEventRoute:
    def __init__(self, state: State) -> None:
        self._state = state

    def attend(self, receiver: str, *, durable: bool) -> None:
        with self._state.transaction() as now:
            stretches = self._state.receivers.setdefault(receiver, [])
            if stretches and now - stretches[-1].seen <= SILENT_AFTER:
                stretches[-1] = replace(stretches[-1], seen=now)
            else:
                stretches.append(Receiver(now, now, durable))

    def watch(self) -> RouteWatch | None:
        with self._state.transaction() as now:
            return watch([each for stretches in self._state.receivers.values() for each in stretches], now)
