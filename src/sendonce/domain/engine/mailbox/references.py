"""Which letter of ours a message is about.

    a token that we signed, in what is given back or quoted    proof: only a recipient's side has it
    a Message-ID of ours, in a thread or in what is given back  a hint: it is no secret of ours

A bounce or a complaint counts only with proof: anybody can write one about anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256

from sendonce.domain.engine.mailbox.mime import Mail, read_headers
from sendonce.domain.engine.mailbox.notices import returned_in
from sendonce.domain.engine.tokens import read_token_of_any

_TOKEN = re.compile(r"[?&]token=(?:3D)?([A-Za-z0-9_-]{44})(?![A-Za-z0-9_-])")
_JOB_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_OUR_MESSAGE_ID = re.compile(rf"<({_JOB_ID})@[A-Za-z0-9.-]{{1,253}}>")
_BARE_JOB_ID = re.compile(_JOB_ID)
_SOFT_BREAK = re.compile(r"=\n|\n[ \t]+")
_MOST_TOKENS = 20


@dataclass(frozen=True, slots=True)
class References:
    """``proven`` by a token, else ``named`` by a Message-ID."""

    proven: str | None
    named: str | None

    @property
    def job_id(self) -> str | None:
        return self.proven or self.named


def references_of(mail: Mail, secrets: Iterable[bytes]) -> References:
    given_back = mail.returned or returned_in(mail)
    return References(_proven(mail, given_back, tuple(secrets)), _named(mail, given_back))


def message_key(mail: Mail, raw: bytes) -> str:
    """The same wherever the message lies and however the server numbers it."""
    own = mail.headers.get("message-id")
    known = "\n".join((own, mail.headers.get("from"), mail.headers.get("date"))).encode() if own else raw
    return sha256(known).hexdigest()


def date_of(mail: Mail) -> datetime | None:
    """As its author says; None for what cannot be a time."""
    try:
        said = parsedate_to_datetime(mail.headers.get("date"))
        return (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        return None


def _proven(mail: Mail, given_back: str, secrets: tuple[bytes, ...]) -> str | None:
    texts = (given_back, *(part.text for part in mail.parts_of("text/plain", "text/html")))
    tokens = [token for text in texts for token in _TOKEN.findall(_SOFT_BREAK.sub("", text))]
    read = (read_token_of_any(token, secrets) for token in dict.fromkeys(tokens[:_MOST_TOKENS]))
    return next((job_id for job_id in read if job_id is not None), None)


def _named(mail: Mail, given_back: str) -> str | None:
    thread = f"{mail.headers.get('in-reply-to')} {mail.headers.get('references')}"
    returned = read_headers(given_back.lstrip("\n -=*").encode())
    ids = (thread, returned.get("message-id"), *_original_ids(mail))
    found = next((match[1] for text in ids if (match := _OUR_MESSAGE_ID.search(text))), None)
    if found is None and (own := _BARE_JOB_ID.fullmatch(returned.get("x-sendonce-job"))):
        found = own[0]
    return found


def _original_ids(mail: Mail) -> list[str]:
    """RFC 3461 and RFC 5965 have no field for it; Gmail, MDNs and some others write one."""
    found = []
    for part in mail.parts_of("message/delivery-status", "message/disposition-notification"):
        fields = read_headers(part.text.strip("\n").encode())
        found += [fields.get("x-original-message-id"), fields.get("original-message-id")]
    return found
