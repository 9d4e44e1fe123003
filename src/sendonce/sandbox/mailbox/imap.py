"""The provider's IMAP side: the part of RFC 3501 that a reader of mailboxes needs."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime

from sendonce.sandbox.mailbox.box import SENT, Folder, Message

_DONE = "OK done"
_SEARCH_DAY = "%d-%b-%Y"
_PARTIAL = re.compile(r"BODY\.PEEK\[\]<(\d+)\.(\d+)>", re.IGNORECASE)


class ImapSide:
    def __init__(self, folders: Mapping[str, Folder], username: str, password: str) -> None:
        self._folders = folders
        self._account = (username, password)
        self.commands: list[str] = []
        """Every command that was given, for those who want to see what a reader does."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(self, reader, writer)
        try:
            await session.run()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away
        finally:
            writer.close()

    def knows(self, username: str, password: str) -> bool:
        return (username, password) == self._account

    def folder(self, name: str) -> Folder | None:
        return self._folders.get(name)

    def names(self) -> list[str]:
        return list(self._folders)


class _Session:
    def __init__(self, side: ImapSide, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._side = side
        self._reader = reader
        self._writer = writer
        self._signed_in = False
        self._selected: Folder | None = None

    async def run(self) -> None:
        self._say("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] the sandbox's mailbox")
        while line := (await self._reader.readline()).decode("utf-8", "replace").strip():
            tag, _, rest = line.partition(" ")
            self._side.commands.append(rest)
            self._say(f"{tag} {await self._answer(_words(rest))}")
            await self._writer.drain()
            if rest.upper() == "LOGOUT":
                return

    async def _answer(self, words: list[str]) -> str:
        command = words[0].upper() if words else ""
        if command == "CAPABILITY":
            self._say("* CAPABILITY IMAP4rev1 AUTH=PLAIN")
            return _DONE
        if command == "LOGOUT":
            self._say("* BYE")
            return _DONE
        if command == "AUTHENTICATE":
            return await self._authenticate()
        if command == "LOGIN" and len(words) == 3:
            return self._sign_in(words[1], words[2])
        if not self._signed_in:
            return "NO sign in first"
        if command == "LIST":
            return self._list()
        if command in ("SELECT", "EXAMINE") and len(words) == 2:
            return self._select(words[1], readonly=command == "EXAMINE")
        if command == "UID" and len(words) > 2 and self._selected is not None:
            return self._by_number(self._selected, words[1].upper(), words[2:])
        return f"BAD {command} is not known here" if command != "CLOSE" else _DONE

    async def _authenticate(self) -> str:
        self._say("+ ")
        await self._writer.drain()
        try:
            _, username, password = base64.b64decode(await self._reader.readline()).decode().split("\0")
        except (binascii.Error, ValueError):
            return "BAD what was that"
        return self._sign_in(username, password)

    def _sign_in(self, username: str, password: str) -> str:
        self._signed_in = self._side.knows(username, password)
        return _DONE if self._signed_in else "NO [AUTHENTICATIONFAILED] wrong name or password"

    def _list(self) -> str:
        for name in self._side.names():
            self._say(f'* LIST ({chr(92)}Sent) "/" "{name}"' if name == SENT else f'* LIST () "/" "{name}"')
        return _DONE

    def _select(self, name: str, *, readonly: bool) -> str:
        self._selected = folder = self._side.folder(name)
        if folder is None:
            return "NO there is no such folder"
        self._say(f"* {len(folder.messages)} EXISTS")
        self._say(f"* OK [UIDVALIDITY {folder.uid_validity}] numbers")
        self._say(f"* OK [UIDNEXT {folder.uid_next}] next")
        return "OK [READ-ONLY] open" if readonly else "OK [READ-WRITE] open"

    def _by_number(self, folder: Folder, command: str, words: list[str]) -> str:
        if command == "SEARCH":
            found = [str(message.uid) for message in folder.messages if _matches(message, words, folder)]
            self._say("* SEARCH " + " ".join(found))
            return _DONE
        if command == "FETCH":
            for position, message in enumerate(folder.messages, 1):
                if str(message.uid) in words[0].split(","):
                    self._send(position, message, " ".join(words[1:]))
            return _DONE
        return "BAD only SEARCH and FETCH are known here"

    def _send(self, position: int, message: Message, wanted: str) -> None:
        part = _PARTIAL.search(wanted)
        start, size = (int(part[1]), int(part[2])) if part else (0, len(message.raw))
        piece = message.raw[start : start + size]
        self._say(f"* {position} FETCH (UID {message.uid} BODY[]<{start}> {{{len(piece)}}}")
        self._writer.write(piece)
        self._say(")")

    def _say(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _matches(message: Message, words: list[str], folder: Folder) -> bool:
    match [word.upper() if number == 0 else word for number, word in enumerate(words)]:
        case ["SINCE", day]:
            return message.filed_at >= datetime.strptime(day, _SEARCH_DAY).replace(tzinfo=UTC)
        case ["UID", span]:
            first, _, _ = span.partition(":")
            # RFC 3501: "*" is the last message, so that "9:*" has it even where it is number 3.
            return message.uid >= int(first) or message is folder.messages[-1]
        case ["HEADER", name, value]:
            return value.lower() in message.header(name).lower()
    return True
