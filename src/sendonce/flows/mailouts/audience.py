"""To whom a mailout would go."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.flows.engine.check_sender import MOST_RECIPIENTS, Recipients
from sendonce.ports.people import PeopleStore


def subscribers_of(store: PeopleStore, tenant_id: TenantId) -> Recipients:
    """The active subscribers, or enough of them to see that they are many."""

    def first() -> Sequence[str]:
        active = store.subscribers.all(tenant_id, status=SubscriberStatus.ACTIVE, limit=MOST_RECIPIENTS + 1)
        return [subscriber.email for subscriber in active]

    return first
