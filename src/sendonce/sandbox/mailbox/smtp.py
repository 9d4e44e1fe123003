"""The provider's SMTP side: takes letters of one account."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

_PATH = re.compile(r"<([^<>\s]*)>")
_MOST_BYTES = 50_000_000


class SmtpSide:
    """``accept`` gets each letter and its recipient. ``lose_replies`` letters are taken without an answer."""

    def __init__(self, accept: Callable[[bytes, str], Awaitable[None]]) -> None:
        self._accept = accept
        self.lose_replies = 0
        self.lose_letters = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._session(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away
        finally:
            writer.close()

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recipients: list[str] = []
        writer.write(b"220 sandbox ESMTP\r\n")
        while line := (await reader.readline()).decode("utf-8", "replace"):
            verb = line[:4].strip().upper()
            if verb == "RCPT":
                recipients += _PATH.findall(line)
            if verb == "DATA":
                writer.write(b"354 Go ahead\r\n")
                raw = await _letter(reader)
                if not await self._take(raw, recipients):
                    return
                recipients = []
            writer.write(_REPLIES.get(verb, b"250 OK\r\n"))
            if verb == "QUIT":
                return
            await writer.drain()

    async def _take(self, raw: bytes, recipients: list[str]) -> bool:
        """Whether an answer is given: a doubt is made by giving none, with the letter taken or not."""
        if self.lose_letters:
            self.lose_letters -= 1
            return False
        for recipient in recipients:
            await self._accept(raw, recipient)
        if self.lose_replies:
            self.lose_replies -= 1
            return False
        return True


_REPLIES = {
    "EHLO": b"250-sandbox\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN\r\n",
    "AUTH": b"235 2.7.0 Welcome\r\n",
    "QUIT": b"221 Bye\r\n",
}


async def _letter(reader: asyncio.StreamReader) -> bytes:
    lines: list[bytes] = []
    size = 0
    while (line := await reader.readline()) not in (b".\r\n", b""):
        size += len(line)
        if size > _MOST_BYTES:
            raise ConnectionError("the letter is too big")
        lines.append(line[1:] if line.startswith(b"..") else line)
    return b"".join(lines)
