"""Points in time as people write them: ``2026-12-01 09:00`` on a zone's clock, or ISO 8601 with an offset.

Twice a year a clock is turned: an hour is missing or comes twice. Either is settled here, and said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from sendonce.errors import BadInput

_WRITTEN = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?) ?(Z|z|[+-][0-9]{2}:?[0-9]{2})?"
)


@dataclass(frozen=True, slots=True)
class WrittenMoment:
    """``at`` in UTC; ``note`` says how a doubtful hour was understood."""

    at: datetime
    note: str | None = None


def read_moment(text: str, zone: tzinfo) -> WrittenMoment:
    """Raises BadInput for what is no time. Without an offset it is a time of ``zone``."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise _refusal(text)
    date, clock, offset = found.groups()
    try:
        written = datetime.fromisoformat(f"{date}T{clock}{(offset or '').upper()}")
    except ValueError as exc:
        raise _refusal(text) from exc
    if written.tzinfo is not None:
        return WrittenMoment(written.astimezone(UTC))
    return _on_the_clock_of(zone, written)


def _on_the_clock_of(zone: tzinfo, written: datetime) -> WrittenMoment:
    # PEP 495: fold=0 is the first of two, and a missing time counts from before the gap.
    at = written.replace(tzinfo=zone).astimezone(UTC)
    shown = at.astimezone(zone)
    if shown.replace(tzinfo=None) != written:
        return WrittenMoment(
            at,
            f"{written:%Y-%m-%d %H:%M} does not exist in {zone}, where clocks go forward: "
            f"taken as {shown:%H:%M}.",
        )
    second = written.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if second != at:
        return WrittenMoment(
            at,
            f"{written:%Y-%m-%d %H:%M} comes twice in {zone}, where clocks go back: taken as the first. "
            f"For the second write {second.astimezone(zone).isoformat(sep=' ', timespec='minutes')}.",
        )
    return WrittenMoment(at)


def shown_moment(at: datetime, zone: tzinfo) -> str:
    """For people: ``2026-12-01 09:00 (Europe/Riga)``."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M} ({zone})"


def _refusal(text: str) -> BadInput:
    return BadInput(
        f"{text[:60]!r} is not a time. "
        "Write it as 2026-12-01 09:00, or with an offset: 2026-12-01T09:00+02:00."
    )
