"""Settings in, the watch and its alerts out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sendonce.domain.engine.alarms import AlarmLimits
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.flows.engine.alert import Messenger
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.engine import WatchStore

_TELL_EVERY = 5.0
_WATCH_EVERY = 15.0


def alert_chores(settings: Settings, store: WatchStore) -> list[Chore]:
    """Looking for what is wrong, and telling the people in charge."""
    from sendonce.flows.engine.alert import tell_alerts
    from sendonce.flows.engine.keep_watch import keep_watch

    messenger, limits = _messenger(settings), alarm_limits(settings)

    def watch() -> None:
        keep_watch(store, limits)

    def tell() -> None:
        tell_alerts(store, DEFAULT_TENANT, messenger, settings.alert_emails)

    return [(_WATCH_EVERY, watch), (_TELL_EVERY, tell)]


def alarm_limits(settings: Settings) -> AlarmLimits:
    """Silence is a trouble only where events are to come."""
    events_come = bool(settings.sns_allowed_topic_arns or settings.ses_events_queue_url)
    silence = settings.alert_event_silence_seconds if events_come else 0.0
    return AlarmLimits(
        settings.alert_dead_letters,
        timedelta(seconds=settings.alert_queue_age_seconds) if settings.alert_queue_age_seconds else None,
        timedelta(seconds=silence) if silence else None,
    )


def _messenger(settings: Settings) -> Messenger | None:
    from sendonce.adapters.alerts.telegram import Telegram

    if not settings.telegram_bot_token or not settings.telegram_chat_id:
        return None
    return Telegram(settings.telegram_api_url, settings.telegram_bot_token, settings.telegram_chat_id)
