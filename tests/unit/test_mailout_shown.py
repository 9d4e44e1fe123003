"""What is shown of a mailout at a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sendonce.domain.engine.jobs import Books
from sendonce.domain.mailouts.progress import Cause, Progress, Standstill
from sendonce.entrypoints.cli.mailouts.mailout_status import print_books
from sendonce.entrypoints.cli.mailouts.progress import SAFE_TO_LEAVE, standstill_line, waiting_line

AT = datetime(2026, 3, 4, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize("detail", ["no reply within the time limit", "no reply within the time limit."])
def test_a_reason_ends_before_the_next_sentence_begins(detail: str) -> None:
    """Providers end their words with a full stop, or do not."""
    line = standstill_line(Standstill(Cause.THROTTLED, detail, next_try_at=AT), UTC)
    assert line == "no reply within the time limit. Next try: 2026-03-04 10:12 (UTC)."


def test_who_waits_is_told_that_they_may_leave() -> None:
    """Why, when the next try is, and that Ctrl-C loses nothing; nothing at all while letters leave."""
    still = Standstill(Cause.THROTTLED, "cannot reach 127.0.0.1:25", next_try_at=AT)
    line = waiting_line(Progress(still, None, None, 1), UTC)
    assert line.startswith("cannot reach 127.0.0.1:25. Next try: 2026-03-04 10:12 (UTC).")
    assert line.endswith(SAFE_TO_LEAVE)
    assert waiting_line(Progress(None, 5.0, None, 1), UTC) == ""


def test_letters_that_the_provider_threw_away_have_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Only where there are some: SES alone does that, and rarely."""
    print_books(Books(planned=2, sent=2, rejected=1))
    assert "rejected by the provider" in capsys.readouterr().out
    print_books(Books(planned=2, sent=2))
    assert "rejected" not in capsys.readouterr().out
