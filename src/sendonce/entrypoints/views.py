"""The shapes that other programs read, the same from every door."""

from __future__ import annotations

from typing import Any

from sendonce.domain.engine.jobs import Books
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.mailouts.progress import Progress

_COUNTS = (
    "planned",
    "scheduled",
    "sending",
    "sent",
    "failed",
    "skipped",
    "dead",
    "in_doubt",
    "delivered",
    "bounced",
    "complained",
)


def progress_view(progress: Progress) -> dict[str, Any]:
    """How a mailout gets on, beside its books."""
    still, end = progress.standstill, progress.estimated_end
    return {
        "standstill": still
        and {
            "cause": str(still.cause),
            "detail": still.detail,
            "fix": still.fix,
            "next_try_at": still.next_try_at.isoformat() if still.next_try_at else None,
        },
        "rate": progress.rate,
        "estimated_end": end.isoformat() if end else None,
        "workers": progress.workers,
    }


def books_view(books: Books) -> dict[str, int]:
    return {name: getattr(books, name) for name in _COUNTS}


def mailout_view(mailout: Mailout, books: Books) -> dict[str, Any]:
    """A mailout and its books, as other programs read them."""
    moments = {name: getattr(mailout, name) for name in ("created_at", "started_at", "sent_at", "send_at")}
    return {
        "id": mailout.id,
        "status": str(mailout.status),
        "counts": books_view(books),
        "name": mailout.name,
        "reason": mailout.reason,
        "paused": mailout.paused,
        "cancelled": mailout.cancelled,
        "phase": str(mailout.phase) if mailout.phase else None,
        "rejected": books.rejected,
        "duplicates": books.duplicates,
        "scheduled": mailout.scheduled,
        **{name: moment.isoformat() if moment else None for name, moment in moments.items()},
    }
