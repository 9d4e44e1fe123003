"""The mailbox that answers come to, where one is set: signed in to, its folders opened, nothing read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.imap.account import ImapAccount
from sendonce.domain.engine.checks import Check, listed, ok, warning
from sendonce.errors import Unavailable

_WITHIN = 8.0
_FIX = "Correct the IMAP_ settings; until then bounces and wishes to unsubscribe are not noticed."


class MailboxProbe:
    """A mailbox that cannot be read stops no letter."""

    name = "mailbox"

    def __init__(self, account: ImapAccount, folders: Sequence[str], *, files_sent: bool) -> None:
        self._account = account
        self._folders = folders
        self._files_sent = files_sent

    async def examine(self) -> Sequence[Check]:
        try:
            async with asyncio.timeout(_WITHIN):
                await in_own_thread(self._look)
        except TimeoutError:
            what = f"The mailbox {self._account.name} gave no answer within {_WITHIN:g} seconds."
            return [warning(self.name, what, _FIX)]
        except Unavailable as exc:
            return [warning(self.name, str(exc), _FIX)]
        folders = listed(self._folders, len(self._folders))
        return [ok(self.name, f"The mailbox {self._account.name} can be read: {folders}.")]

    def _look(self) -> None:
        with self._account.opened() as opened:
            for folder in self._folders:
                opened.folder(folder)
        if self._files_sent:
            with self._account.opened_sent():
                pass
