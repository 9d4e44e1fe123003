"""Settings in, the customs of the house out."""

from __future__ import annotations

import os
import socket
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.errors import BadSetting
from sendonce.settings import Settings


def time_zone(settings: Settings) -> ZoneInfo:
    """The clock that people of this house go by."""
    try:
        return ZoneInfo(settings.app_timezone)
    except (ZoneInfoNotFoundError, OSError) as exc:
        raise BadSetting(
            f"APP_TIMEZONE is {settings.app_timezone!r}, which this machine does not know: "
            "install its tzdata package, or set another."
        ) from exc


def worker_name(settings: Settings) -> str:
    """How this process is called in lists, logs and leases."""
    return settings.worker_name or f"{socket.gethostname()}-{os.getpid()}"
