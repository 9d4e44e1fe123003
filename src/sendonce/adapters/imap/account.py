"""A mailbox over IMAP (RFC 3501), with the standard library's client, for reading only.

Folders are opened by EXAMINE and messages fetched with PEEK, so nothing in the mailbox changes. The server is
the user's own provider, and yet what it sends is bounded: lines by imaplib, literals here.
"""

from __future__ import annotations

import imaplib
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from sendonce.errors import Unavailable

MOST_FETCHED = 1_000_000
_MOST_IN_A_LITERAL = 16_000_000
_TIMEOUT = 30.0

_UID = re.compile(rb"\bUID (\d{1,10})\b")
_LISTED = re.compile(rb'\((?P<flags>[^)]{0,500})\) (?:"(?:[^"\\]|\\.)"|NIL) (?P<name>.+)')
_SENT_NAMES = ("sent", "sent items", "sent messages", "sent mail", "inbox.sent", "отправленные")


@dataclass(frozen=True, slots=True)
class ImapSettings:
    host: str
    port: int
    security: Literal["tls", "starttls", "plain"]
    username: str
    password: str = field(repr=False, default="")
    oauth_token: str = field(repr=False, default="")
    ca_file: Path | None = None


class ImapAccount:
    def __init__(self, settings: ImapSettings) -> None:
        self._settings = settings
        self.name = f"{settings.username}@{settings.host}:{settings.port}"

    @contextmanager
    def opened(self) -> Iterator[OpenImap]:
        """Signed in. Raises Unavailable, also for a refused sign-in: it says which settings to look at."""
        with _translated(self._where):
            connection = self._connect()
        try:
            with _translated(self._where):
                self._secure(connection)
            self._sign_in(connection)
            yield OpenImap(connection, self._where)
        finally:
            with suppress(imaplib.IMAP4.error, OSError):
                connection.logout()

    @contextmanager
    def opened_sent(self) -> Iterator[ImapFolder]:
        """The folder of sent letters. Raises Unavailable, also where there is none."""
        with self.opened() as account:
            name = account.sent_folder()
            if name is None:
                raise Unavailable(
                    f"{self._where} has no folder of sent letters, and IMAP_SERVER_FILES_SENT says so."
                )
            yield account.folder(name)

    @property
    def _where(self) -> str:
        return f"The IMAP server {self._settings.host}:{self._settings.port}"

    def _connect(self) -> imaplib.IMAP4:
        host, port = self._settings.host, self._settings.port
        if self._settings.security == "tls":
            return _BoundedTls(host, port, ssl_context=self._context(), timeout=_TIMEOUT)
        return _Bounded(host, port, timeout=_TIMEOUT)

    def _secure(self, connection: imaplib.IMAP4) -> None:
        if self._settings.security == "starttls":
            connection.starttls(self._context())

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._settings.ca_file)

    def _sign_in(self, connection: imaplib.IMAP4) -> None:
        user = self._settings.username
        try:
            if self._settings.oauth_token:
                shown = f"user={user}\x01auth=Bearer {self._settings.oauth_token}\x01\x01"
                connection.authenticate("XOAUTH2", lambda _: shown.encode())
            elif "AUTH=PLAIN" in connection.capabilities:
                shown = f"\0{user}\0{self._settings.password}"
                connection.authenticate("PLAIN", lambda _: shown.encode())
            else:
                connection.login(user, self._settings.password)
        except (imaplib.IMAP4.error, UnicodeError) as exc:
            raise Unavailable(
                f"{self._where} refused the sign-in of {user}: {_said(exc)}. Look at IMAP_USERNAME and "
                "IMAP_PASSWORD; with two-step sign-in it must be an application password."
            ) from exc
        except OSError as exc:
            raise Unavailable(f"{self._where} went away: {exc}.") from exc


