"""Why nothing moves, in one line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sendonce.domain.mailouts.progress import Cause, Standstill
from sendonce.entrypoints.cli.mailouts.progress import standstill_line

AT = datetime(2026, 3, 4, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize("detail", ["no reply within the time limit", "no reply within the time limit."])
def test_a_reason_ends_before_the_next_sentence_begins(detail: str) -> None:
    """Providers end their words with a full stop, or do not."""
    line = standstill_line(Standstill(Cause.THROTTLED, detail, next_try_at=AT), UTC)
    assert line == "no reply within the time limit. Next try: 2026-03-04 10:12 (UTC)."
