"""Show every sender: what it is, whether it may send, and how long its letters have waited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sendonce.domain.engine.sender_identities import SenderIdentity, SenderState, state_of
from sendonce.domain.engine.senders import SenderHold
from sendonce.ports.engine import EngineStore

KeyOf = Callable[[SenderIdentity | None], str]
"""The key that a provider knows a sender by; None is the environment's own."""


@dataclass(frozen=True, slots=True)
class SenderView:
    """``identity`` is None for the environment's own sender, and for one that only a hold is known of."""

    key: str
    identity: SenderIdentity | None
    hold: SenderHold | None
    own: bool

    @property
    def state(self) -> SenderState:
        return state_of(self.identity, self.hold)


def show_senders(store: EngineStore, key_of: KeyOf) -> Sequence[SenderView]:
    """The environment's own, those that were added, and every other that is held, by their keys.

    A removed sender is shown while letters wait for it.
    """
    holds = {hold.key: hold for hold in store.sender_holds.all()}
    waiting = {each.sender_id for each in store.senders.waiting()}
    added = {
        key_of(identity): identity
        for identity in store.senders.all(removed=True)
        if identity.removed_at is None or identity.id in waiting
    }
    own = key_of(None)
    return [
        SenderView(key, added.get(key), holds.get(key), own=key == own)
        for key in sorted({own, *added, *holds})
    ]
