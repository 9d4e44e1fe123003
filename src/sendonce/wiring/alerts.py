"""Settings in, alerts out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.engine import WatchStore

_EVERY = 5.0


def alert_chores(settings: Settings, store: WatchStore) -> list[Chore]:
    """Telling the people in charge; nothing where nobody is named."""
    from sendonce.adapters.alerts.telegram import Telegram
    from sendonce.flows.engine.alert import tell_alerts

    by_telegram = settings.telegram_bot_token and settings.telegram_chat_id
    if not by_telegram and not settings.alert_emails:
        return []
    messenger = (
        Telegram(settings.telegram_api_url, settings.telegram_bot_token, settings.telegram_chat_id)
        if by_telegram
        else None
    )

    def tell() -> None:
        tell_alerts(store, DEFAULT_TENANT, messenger, settings.alert_emails)

    return [(_EVERY, tell)]
