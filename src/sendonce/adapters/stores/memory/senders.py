"""Sender identities in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.sender_identities import (
    NewSender,
    SenderIdentity,
    WaitingSender,
    address_taken,
)
from sendonce.domain.engine.tenants import TenantId


class MemorySenders:
    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, tenant_id: TenantId, new: NewSender, actor: str) -> SenderIdentity:
        with self._state.transaction() as now:
            former = self._with_address(new.address)
            if former is not None and (former.removed_at is None or former.tenant_id != tenant_id):
                raise address_taken(new.address)
            sender_id = former.id if former else self._state.new_id(now)
            identity = SenderIdentity(sender_id, tenant_id, new, now)
            self._state.senders[sender_id] = identity
            self._state.audit.append((actor, "add_sender", sender_id))
            return identity

    def _with_address(self, address: str) -> SenderIdentity | None:
        key = parse_address(address).key
        return next((each for each in self._state.senders.values() if _key(each) == key), None)

    def get(self, sender_id: str) -> SenderIdentity | None:
        with self._state.transaction():
            return self._state.senders.get(sender_id)

    def all(self, *, removed: bool = False) -> Sequence[SenderIdentity]:
        with self._state.transaction():
            shown = [each for each in self._state.senders.values() if removed or each.removed_at is None]
            return sorted(shown, key=_key)

    def remove(self, sender_id: str, actor: str) -> bool:
        with self._state.transaction() as now:
            identity = self._state.senders.get(sender_id)
            if identity is None or identity.removed_at is not None:
                return False
            self._state.senders[sender_id] = identity._replace(removed_at=now)
            self._state.audit.append((actor, "remove_sender", sender_id))
            return True

    def waiting(self) -> Sequence[WaitingSender]:
        with self._state.transaction():
            first: dict[str, datetime] = {}
            for row in self._state.jobs.values():
                sender_id = self._state.dispatches[row.dispatch_id].dispatch.sender_id
                if sender_id and row.state == JobState.SCHEDULED and self._state.claimable(row):
                    first[sender_id] = min(first.get(sender_id, row.due_at), row.due_at)
            return [WaitingSender(*each) for each in sorted(first.items())]


def _key(identity: SenderIdentity) -> str:
    return parse_address(identity.address).key
