"""Erase a person: all that names them goes, a keyed hash stays, and nobody writes to them again."""

from __future__ import annotations

import logging

from sendonce.domain.engine.addresses import Address
from sendonce.domain.people.privacy import Erasure
from sendonce.ports.people import People

log = logging.getLogger(__name__)


def erase(people: People, address: Address, actor: str) -> Erasure:
    """Safe to repeat: what came in since is erased too, and the second time nothing changes."""
    erasure = people.erase(address, actor)
    log.info("a person was erased", extra={"fields": {"letters": erasure.letters, "events": erasure.events}})
    return erasure
