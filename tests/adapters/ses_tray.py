"""A tray of parcels and the SES transport that empties it, for tests against a scripted server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sendonce.adapters.aws.credentials import Credentials, CredentialSource, StaticCredentials
from sendonce.adapters.transports.ses import SesSettings, SesTransport
from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.parcels import Parcel
from tests.adapters.http_server import ScriptedServer, Step, answer

CLAIMED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
KEYS = Credentials("AKID", "secret", "session-token")


class Tray:
    """A feed of a few parcels that remembers what became of them."""

    def __init__(
        self, count: int = 1, content: bytes = b"Subject: x\r\n\r\nHello\r\n", wire: bool = True
    ) -> None:
        self.server = ScriptedServer()
        self._parcels = [_parcel(number, content) for number in range(count)]
        self._wire = wire
        self.wired: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.before_take: Callable[[], Any] | None = None
        self.on_wire = asyncio.Event()
        self.waits = 0
        self.wired_at: list[float] = []
        self.settled_at: list[float] = []
        self.stale = False
        self.reaffirm_says = True
        self.reaffirmed: list[str] = []

    async def wanted(self) -> bool:
        return bool(self._parcels)

    async def take(self) -> Parcel | None:
        self.waits += 1
        if self.before_take and self.wired:
            await self.before_take()
        return self._parcels.pop(0) if self._parcels else None

    def take_nowait(self) -> Parcel | None:
        """Where somebody waits before a parcel is taken, none is ready at once."""
        return self._parcels.pop(0) if self._parcels and not self.before_take else None

    def is_stale(self, parcel: Parcel) -> bool:
        return self.stale

    async def reaffirm(self, parcel: Parcel) -> None:
        self.reaffirmed.append(parcel.job_id)
        self.stale = not self.reaffirm_says

    def wire(self, parcel: Parcel) -> bool:
        goes = self._wire and not self.stale
        if goes:
            self.wired.append(parcel.job_id)
            self.wired_at.append(time.monotonic())
        self.on_wire.set()
        return goes

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        assert parcel.job_id not in self.outcomes, "settled twice"
        self.outcomes[parcel.job_id] = outcome
        self.settled_at.append(time.monotonic())

    @property
    def outcome(self) -> Outcome:
        (outcome,) = self.outcomes.values()
        return outcome


def _parcel(number: int, content: bytes) -> Parcel:
    return Parcel(f"job-{number}", 3, "from@example.org", 'to"x@example.com', content, CLAIMED, 0.0)


def ses_transport(endpoint: str, source: CredentialSource | None = None, **settings: Any) -> SesTransport:
    settings.setdefault("configuration_set", "events")
    return SesTransport(
        SesSettings("eu-central-1", source or StaticCredentials(KEYS), endpoint=endpoint, **settings)
    )


def carry_by_script(
    script: Sequence[Step], tray: Tray | None = None, connections: int = 1, **settings: Any
) -> Tray:
    tray = tray or Tray()
    with ScriptedServer(script) as server:
        asyncio.run(ses_transport(server.url, **settings).carry(tray, connections))
    tray.server = server
    return tray


def ses_error(status: int, code: str, message: str = "", field: str = "message") -> Step:
    return answer(status, {field: message}, x_amzn_ErrorType=code)


def raw_answer(text: str, then: str = "close") -> Step:
    return Step(text.replace("\n", "\r\n").encode(), then)
