"""What was read in mailboxes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sendonce.domain.engine.mailbox.found import FoundMail, MailboxReading, MailCursor


class MailboxLog(Protocol):
    """How far each folder of each mailbox was read, and what was found there, once a message."""

    def cursor(self, mailbox: str, folder: str) -> MailCursor | None: ...

    def known(self, mailbox: str, keys: Collection[str]) -> set[str]:
        """Which of these keys were found in it before, in whichever folder."""

    def keep(
        self,
        mailbox: str,
        folder: str,
        cursor: MailCursor,
        found: Sequence[FoundMail],
        doors: Collection[str] = (),
    ) -> int:
        """Note what is new of ``found`` and move the cursor, in one transaction; how many were new.

        For a message about a job whose dispatch is of a kind in ``doors``, the outbox gets an entry under
        ``<kind>.answered``. The cursor never goes back under the same validity.
        """

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[FoundMail]:
        """The newest first."""

    def note_read(self, mailbox: str, found: Mapping[str, int]) -> None:
        """It was read to its end just now; ``found`` is how many new messages of each kind were in it."""

    def note_trouble(self, mailbox: str, trouble: str) -> None:
        """It could not be read just now."""

    def readings(self) -> Sequence[MailboxReading]:
        """The last reading of each mailbox, in the order of their names."""
