"""What was found in a mailbox, and how far it was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sendonce.domain.engine.mailbox.classify import MailKind


@dataclass(frozen=True, slots=True)
class MailCursor:
    """``last_uid`` is the last message that was read. Numbers of another ``uid_validity`` mean nothing."""

    uid_validity: int
    last_uid: int


@dataclass(frozen=True, slots=True)
class FoundMail:
    """A message, once. ``key`` outlives the server's numbers; ``job_id`` is the letter that it is about.

    Of what people write only the kind is kept: ``reason`` is what a server said.
    """

    key: str
    kind: MailKind
    job_id: str | None = None
    sender: str | None = None
    recipient: str | None = None
    bounce: str | None = None
    code: str | None = None
    reason: str | None = None
    sent_at: datetime | None = None
    found_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MailboxReading:
    """When a mailbox was last read, and how many messages of each kind were found in it so far.

    ``trouble`` is what kept the newest try from reading it; None where that went well.
    """

    mailbox: str
    read_at: datetime | None
    found: Mapping[str, int]
    failed_at: datetime | None = None
    trouble: str | None = None

    @property
    def tried_at(self) -> datetime:
        return max(at for at in (self.read_at, self.failed_at) if at is not None)


def still_in_use(readings: Sequence[MailboxReading]) -> list[MailboxReading]:
    """Without the mailboxes that nobody has tried to read for a day while others were tried."""
    newest = max((each.tried_at for each in readings), default=None)
    return [each for each in readings if newest is not None and newest - each.tried_at < timedelta(days=1)]


def sum_of_kinds(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {kind: before.get(kind, 0) + more.get(kind, 0) for kind in sorted({*before, *more})}


def answered_topic(kind: str) -> str:
    """Under which the outbox tells a door what came back to a letter of its dispatch."""
    return f"{kind}.answered"


def answer_body(mail: FoundMail, dispatch_id: str, owner_id: str) -> dict[str, Any]:
    """What the door is told. It names the job and no person."""
    told = {"dispatch_id": dispatch_id, "owner_id": owner_id, "job_id": mail.job_id}
    return {**told, "kind": str(mail.kind), "bounce": mail.bounce, "code": mail.code}
