"""Add a sender beside the environment's own."""

from __future__ import annotations

import logging

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity, address_taken
from sendonce.domain.engine.tenants import TenantId
from sendonce.ports.engine import EngineStore

log = logging.getLogger(__name__)


def add_sender(
    store: EngineStore, tenant_id: TenantId, new: NewSender, own_address: str, actor: str
) -> SenderIdentity:
    """Raises BadInput for what can never work, and RefusedByRule for an address that a sender has already.

    ``own_address`` is that of the environment's own sender, which has no row.
    """
    new.check()
    if own_address and parse_address(new.address).key == parse_address(own_address).key:
        raise address_taken(new.address)
    identity = store.senders.add(tenant_id, new, actor)
    log.info("sender added", extra={"fields": {"sender": identity.id}})
    return identity
