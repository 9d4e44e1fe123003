"""Both sides of the provider over one mailbox, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sendonce.sandbox.mailbox.answers import answers_to
from sendonce.sandbox.mailbox.box import INBOX, SENT, Folder
from sendonce.sandbox.mailbox.imap import ImapSide
from sendonce.sandbox.mailbox.smtp import SmtpSide


class Mailbox:
    """``open`` it, then letters may be sent through it and answers read.

    ``note`` keeps each letter that is taken, before its sender is answered.
    """

    def __init__(
        self,
        address: str = "news@example.com",
        password: str = "sandbox-password",  # noqa: S107
        note: Callable[[bytes, str], Awaitable[None]] | None = None,
    ) -> None:
        self.address = address
        self.password = password
        self._note = note
        self.folders = {INBOX: Folder(), SENT: Folder()}
        self.smtp = SmtpSide(self._accept)
        self.imap = ImapSide(self.folders, address, password)
        self.smtp_port = 0
        self.imap_port = 0
        self._servers: list[asyncio.Server] = []

    async def open(self, smtp_port: int = 0, imap_port: int = 0) -> None:
        for side, port in ((self.smtp, smtp_port), (self.imap, imap_port)):
            self._servers.append(await asyncio.start_server(side.serve, "127.0.0.1", port))
        self.smtp_port, self.imap_port = (server.sockets[0].getsockname()[1] for server in self._servers)

    async def close(self) -> None:
        for server in self._servers:
            server.close()

    def environment(self) -> dict[str, str]:
        """The variables that make a product send and read here."""
        return {
            "TRANSPORT": "smtp",
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(self.smtp_port),
            "SMTP_USERNAME": self.address,
            "SMTP_PASSWORD": self.password,
            "SMTP_FROM_EMAIL": self.address,
            "IMAP_HOST": "127.0.0.1",
            "IMAP_PORT": str(self.imap_port),
            "IMAP_SERVER_FILES_SENT": "true",
        }

    async def _accept(self, raw: bytes, recipient: str) -> None:
        if self._note is not None:
            await self._note(raw, recipient)
        sent = self.folders[SENT]
        sent.file(raw)
        for answer in answers_to(sent.messages[-1], recipient):
            self.folders[INBOX].file(answer)
