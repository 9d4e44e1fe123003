"""The doctor's checks of the transport alone, for whoever starts a mailout and waits for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.domain.engine.checks import Check
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import OWN_SENDER, is_away
from sendonce.errors import NotFound, Unavailable
from sendonce.flows.engine.check_sender import Provider, ProviderCheck
from sendonce.flows.engine.doctor import examine
from sendonce.ports.store import Store
from sendonce.settings import Settings
from sendonce.wiring.doctor import ses_reader, ses_sender_probes, smtp_probe
from sendonce.wiring.senders import SenderSettings, in_second_region, keys_of, own_settings, settings_of

AT_ONCE = 2.5
"""Seconds that an HTTP caller waits for it."""
PATIENTLY = 8.0
"""Seconds that a person at a terminal or a worker waits for it."""


def make_sender_check(settings: Settings, store: Store, within: float) -> ProviderCheck:
    return ProviderCheck(lambda sender_id: _provider_of(settings, store, sender_id, within), within)


def _provider_of(settings: Settings, store: Store, sender_id: str, within: float) -> Provider | None:
    if sender_id == OWN_SENDER:
        return _provider(_where_it_is(settings, store, own_settings(settings), None), within)
    added = store.senders.get(sender_id)
    if added is None or added.removed_at is not None:
        name = added.address if added else sender_id
        raise NotFound(f"The sender {name} was removed: add it again, or choose another one.")
    fix = f"Correct it: sendonce sender remove {added.address}, then sendonce sender add {added.address} …"
    here = _where_it_is(settings, store, settings_of(settings, added.made), added)
    return _provider(here, within, fix)


def _where_it_is(
    settings: Settings, store: Store, sender: SenderSettings, identity: SenderIdentity | None
) -> Settings:
    """Its settings in the region that its letters leave through now."""
    if is_away(keys_of(settings)(identity), store.sender_holds.get) is None:
        return sender.settings
    second = in_second_region(sender)
    return second.settings if second is not None else sender.settings


def _provider(settings: Settings, within: float, fix: str | None = None) -> Provider | None:
    if settings.transport == "ses":
        return _Ses(settings, within)
    if settings.transport == "smtp":
        return _Smtp(settings, within, fix)
    return None


@dataclass(frozen=True, slots=True)
class _Ses:
    settings: Settings
    within: float

    async def examine(self) -> Sequence[Check]:
        from sendonce.adapters.doctor.ses import SesAccountProbe

        reader = ses_reader(self.settings)
        # Without a store the quota is not compared with the list: counting takes time, and it stops nobody.
        account = SesAccountProbe(reader, StoreDoor(_no_store), self.settings.rate_limit_per_sec)
        return await examine([account, *ses_sender_probes(self.settings, reader)], self.within)

    async def may_write_to(self, recipients: Sequence[str]) -> bool:
        from sendonce.adapters.doctor.ses import may_write_to

        return await may_write_to(ses_reader(self.settings), recipients)


@dataclass(frozen=True, slots=True)
class _Smtp:
    settings: Settings
    within: float
    fix: str | None

    async def examine(self) -> Sequence[Check]:
        return await examine([smtp_probe(self.settings, self.fix)], self.within)

    async def may_write_to(self, recipients: Sequence[str]) -> bool:  # noqa: ARG002 (the port's shape)
        return True


def _no_store() -> Store:
    raise Unavailable("This check does without a store.")
