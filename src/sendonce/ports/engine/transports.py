"""How letters leave. Transports wait on many sockets, so they are async."""

from __future__ import annotations

from typing import Protocol

from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.parcels import Parcel, Quota


class Feed(Protocol):
    """Where a transport's connections get their parcels, and where they leave the outcomes.

    The order for each parcel is: ``take`` → everything that is not the body (connect, envelope) →
    ``reaffirm`` if that took long → ``wire`` → the body → the reply → ``settle``.
    """

    async def wanted(self) -> bool:
        """Wait until parcels are ready that no connection waits for; False when the work is over.

        For transports whose connections take long to open: a parcel that waited for one would grow old.
        """

    async def take(self) -> Parcel | None:
        """The next parcel, when there is one and pacing allows it; None when the work is over."""

    def take_nowait(self) -> Parcel | None:
        """The next parcel if one may leave this very moment. For pipelining."""

    def is_stale(self, parcel: Parcel) -> bool:
        """Whether the parcel's claim is too old for the wire, unless it is reaffirmed."""

    async def reaffirm(self, parcel: Parcel) -> None:
        """Ask the ledger whether the parcel may still leave; if so, its claim is fresh again.

        For servers that take long to answer the envelope: given back, such a letter would never leave.
        Takes about a second at most, and never raises.
        """

    def wire(self, parcel: Parcel) -> bool:
        """Write the parcel into the wire journal, right before the first byte of its body leaves.

        False means that it must not be sent (its claim is too old, the journal cannot be written, or
        the worker is stopping): the transport drops it without ``settle``; it has been given back.
        """

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        """The outcome of a taken parcel. Called once, also for one that never got to ``wire``."""


class Transport(Protocol):
    """How letters leave. One object a worker process."""

    name: str

    async def carry(self, feed: Feed, connections: int) -> None:
        """Move parcels from the feed over at most ``connections`` connections, until take() gives None.

        At most one body a connection is on the wire at any moment, so a SIGKILL leaves at most
        ``connections`` letters in doubt.
        A cancelled carry() settles what was on the wire as InDoubt. It never raises for what a server does.
        """

    async def quota(self) -> Quota | None:
        """What the provider allows now; None where it has no such notion. Raises Unavailable."""

    async def close(self) -> None: ...
