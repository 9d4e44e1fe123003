"""Whether the sender is held: then nothing leaves, whatever else is well."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, ok, stop
from sendonce.domain.mailouts.progress import of_hold


class SenderHoldProbe:
    name = "sender"

    def __init__(self, door: StoreDoor, key: str) -> None:
        self._door = door
        self._key = key

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        hold = await in_own_thread(lambda: store.sender_holds.get(self._key))
        if hold is None:
            return [ok(self.name, "The sender is not held.")]
        still = of_hold(hold)
        next_try = f"{hold.next_try_at:%Y-%m-%d %H:%M} UTC"
        return [
            stop(self.name, f"{still.detail} Held until {next_try}, then one letter is tried.", still.fix)
        ]