class OpenImap:
    """One connection, one folder at a time."""

    def __init__(self, connection: imaplib.IMAP4, where: str) -> None:
        self._connection = connection
        self._where = where

    def folder(self, name: str) -> ImapFolder:
        """By its name as the server writes it. Raises Unavailable for an unknown one."""
        with _translated(self._where):
            status, told = self._connection.select(_quoted(name), readonly=True)
            if status != "OK":
                said = _text(told[0] if told else b"")
                raise Unavailable(f"{self._where} has no folder {name!r}: {said}. Look at IMAP_FOLDERS.")
            validity, following = self._number("UIDVALIDITY"), self._number("UIDNEXT")
        return ImapFolder(self._connection, self._where, validity, following)

    def sent_folder(self) -> str | None:
        """The one that the server marks as its folder of sent letters (RFC 6154), or that is called so."""
        with _translated(self._where):
            _, lines = self._connection.list()
        folders = [(found["flags"].lower(), _unquoted(found["name"])) for found in _listed(lines)]
        marked = [name for flags, name in folders if b"\\sent" in flags.split()]
        return next(iter([*marked, *(name for _, name in folders if name.lower() in _SENT_NAMES)]), None)

    def _number(self, name: str) -> int:
        _, told = self._connection.response(name)
        value = told[0] if told else None
        return int(value) if isinstance(value, bytes) and value.isdigit() else 1


class ImapFolder:
    def __init__(self, connection: imaplib.IMAP4, where: str, uid_validity: int, uid_next: int) -> None:
        self._connection = connection
        self._where = where
        self.uid_validity = uid_validity
        self.uid_next = uid_next

    def younger_than(self, age: timedelta) -> Sequence[int]:
        # The server's days have its own time zone: one more is asked for.
        day = datetime.now(UTC) - age - timedelta(days=1)
        return self._search("SINCE", f"{day.day:02}-{_MONTHS[day.month - 1]}-{day.year}")

    def after(self, uid: int) -> Sequence[int]:
        # "7:*" always has the last message in it, whatever its number.
        return [each for each in self._search("UID", f"{uid + 1}:*") if each > uid]

    def holds(self, job_id: str) -> bool:
        """Whether a letter of this job lies here: our Message-ID begins with its id."""
        return bool(self._search("HEADER", "Message-ID", _quoted(f"<{job_id}@")))

    def fetch(self, uids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        wanted = ",".join(map(str, uids))
        with _translated(self._where):
            _, told = self._connection.uid("FETCH", wanted, f"(UID BODY.PEEK[]<0.{MOST_FETCHED}>)")
        for position, item in enumerate(told):
            if isinstance(item, tuple):
                tail = told[position + 1] if position + 1 < len(told) else b""
                uid = _UID.search(item[0]) or (_UID.search(tail) if isinstance(tail, bytes) else None)
                if uid is not None:
                    yield int(uid[1]), item[1]

    def _search(self, *criteria: str) -> list[int]:
        with _translated(self._where):
            status, told = self._connection.uid("SEARCH", *criteria)
            if status != "OK":
                raise Unavailable(f"{self._where} cannot search: {_text(told[0] if told else b'')}.")
        numbers = b" ".join(item for item in told if isinstance(item, bytes)).split()
        return sorted(int(number) for number in numbers if number.isdigit())


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Bounded(imaplib.IMAP4):
    def read(self, size: int) -> bytes:
        _check(size)
        return super().read(size)


class _BoundedTls(imaplib.IMAP4_SSL):
    def read(self, size: int) -> bytes:
        _check(size)
        return super().read(size)


def _check(size: int) -> None:
    if size > _MOST_IN_A_LITERAL:
        raise imaplib.IMAP4.abort(f"a literal of {size} bytes is more than was asked for")


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLCertVerificationError as exc:
        raise Unavailable(
            f"{where} shows a certificate that is not trusted: {exc.verify_message}. For a server of your "
            "own, name its authority in SMTP_CA_FILE."
        ) from exc
    except OSError as exc:
        raise Unavailable(f"{where} does not answer: {exc}.") from exc
    except (imaplib.IMAP4.error, ValueError) as exc:
        raise Unavailable(f"{where} answered with an error: {_said(exc)}.") from exc


def _said(exc: BaseException) -> str:
    first = exc.args[0] if exc.args else ""
    return _text(first) if isinstance(first, bytes) else " ".join(str(first).split())[:200]


def _text(said: Any) -> str:
    return said.decode("utf-8", "replace")[:200] if isinstance(said, bytes) else str(said or "")[:200]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(name: bytes) -> str:
    text = name.decode("ascii", "replace").strip()
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if text.startswith('"') else text


def _listed(lines: Sequence[Any]) -> Iterator[re.Match[bytes]]:
    for line in lines:
        if isinstance(line, bytes) and (found := _LISTED.match(line)):
            yield found
