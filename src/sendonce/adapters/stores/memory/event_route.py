"""Who receives events, in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.event_route import Listening, Receiver, longest_silence


class MemoryEventRoute:
    def __init__(self, state: State) -> None:
        self._state = state

    def attend(self, receiver: str, *, durable: bool, anew: bool = False) -> None:
        with self._state.transaction() as now:
            rows = self._state.receivers.setdefault(receiver, [])
            last = rows[-1] if rows else None
            if anew and last is not None and last.since == last.seen:
                rows.pop()
            silence = longest_silence(durable=durable)
            if not anew and last is not None and not last.left and now - last.seen <= silence:
                rows[-1] = replace(last, seen=now)
            else:
                rows.append(Receiver(receiver, now, now, durable))

    def leave(self, receiver: str) -> None:
        with self._state.transaction() as now:
            rows = self._state.receivers.get(receiver, [])
            if rows and now - rows[-1].seen <= longest_silence(durable=False):
                rows[-1] = replace(rows[-1], seen=now, left=True)

    def listening(self) -> Listening:
        with self._state.transaction() as now:
            return Listening([each for rows in self._state.receivers.values() for each in rows], now)

    def subscribed(self, topic: str) -> None:
        with self._state.transaction():
            self._state.topics.add(topic)

    def unsubscribed(self, topic: str) -> None:
        with self._state.transaction():
            self._state.topics.discard(topic)

    def is_subscribed(self, topics: Collection[str]) -> bool:
        with self._state.transaction():
            return not self._state.topics.isdisjoint(topics)
