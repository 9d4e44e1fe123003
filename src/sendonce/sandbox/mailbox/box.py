"""The folders of one mailbox, in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

INBOX, SENT = "INBOX", "Sent"


@dataclass(slots=True)
class Message:
    uid: int
    raw: bytes
    filed_at: datetime

    def header(self, name: str) -> str:
        """A header field, unfolded; empty where there is none."""
        head = self.raw.partition(b"\r\n\r\n")[0] + b"\r\n"
        found = re.search(rb"(?im)^" + re.escape(name.encode()) + rb":(.*(?:\r\n[ \t].*)*)\r\n", head)
        return found[1].decode("utf-8", "replace").strip() if found else ""


@dataclass(slots=True)
class Folder:
    """``uid_validity`` changes when the messages get other numbers."""

    uid_validity: int = 1
    messages: list[Message] = field(default_factory=list)
    uid_next: int = 1

    def file(self, raw: bytes) -> None:
        self.messages.append(Message(self.uid_next, raw, datetime.now(UTC)))
        self.uid_next += 1

    def renumber(self) -> None:
        """As a server does that lost its index."""
        self.uid_validity += 1
        for number, message in enumerate(self.messages, 1):
            message.uid = number
        self.uid_next = len(self.messages) + 1
