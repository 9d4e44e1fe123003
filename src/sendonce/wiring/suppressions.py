"""Settings in, suppressions that are kept in step with the lists of SES out."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeGuard

from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import EVERYBODY
from sendonce.errors import BadSetting, RefusedByRule
from sendonce.settings import Settings
from sendonce.wiring.senders import SenderSettings, in_second_region, own_settings, settings_of
from sendonce.wiring.transports import aws_credentials

if TYPE_CHECKING:
    from sendonce.domain.engine.addresses import Address
    from sendonce.domain.engine.tenants import TenantId
    from sendonce.domain.people.provider_lists import SyncReport
    from sendonce.domain.people.suppressions import Suppression
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.engine import EngineStore
    from sendonce.ports.people import ProviderList, SyncStore
    from sendonce.ports.store import Store

SYNC_EVERY = 300.0


def sync_chores(settings: Settings, store: Store) -> list[Chore]:
    """Nothing where the setting is off or nobody sends through SES."""
    from sendonce.flows.people.sync_suppressions import sync_in_turn

    if not _is_on(settings) or not _remembers(store):
        return []
    step = store
    return [(SYNC_EVERY, lambda: sync_in_turn(step, provider_lists(settings, step), _scope(settings)))]


def sync_now(settings: Settings, store: Store, *, dry_run: bool) -> list[SyncReport]:
    """Also where the setting is off: somebody asked for it. Raises RefusedByRule where nobody uses SES."""
    from sendonce.flows.people.sync_suppressions import sync_suppressions

    lists = provider_lists(settings, store)
    if not lists or not _remembers(store):
        raise RefusedByRule("No sender leaves through SES, so there is no list to keep in step with.")
    return sync_suppressions(store, lists, _scope(settings), dry_run=dry_run)


def allow_again(
    settings: Settings, store: Store, tenant_id: TenantId, scope: TenantId, address: Address, actor: str
) -> Suppression | None:
    """Here, and at the providers where lists are kept in step."""
    from sendonce.flows.people import suppress as alone
    from sendonce.flows.people.sync_suppressions import allow_again_everywhere

    if _is_on(settings) and _remembers(store):
        return allow_again_everywhere(store, tenant_id, scope, address, actor)
    return alone.allow_again(store.suppressions, tenant_id, scope, address, actor)


def provider_lists(settings: Settings, store: EngineStore) -> list[ProviderList]:
    """One for each account and region that letters leave through: of added senders, of second regions."""
    from sendonce.adapters.aws.suppression_list import SesSuppressionList

    found: dict[str, ProviderList] = {}
    for sender in _everywhere(settings, store):
        own = sender.settings
        key = f"/{own.aws_access_key_id}" if own.aws_access_key_id != settings.aws_access_key_id else ""
        name = f"ses/{own.aws_region}{key}"
        endpoint = own.aws_endpoint_url_sesv2 or None
        found[name] = SesSuppressionList(name, own.aws_region, aws_credentials(own), endpoint)
    return list(found.values())


def _everywhere(settings: Settings, store: EngineStore) -> list[SenderSettings]:
    senders = [own_settings(settings)]
    for identity in store.senders.all():
        with suppress(BadSetting):  # without its secret nothing can be asked
            senders.append(settings_of(settings, identity.made))
    for sender in list(senders):
        with suppress(BadSetting):
            if (second := in_second_region(sender)) is not None:
                senders.append(second)
    return [sender for sender in senders if sender.settings.transport == "ses"]


def _remembers(store: EngineStore) -> TypeGuard[SyncStore]:
    """Only databases know how far the lists were read."""
    from sendonce.adapters.stores.sql import SqlStore

    return isinstance(store, SqlStore)


def _is_on(settings: Settings) -> bool:
    return settings.ses_suppression_sync != "off"


def _scope(settings: Settings) -> TenantId:
    return DEFAULT_TENANT if settings.ses_suppression_sync == "tenant" else EVERYBODY
