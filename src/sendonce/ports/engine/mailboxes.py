"""What was read in mailboxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor


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
