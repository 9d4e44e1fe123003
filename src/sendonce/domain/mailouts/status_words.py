"""A mailout's state in the words that people are told."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus


def status_words(mailout: Mailout) -> str:
    """A mailout that was cancelled half-way is ``sent``, and that word alone would mislead."""
    if mailout.cancelled:
        ended = {
            MailoutStatus.SENT: "cancelled (sent in part)",
            MailoutStatus.FAILED: "cancelled (nothing was sent)",
        }
        return ended.get(mailout.status, f"{mailout.status}, being cancelled")
    if mailout.scheduled:
        return f"{mailout.status}, scheduled"
    return f"{mailout.status}, paused" if mailout.paused else str(mailout.status)
