"""Whether the sender is held: then nothing leaves, whatever else is well."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, ok, stop, warning
from sendonce.domain.engine.senders import SenderKeys, hold_in_force, is_away, words_of_away
from sendonce.domain.mailouts.progress import of_hold


class SenderHoldProbe:
    name = "sender"

    def __init__(self, door: StoreDoor, keys: SenderKeys) -> None:
        self._door = door
        self._keys = keys

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        holds = store.sender_holds
        away = await in_own_thread(lambda: is_away(self._keys, holds.get))
        hold = await in_own_thread(lambda: hold_in_force(self._keys, holds.get))
        if away is not None and hold is None:
            fix = "Its own region is well? sendonce sender fail-back"
            return [warning(self.name, words_of_away(self._keys, away), fix)]
        if hold is None:
            return [ok(self.name, "The sender is not held.")]
        still = of_hold(hold)
        next_try = f"{hold.next_try_at:%Y-%m-%d %H:%M} UTC"
        return [
            stop(self.name, f"{still.detail} Held until {next_try}, then one letter is tried.", still.fix)
        ]
