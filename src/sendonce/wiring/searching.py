"""The working parts of searching: the provider with its credentials, and the steps of the pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from sendonce.domain.engine.hosts import is_loopback
from sendonce.domain.prospecting.nights import NightWindow
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.search_answers import ProviderTerms
from sendonce.errors import BadSetting
from sendonce.settings import Settings
from sendonce.wiring.archive import archive

if TYPE_CHECKING:
    from sendonce.adapters.search.exchanges import Exchanges
    from sendonce.adapters.search.yandex_auth import Authority, ServiceAccountKey
    from sendonce.ports.prospecting import ProspectingStore, Regions, SearchProvider


def regions() -> Regions:
    from sendonce.adapters.search.regions import yandex_regions

    return yandex_regions()


def night_window(settings: Settings) -> NightWindow:
    return NightWindow(settings.search_window, ZoneInfo(settings.app_timezone))


def price_of_a_search(settings: Settings) -> float:
    return settings.search_price / 1000


def search_terms(settings: Settings) -> ProviderTerms:
    """The provider's, also where there are no credentials for it."""
    from sendonce.adapters.search.yandex import yandex_terms

    return yandex_terms(timedelta(seconds=settings.search_first_poll_seconds))


def has_search_settings(settings: Settings) -> bool:
    """Whether somebody has begun to set up searches."""
    return bool(
        settings.yandex_cloud_folder_id
        or settings.yandex_cloud_api_key
        or settings.yandex_cloud_iam_token
        or settings.yandex_cloud_sa_key_json
        or settings.yandex_cloud_sa_key_file
    )


def search_provider(settings: Settings) -> SearchProvider:
    """Raises BadSetting where something is missing. Its connections belong to the event loop that uses it."""
    from sendonce.adapters.search.exchanges import Exchanges
    from sendonce.adapters.search.yandex import YandexAddresses, YandexSearch

    if not settings.yandex_cloud_folder_id:
        raise BadSetting(
            "YANDEX_CLOUD_FOLDER_ID is not set, and a search needs it. console.yandex.cloud: the folder's "
            "page, Identifier. Without an account: 'sendonce sandbox' prints settings to rehearse with."
        )
    addresses = YandexAddresses(
        search=_safe(settings.yandex_search_url, "YANDEX_SEARCH_URL"),
        operation=_safe(settings.yandex_operation_url, "YANDEX_OPERATION_URL"),
        folder_id=settings.yandex_cloud_folder_id,
    )
    exchanges = Exchanges()
    first_poll = timedelta(seconds=settings.search_first_poll_seconds)
    return YandexSearch(addresses, _authority(settings, exchanges), exchanges, first_poll)


def _authority(settings: Settings, exchanges: Exchanges) -> Authority:
    """A key that does not expire before one that does."""
    from sendonce.adapters.search.yandex_auth import FixedCredential, ServiceAccountTokens

    if settings.yandex_cloud_api_key:
        return FixedCredential("Api-Key", settings.yandex_cloud_api_key)
    if settings.yandex_cloud_sa_key_json or settings.yandex_cloud_sa_key_file:
        iam_url = _safe(settings.yandex_iam_url, "YANDEX_IAM_URL")
        key = _service_account_key(settings)
        return ServiceAccountTokens(key, iam_url, exchanges.post_json, time.time)
    if settings.yandex_cloud_iam_token:
        return FixedCredential("Bearer", settings.yandex_cloud_iam_token)
    raise BadSetting(
        "There are no credentials for Yandex Search: set YANDEX_CLOUD_API_KEY, YANDEX_CLOUD_SA_KEY_FILE or "
        "YANDEX_CLOUD_IAM_TOKEN. docs/how-to/get-credentials.md tells where to get each."
    )


def _service_account_key(settings: Settings) -> ServiceAccountKey:
    from sendonce.adapters.search.yandex_auth import read_service_account_key

    if settings.yandex_cloud_sa_key_json:
        return read_service_account_key(settings.yandex_cloud_sa_key_json, "YANDEX_CLOUD_SA_KEY_JSON")
    file = settings.yandex_cloud_sa_key_file
    assert file is not None
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSetting(f"YANDEX_CLOUD_SA_KEY_FILE is {file}, which cannot be read ({exc}).") from exc
    return read_service_account_key(text, f"YANDEX_CLOUD_SA_KEY_FILE ({file})")


def _safe(url: str, name: str) -> str:
    """Plain http would show the credentials to everybody on the way."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise BadSetting(f"{name} is {url!r}: give an https:// address, or http:// on this machine.")
    return url


def submit_step(settings: Settings, store: ProspectingStore, worker: str, most: int) -> StepCount:
    from sendonce.flows.prospecting.submit_searches import SubmitPlan, submit_searches

    plan = SubmitPlan(
        window=night_window(settings),
        zone=ZoneInfo(settings.app_timezone),
        price=price_of_a_search(settings),
        monthly_limit=settings.search_monthly_budget,
        worker=worker,
        most=most,
    )
    return _with_provider(settings, lambda provider: submit_searches(store, provider, plan))


def poll_step(settings: Settings, store: ProspectingStore, worker: str, most: int) -> StepCount:
    from sendonce.flows.prospecting.poll_searches import poll_searches

    kept = archive(settings)
    return _with_provider(settings, lambda provider: poll_searches(store, provider, kept, worker, most))


def ingest_step(settings: Settings, store: ProspectingStore, worker: str, most: int) -> StepCount:
    from sendonce.flows.prospecting.ingest_results import ingest_results
    from sendonce.wiring.prospecting import site_reader

    provider = search_provider(settings)
    return ingest_results(store, provider, archive(settings), site_reader(), worker, most)


def _with_provider(settings: Settings, step: Callable[[SearchProvider], Awaitable[StepCount]]) -> StepCount:
    async def run() -> StepCount:
        provider = search_provider(settings)
        try:
            return await step(provider)
        finally:
            await provider.close()

    return asyncio.run(run())
