"""Add one person to the list. An opt-out stays an opt-out."""

from __future__ import annotations

import logging

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import Addition, NewSubscriber
from sendonce.errors import BadInput, RefusedByRule
from sendonce.ports.people import PeopleStore

log = logging.getLogger(__name__)

_LONGEST = 1_000


def add_subscriber(store: PeopleStore, tenant_id: TenantId, person: NewSubscriber, actor: str) -> Addition:
    """Raises RefusedByRule for whoever said no: when, why, and what to do if they changed their mind."""
    for what, text in (("name", person.name), ("consent", person.consent)):
        _require_one_line(what, text or "")
    addition = store.subscribers.add(tenant_id, person, actor)
    if addition == Addition.SUPPRESSED:
        raise RefusedByRule(_why_suppressed(store, tenant_id, person))
    if addition == Addition.LEFT:
        raise RefusedByRule(
            f"{person.address.text} left this list. If they want to come back, write down how you know: "
            "--consent NOTE."
        )
    log.info("subscriber added", extra={"fields": {"outcome": addition}})
    return addition


def _why_suppressed(store: PeopleStore, tenant_id: TenantId, person: NewSubscriber) -> str:
    told = f"{person.address.text} was not added: it is suppressed"
    found = store.suppressions.covers(tenant_id, person.address)
    if found is not None:
        note = f"; {found.note}" if found.note else ""
        told += f" ({found.reason}, since {found.created_at:%Y-%m-%d}{note})"
    return (
        f"{told}. If the person asked to come back, lift it first: 'sendonce suppression remove "
        f"{person.address.text}', then add them with --consent NOTE."
    )


def _require_one_line(what: str, text: str) -> None:
    if not text.isprintable():
        raise BadInput(f"The {what} {text[:80]!r} has a line break or a control character in it.")
    if len(text) > _LONGEST:
        raise BadInput(f"The {what} has {len(text)} characters, the limit is {_LONGEST}.")
