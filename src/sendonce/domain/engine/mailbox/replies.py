"""Whether a message answers another, or was sent to many."""

from __future__ import annotations

import re

from sendonce.domain.engine.mailbox.mime import Mail

_RE = re.compile(r"\s*(?:re|aw|sv|vs|antw|odp|ynt|ref|rif|res|отв|ответ|на)(?:\[\d+\])?\s*:", re.IGNORECASE)
_OF_LISTS = ("list-id", "list-unsubscribe", "list-post", "feedback-id")


def is_reply(mail: Mail) -> bool:
    return not is_bulk(mail) and (is_in_thread(mail) or says_re(mail))


def is_in_thread(mail: Mail) -> bool:
    return "in-reply-to" in mail.headers or "references" in mail.headers


def says_re(mail: Mail) -> bool:
    return _RE.match(mail.headers.get("subject")) is not None


def is_bulk(mail: Mail) -> bool:
    """A newsletter, or a letter of a mailing list."""
    return any(name in mail.headers for name in _OF_LISTS)
