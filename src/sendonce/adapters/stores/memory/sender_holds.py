"""Held senders in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.senders import BY_HAND, ENGINE, UNTIL_RELEASED, HoldOrder, SenderHold


class MemorySenderHolds:
    def __init__(self, state: State) -> None:
        self._state = state

    def hold(self, key: str, order: HoldOrder) -> SenderHold:
        with self._state.transaction() as now:
            until = now + timedelta(seconds=order.seconds)
            held = self._state.sender_holds.get(key)
            if held is None:
                held = SenderHold(key, order.code, order.reason, now, until, 1, order.elsewhere)
            elif order.probe and held.code != BY_HAND:
                held = replace(
                    held,
                    code=order.code,
                    reason=order.reason,
                    next_try_at=until,
                    tries=held.tries + 1,
                    elsewhere=order.elsewhere,
                )
            else:
                return held
            self._state.sender_holds[key] = held
            if order.elsewhere:
                self._state.audit.append((ENGINE, "fail_over", key))
            return held

    def hold_by_hand(
        self, key: str, reason: str, until: datetime | None, actor: str, *, elsewhere: bool = False
    ) -> SenderHold:
        with self._state.transaction() as now:
            hold = SenderHold(key, BY_HAND, reason, now, until or UNTIL_RELEASED, 1, elsewhere)
            self._state.sender_holds[key] = hold
            self._state.audit.append((actor, "fail_over" if elsewhere else "hold_sender", key))
            return hold

    def end(self, hold: SenderHold) -> bool:
        with self._state.transaction():
            held = self._state.sender_holds.get(hold.key)
            if held is None or held.held_at != hold.held_at:
                return False
            del self._state.sender_holds[hold.key]
            if hold.elsewhere:
                self._state.audit.append((ENGINE, "fail_back", hold.key))
            return True

    def release(self, key: str, actor: str) -> bool:
        with self._state.transaction():
            if self._state.sender_holds.pop(key, None) is None:
                return False
            self._state.audit.append((actor, "release_sender", key))
            return True

    def get(self, key: str) -> SenderHold | None:
        with self._state.transaction():
            return self._state.sender_holds.get(key)

    def all(self) -> Sequence[SenderHold]:
        with self._state.transaction():
            return sorted(self._state.sender_holds.values(), key=lambda hold: hold.key)
