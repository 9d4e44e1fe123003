"""The SMTP server: the whole way into a session (TCP, TLS, EHLO, AUTH), and out again with no letter.

The transport itself is asked, so what is tried is what a worker does. It gets one parcel whose address no
server may see: a session is opened for it, and then it is refused on this side, before MAIL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from sendonce.domain.engine.checks import Check, ok, stop
from sendonce.domain.engine.outcomes import Deferred, Outcome
from sendonce.domain.engine.parcels import Parcel
from sendonce.ports.engine import Transport

_WITHIN = 8.0
_FIXES = {
    "connect": "Check SMTP_HOST and SMTP_PORT, and whether a firewall lets this machine out to that port.",
    "wrong_port": "Set SMTP_PORT=587 and SMTP_SECURITY=starttls, or 465 and tls, as your provider says.",
    "starttls": "Set SMTP_SECURITY=tls and SMTP_PORT=465 if your provider offers that.",
    "tls": "Check SMTP_HOST against the name in its certificate; SMTP_CA_FILE for a server of your own.",
    "auth": "Set SMTP_USERNAME and SMTP_PASSWORD, or SMTP_OAUTH_TOKEN, as your provider asks for it.",
    "535": "Correct SMTP_USERNAME and SMTP_PASSWORD; with two-step sign-in, make an application password.",
    "534": "Make an application password with your provider and set it as SMTP_PASSWORD.",
}


class SmtpProbe:
    name = "smtp"

    def __init__(self, transport: Transport, where: str, fix: str | None = None) -> None:
        """``fix`` is what to do about any trouble; without it, the variables to correct are named."""
        self._transport = transport
        self._where = where
        self._fix = fix

    async def examine(self) -> Sequence[Check]:
        feed = _OneThatNeverLeaves()
        try:
            async with asyncio.timeout(_WITHIN):
                await self._transport.carry(feed, 1)
        except TimeoutError:
            what = f"{self._where} did not finish its greeting and sign-in within {_WITHIN:g} seconds."
            return [stop(self.name, what, self._fix or _FIXES["connect"])]
        if isinstance(feed.outcome, Deferred):
            fix = self._fix or _FIXES.get(feed.outcome.code, "Ask your mail provider what its words mean.")
            what = f"{self._where} gives no session: {feed.outcome.reason}."
            return [stop(self.name, what, fix, refuses_all=_is_certain(feed.outcome))]
        return [ok(self.name, f"{self._where} opens a session and takes the sign-in.")]


def _is_certain(outcome: Deferred) -> bool:
    """A server that is down may be up in a minute; a wrong password or certificate stays wrong."""
    return outcome.hold or outcome.code in _FIXES.keys() - {"connect"}


class _OneThatNeverLeaves:
    """A feed with one parcel, whose recipient is a line break: RFC 5321 has no way to say it."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self._waiting: list[Parcel] = [
            Parcel(
                job_id="doctor",
                attempt=0,
                sender="",
                recipient="\r\n",
                content=b"",
                claimed_at=datetime.now(UTC),
                taken=0.0,
            )
        ]

    async def wanted(self) -> bool:
        return bool(self._waiting)

    async def take(self) -> Parcel | None:
        return self.take_nowait()

    def take_nowait(self) -> Parcel | None:
        return self._waiting.pop() if self._waiting else None

    def is_stale(self, parcel: Parcel) -> bool:  # noqa: ARG002 - the port's shape
        return False

    async def reaffirm(self, parcel: Parcel) -> None:
        """No ledger has claimed it."""

    def wire(self, parcel: Parcel) -> bool:  # noqa: ARG002 - the port's shape
        return False

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:  # noqa: ARG002 - the port's shape
        self.outcome = outcome
