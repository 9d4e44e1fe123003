"""Settings in, the customs of the house out."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.errors import BadSetting
from sendonce.settings import Settings

if TYPE_CHECKING:
    pass


def time_zone(settings: Settings) -> ZoneInfo:
    """The clock that people of this house go by."""
    try:
        return ZoneInfo(settings.app_timezone)
    except (ZoneInfoNotFoundError, OSError) as exc:
        raise BadSetting(
            f"APP_TIMEZONE is {settings.app_timezone!r}, which this machine does not know: "
            "install its tzdata package, or set another."
        ) from exc
