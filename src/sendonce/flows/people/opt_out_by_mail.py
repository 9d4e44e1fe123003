"""Grant the wish of somebody who writes that they want no more letters."""

from __future__ import annotations

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.flows.people.unsubscribe import unsubscribe
from sendonce.ports.people import PeopleStore

NOTE = "asked for it by e-mail"


class OptOutsByMail:
    """``tenant_id`` is whose mailbox the wishes come to."""

    def __init__(self, store: PeopleStore, tenant_id: TenantId) -> None:
        self._store = store
        self._tenant_id = tenant_id

    def of_letter(self, job_id: str) -> None:
        """As if its recipient had followed the letter's own link."""
        unsubscribe(self._store, job_id)

    def of_address(self, address: Address) -> None:
        """No letter of ours is named, so the author is meant. A forged one costs somebody our letters, which
        they can ask for again; to go on writing to somebody who said no would be worse."""
        self._store.suppressions.add(self._tenant_id, address, SuppressionReason.UNSUBSCRIBED, NOTE)
