"""Settings in, those who settle doubt out: one for each route that letters of SES go."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.errors import BadSetting
from sendonce.settings import Settings
from sendonce.wiring.senders import (
    SenderSettings,
    in_second_region,
    own_settings,
    sender_settings,
    settings_of,
)
from sendonce.wiring.transports import make_transport

if TYPE_CHECKING:
    from sendonce.domain.engine.jobs import Job
    from sendonce.flows.engine.resolve_doubts import DoubtResolver, Witness
    from sendonce.ports.mortality import Expiry
    from sendonce.ports.store import Store


def witness_of(settings: Settings) -> Witness | None:
    """SES has a clock of its own and tells what it took; nobody else does."""
    from sendonce.adapters.transports.ses import SesTransport

    transport = make_transport(settings)
    return transport if isinstance(transport, SesTransport) else None


def make_resolvers(settings: Settings, store: Store) -> list[DoubtResolver]:
    """For the environment's own sender, and for every other whose letters go another way."""
    return [_resolver(each, store) for each in _routes(settings, store)]


def make_expiries(settings: Settings, store: Store) -> list[Expiry]:
    """By SES's own clock, for each route."""
    from sendonce.adapters.signatures import SignatureExpiry

    window = timedelta(seconds=settings.ses_signature_window_seconds)
    witnesses = [witness_of(each.settings) for each in _routes(settings, store)]
    return [SignatureExpiry(witness, window) for witness in witnesses if witness is not None]


def _routes(settings: Settings, store: Store) -> list[SenderSettings]:
    everybody = (*_added(settings, store), own_settings(settings))
    everywhere = [way for each in everybody for way in (_second(each), each) if way is not None]
    return list({each.route: each for each in everywhere if each.settings.transport == "ses"}.values())


def _added(settings: Settings, store: Store) -> list[SenderSettings]:
    found = []
    for identity in store.senders.all():
        try:
            found.append(settings_of(settings, identity.made))
        except BadSetting:
            continue  # without its secret nothing can be asked; its outlet tells why it is held
    return found


def _second(sender: SenderSettings) -> SenderSettings | None:
    try:
        return in_second_region(sender)
    except BadSetting:
        return None  # nothing leaves through there; the outlet tells why


def _resolver(sender: SenderSettings, store: Store) -> DoubtResolver:
    from sendonce.flows.engine.resolve_doubts import DoubtPolicy, DoubtResolver

    settings = sender.settings
    witness = witness_of(settings)
    assert witness is not None
    policy = DoubtPolicy(
        quiet=doubt_quiet(settings),
        canary_sender=settings.sender if settings.doubt_canary else None,
    )
    return DoubtResolver(store, witness, policy, sender.route, lambda: str(uuid.uuid4()))


def search_for(settings: Settings, store: Store, job: Job) -> str | None:
    """What a person types into the search of the sending mailbox to see whether a letter is there.

    None where the provider gives letters Message-IDs of its own, as SES does."""
    dispatch = store.dispatches.get(job.dispatch_id)
    sender = sender_settings(settings, store, dispatch.sender_id if dispatch else OWN_SENDER)
    if sender.transport != "smtp":
        return None
    return f"rfc822msgid:{job.id}@{sender.sender.rpartition('@')[2].lower()}"


def doubt_quiet(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.in_doubt_quiet_seconds)
