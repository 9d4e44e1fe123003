"""What a campaign file says: to whom, in which steps, when, and with which brakes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.windows import Window
from sendonce.errors import BadInput

_DELAY = re.compile(r"(\d{1,4})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class StepSource:
    """A file beside the campaign's, or a subject and a text. ``after`` counts from the letter before."""

    template: str | None
    subject: str | None
    text: str | None
    after: timedelta
    line: int


@dataclass(frozen=True, slots=True)
class CampaignFile:
    name: str
    tenant: str
    direction: str
    steps: tuple[StepSource, ...]
    window: Window = field(default_factory=Window)
    brakes: Limits = field(default_factory=Limits)


def parse_delay(text: object) -> timedelta:
    """``3d``, ``12h``, ``90m``, ``2w``."""
    match = _DELAY.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise BadInput(f'A delay is written "3d", "12h" or "2w", not {text!r}.')
    delay = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if not timedelta() < delay <= _LONGEST:
        raise BadInput(f"A delay is more than nothing and at most a year, not {text!r}.")
    return delay
