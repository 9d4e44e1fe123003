"""The keys that letters in mailboxes still rely on: are all of them here?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, listed, ok, stop
from sendonce.ports.store import Store


class KeysProbe:
    """``known`` finds the fingerprints of all secrets in the settings and in the store."""

    name = "keys.unsubscribe"

    def __init__(self, door: StoreDoor, known: Callable[[Store], Collection[str]]) -> None:
        self._door = door
        self._known = known

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        used = await in_own_thread(store.keys.used)
        known = await in_own_thread(lambda: self._known(store))
        lost = [fingerprint for fingerprint in used if fingerprint not in known]
        if lost:
            return [
                stop(
                    self.name,
                    f"Letters were signed with a secret that is not in the settings (fingerprint "
                    f"{listed(lost)}): their unsubscribe links are dead.",
                    "Put the former UNSUBSCRIBE_SECRET into UNSUBSCRIBE_FORMER_SECRETS. If it is lost for "
                    f"good: sendonce db forget-key {lost[0]}",
                )
            ]
        return [ok(self.name, "The unsubscribe links of all letters sent so far work.")] if used else []
