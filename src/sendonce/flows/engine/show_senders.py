"""Show every sender: what it is, whether it may send, and how long its letters have waited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sendonce.domain.engine.sender_identities import SenderIdentity, SenderState, state_of
from sendonce.domain.engine.senders import SenderHold, SenderKeys, hold_in_force, is_away
from sendonce.ports.engine import EngineStore

KeysOf = Callable[[SenderIdentity | None], SenderKeys]
"""The keys that a provider knows a sender by; None is the environment's own."""


@dataclass(frozen=True, slots=True)
class SenderView:
    """``identity`` is None for the environment's own sender, and for one that only a hold is known of.

    ``away`` says why its letters leave through its second region, if they do; ``hold`` is that of the region
    which they leave through now.
    """

    keys: SenderKeys
    identity: SenderIdentity | None
    hold: SenderHold | None
    away: SenderHold | None
    own: bool

    @property
    def key(self) -> str:
        return self.keys.home

    @property
    def state(self) -> SenderState:
        return state_of(self.identity, self.hold)


def show_senders(store: EngineStore, keys_of: KeysOf) -> Sequence[SenderView]:
    """The environment's own, those that were added, and every other that is held, by their keys.

    A removed sender is shown while letters wait for it.
    """
    holds = {hold.key: hold for hold in store.sender_holds.all()}
    waiting = {each.sender_id for each in store.senders.waiting()}
    added = {
        keys_of(identity): identity
        for identity in store.senders.all(removed=True)
        if identity.removed_at is None or identity.id in waiting
    }
    own = keys_of(None)
    known = {own, *added}
    others = holds.keys() - {key for keys in known for key in keys}
    return [
        SenderView(
            keys,
            added.get(keys),
            hold_in_force(keys, holds.get),
            is_away(keys, holds.get),
            own=keys == own,
        )
        for keys in sorted({*known, *map(SenderKeys, others)}, key=lambda keys: keys.home)
    ]
