"""The mailbox that answers come to, where one is set: signed in to, its folders opened, nothing read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.imap.account import ImapAccount
from sendonce.domain.engine.checks import Check, listed, ok, warning
from sendonce.domain.engine.mailbox.found import MailboxReading
from sendonce.errors import Unavailable

_WITHIN = 8.0
_FIX = "Correct the IMAP_ settings; until then bounces and wishes to unsubscribe are not noticed."
_FIX_ADDED = (
    "Correct the sender: sendonce sender remove, then sender add with another --imap-host, --imap-port or "
    "--secret-env; until then bounces and wishes to unsubscribe are not noticed."
)


class MailboxProbe:
    """A mailbox that cannot be read stops no letter.

    ``reading`` is the last one by a worker. ``added``: the mailbox is a sender's that was added.
    """

    name = "mailbox"

    def __init__(
        self,
        account: ImapAccount,
        folders: Sequence[str],
        *,
        files_sent: bool,
        reading: MailboxReading | None = None,
        added: bool = False,
    ) -> None:
        self._account = account
        self._folders = folders
        self._files_sent = files_sent
        self._reading = reading
        self._fix = _FIX_ADDED if added else _FIX

    async def examine(self) -> Sequence[Check]:
        try:
            async with asyncio.timeout(_WITHIN):
                await in_own_thread(self._look)
        except TimeoutError:
            what = f"The mailbox {self._account.name} gave no answer within {_WITHIN:g} seconds."
            return [warning(self.name, what, self._fix)]
        except Unavailable as exc:
            return [warning(self.name, str(exc), self._fix)]
        folders = listed(self._folders, len(self._folders))
        what = f"The mailbox {self._account.name} can be read: {folders}. {self._last_reading()}"
        return [ok(self.name, what)]

    def _last_reading(self) -> str:
        if self._reading is None or self._reading.read_at is None:
            return "No worker has read it yet."
        return f"Last read at {self._reading.read_at:%Y-%m-%d %H:%M} UTC."

    def _look(self) -> None:
        with self._account.opened() as opened:
            for folder in self._folders:
                opened.folder(folder)
        if self._files_sent:
            with self._account.opened_sent():
                pass
