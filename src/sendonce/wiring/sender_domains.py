"""Settings in, checks of senders' domains out: for doctor, for a new sender, and for every day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sendonce.domain.engine.checks import Check
from sendonce.domain.engine.hosts import is_loopback
from sendonce.errors import BadSetting, Unavailable
from sendonce.settings import Settings
from sendonce.wiring.doctor import domain_probe, letters_leave
from sendonce.wiring.senders import described, keys_of, settings_of
from sendonce.wiring.stores import has_campaigns

if TYPE_CHECKING:
    from sendonce.adapters.doctor.sender_domain import SenderDomainProbe
    from sendonce.domain.engine.sender_identities import SenderIdentity
    from sendonce.flows.engine.check_domains import Look
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.campaigns import CampaignStore
    from sendonce.ports.store import Store

    AnyStore = Store | CampaignStore

_EVERY = 60.0
_PATIENCE = 8.0


def look_at_domain(settings: Settings, store: AnyStore) -> Look:
    def look(identity: SenderIdentity) -> Sequence[Check] | None:
        probe = _probe(settings, store, identity)
        return asyncio.run(_within(probe.look())) if probe is not None else None

    return look


def added_domains(settings: Settings, store: Store) -> dict[str, SenderDomainProbe]:
    """The domains of added senders by an address of each; once for all senders that it means the same for."""
    found: dict[tuple[str, str, bool], tuple[str, SenderDomainProbe]] = {}
    for identity in store.senders.all():
        probe = _probe(settings, store, identity)
        if probe is not None:
            domain = identity.address.rpartition("@")[2].lower()
            same = (domain, identity.made.transport, _in_pool(store, identity))
            found.setdefault(same, (identity.address, probe))
    return dict(found.values())


def _probe(settings: Settings, store: AnyStore, identity: SenderIdentity) -> SenderDomainProbe | None:
    """None in a rehearsal: its domains are made up."""
    own = described(settings, identity.made)
    asks_a_stand_in = is_loopback(settings.dns_server.rpartition(":")[0])
    if not letters_leave(own) and not asks_a_stand_in:
        return None
    with suppress(BadSetting):  # DNS tells without the secret; what SES tells is left out then
        own = settings_of(settings, identity.made).settings
    return domain_probe(own, to_strangers=_in_pool(store, identity))


def _in_pool(store: AnyStore, identity: SenderIdentity) -> bool:
    """Senders of pools write to strangers: more is asked of their domains."""
    return has_campaigns(store) and store.pools.get(identity.tenant_id, identity.id) is not None


async def _within(looking: Awaitable[Sequence[Check]]) -> Sequence[Check]:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await looking
    except TimeoutError as exc:
        raise Unavailable(f"The name servers gave no answer within {_PATIENCE:g} seconds.") from exc


def check_new_sender(settings: Settings, store: AnyStore, identity: SenderIdentity) -> Sequence[Check]:
    """What is wrong with the domain of a sender that was just added; then it is held. Raises Unavailable."""
    from sendonce.flows.engine.check_domains import check_domain

    if not settings.sender_dns_checks:
        return ()
    look = look_at_domain(settings, store)
    return check_domain(store.sender_holds, look, identity, keys_of(settings)(identity).home)


def domain_chores(settings: Settings, store: CampaignStore) -> list[Chore]:
    from sendonce.flows.engine.check_domains import check_domains

    if not settings.sender_dns_checks:
        return []
    look, keys = look_at_domain(settings, store), keys_of(settings)
    return [(_EVERY, lambda: check_domains(store, look, keys))]
