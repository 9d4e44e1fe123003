"""Sender identities: the addresses that letters leave from, each with its own way out.

The environment's own sender is one of them. It is made from the settings and has no row; dispatches without a
sender are its own. All others are added by a person. Their secrets stay outside the database: a row only says
in which variable or file the secret is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.senders import SenderHold
from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import BadInput, NotFound, RefusedByRule

TRANSPORTS = ("ses", "smtp", "maildir")
SECURITY = ("starttls", "tls", "plain")
_NAMED_SO = r"PASS|PW|SECRET|KEY|TOKEN|CRED|AUTH"
_VARIABLE = re.compile(rf"(?:SENDER_|(?=[A-Z0-9_]*(?:{_NAMED_SO})))[A-Z][A-Z0-9_]{{0,99}}")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]_-]{1,253}")
_PLACES = {"ses": "region", "smtp": "host", "maildir": "folder"}


class SenderState(StrEnum):
    ACTIVE = "ok"
    HELD = "held"  # until a time; then one letter is tried
    BLOCKED = "blocked"  # until a person releases it
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class NewSender:
    """``place`` is a region of SES, a host for SMTP or the folder of a maildir.

    ``username`` is the account at the SMTP host, or the id of an access key of AWS. ``secret_from`` names the
    variable or the file that has the password or the secret key. ``rate_limit`` (letters per second, 0 for
    none) and ``connections`` are the environment's where they are None. Senders with one ``rate_key`` share
    a rate. ``imap_host`` has the mailbox that answers come to, where its SMTP account signs in, too.
    ``second_region`` takes the letters while SES is in trouble in the first one.
    """

    address: str
    transport: str
    place: str
    name: str | None = None
    reply_to: str | None = None
    port: int | None = None
    security: str | None = None
    username: str | None = None
    secret_from: str | None = None
    configuration_set: str | None = None
    rate_limit: int | None = None
    rate_key: str | None = None
    connections: int | None = None
    imap_host: str | None = None
    imap_port: int | None = None
    second_region: str | None = None
    second_configuration_set: str | None = None

    def check(self) -> None:
        """Raises BadInput for what can never work, before the sender is added."""
        parse_address(self.address)
        if self.reply_to is not None:
            parse_address(self.reply_to)
        _require_choice("transport", self.transport, TRANSPORTS)
        self._check_place()
        if self.security is not None:
            _require_choice("security", self.security, SECURITY)
        _require_port("port", self.port, 587)
        if self.rate_limit is not None and self.rate_limit < 0:
            raise BadInput(f"rate: {self.rate_limit} is below 0. Write 0 for no limit.")
        if self.connections is not None and self.connections < 1:
            raise BadInput(f"connections: {self.connections} is too few. Write 1 or more.")
        if any(not text.isprintable() for text in (self.name or "", self.username or "")):
            raise BadInput("name, username: they must be one line of text.")
        self._check_second_region()
        self._check_secret()
        self._check_mailbox()

    def _check_place(self) -> None:
        noun = _PLACES[self.transport]
        if not self.place:
            raise BadInput(f"{noun}: it is not given, and a sender on {self.transport} needs it.")
        if self.transport != "maildir" and not _HOST.fullmatch(self.place):
            raise BadInput(f"{noun}: {self.place[:80]!r} is not the name of one.")

    def _check_second_region(self) -> None:
        second = self.second_region
        if second is None and self.second_configuration_set is not None:
            raise BadInput("second-configuration-set: it is of no use without --second-region. Give both.")
        if second is None:
            return
        if self.transport != "ses":
            raise BadInput("second-region: only SES has regions. Leave it out, or give --region.")
        if not _HOST.fullmatch(second):
            raise BadInput(f"second-region: {second[:80]!r} is not the name of one.")
        if second == self.place:
            raise BadInput(f"second-region: {second} is the sender's own region. Choose another one.")

    def _check_secret(self) -> None:
        where = self.secret_from
        if where is not None and not (_VARIABLE.fullmatch(where) or where.startswith("/")):
            # It is not shown: somebody may have written the secret itself.
            raise BadInput(
                "secret-env, secret-from: it must be the name of a variable that begins with SENDER_ or has "
                "PASS, PW, SECRET, KEY, TOKEN, CRED or AUTH in it, such as NEWS_PASSWORD, or the whole path "
                "of a file, such as /run/secrets/news. The secret itself is never stored."
            )
        if self.transport == "smtp" and (self.username is None) != (where is None):
            raise BadInput("username, secret-from: an SMTP login needs both. Without a login, give neither.")
        if self.transport == "ses" and (self.username is None) != (where is None):
            raise BadInput(
                "username, secret-from: an access key of AWS has an id and a secret key. Give both, or "
                "neither to use the environment's credentials."
            )

    def _check_mailbox(self) -> None:
        _require_port("imap-port", self.imap_port, 993)
        if self.imap_host is None:
            if self.imap_port is not None:
                raise BadInput("imap-port: it is the port of --imap-host, which is not given.")
            return
        if not _HOST.fullmatch(self.imap_host):
            raise BadInput(f"imap-host: {self.imap_host[:80]!r} is not the name of one.")
        if self.transport != "smtp" or self.username is None:
            raise BadInput(
                "imap-host: its mailbox is read with the account of its SMTP host. Give --host, --username "
                "and --secret-env, or leave --imap-host out."
            )


def may_hold_a_secret(variable: str) -> bool:
    """Whether a variable's name says so: the log masks what such variables hold."""
    return _VARIABLE.fullmatch(variable) is not None


class SenderIdentity(NamedTuple):
    """A sender that was added. Its row outlives its removal: its waiting letters still name it."""

    id: str
    tenant_id: TenantId
    made: NewSender
    created_at: datetime
    removed_at: datetime | None = None

    @property
    def address(self) -> str:
        return self.made.address


class WaitingSender(NamedTuple):
    """A sender whose letters are open, and since when the first of them is due."""

    sender_id: str
    due_from: datetime


def state_of(identity: SenderIdentity | None, hold: SenderHold | None) -> SenderState:
    if identity is not None and identity.removed_at is not None:
        return SenderState.REMOVED
    if hold is None:
        return SenderState.ACTIVE
    return SenderState.BLOCKED if hold.until_released else SenderState.HELD


def address_taken(address: str) -> RefusedByRule:
    """Two senders with one address would share its reputation and its refusals without knowing."""
    return RefusedByRule(
        f"There is a sender with the address {address} already: 'sendonce sender list' shows it."
    )


def find_sender(identities: Sequence[SenderIdentity], name: str) -> SenderIdentity:
    """The sender of this address or id. Raises NotFound."""
    for identity in identities:
        if name == identity.id or _same_address(name, identity.address):
            return identity
    raise NotFound(f"There is no sender {name}: 'sendonce sender list' shows them.")


def _same_address(one: str, other: str) -> bool:
    try:
        return parse_address(one).key == parse_address(other).key
    except BadInput:
        return False


def _require_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BadInput(f"{name}: {value[:80]!r} is not one of {', '.join(known)}.")


def _require_port(name: str, port: int | None, usual: int) -> None:
    if port is not None and not 1 <= port <= 65535:
        raise BadInput(f"{name}: {port} is no port. Choose one from 1 to 65535, usually {usual}.")
