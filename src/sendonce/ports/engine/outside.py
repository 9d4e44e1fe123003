"""Where the engine leaves word for others: the outbox, the archive, the meter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.outcomes import Outcome


class Outbox(Protocol):
    """What is still to be told to the world outside, put there in the transaction that made it true."""

    def due(self, topic: str, limit: int) -> Sequence[tuple[str, dict[str, Any]]]:
        """The oldest entries of a topic that are not done: id and body."""

    def done(self, entry_id: str) -> None: ...

    def put(self, topic: str, body: dict[str, Any]) -> None: ...


class Archive(Protocol):
    """Where old records are kept outside the database, before their rows are removed."""

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        """Keep a record of that time; where it is. Durable on return, so its rows may go then.

        The same kind, name and day take the place of an earlier record: keeping again after a crash is
        harmless. Raises Unavailable.
        """

    def read(self, place: str) -> bytes:
        """A record, from where ``keep`` has put it.

        Raises NotFound, also for another machine's record and for a damaged one.
        """

    def prune(self, kind: str, before: datetime) -> int:
        """Remove the records of the days before that one; how many. Raises Unavailable."""


class Meter(Protocol):
    """Where the engine and the events tell how they fare."""

    def observe_turn(self, claimed: int, settled: int, seconds: float) -> None: ...

    def count_outcome(self, transport: str, outcome: Outcome) -> None: ...

    def count_event(self, kind: EventKind, verdict: EventVerdict) -> None: ...

    def count_unreadable(self) -> None: ...


class ReadableMeter(Meter, Protocol):
    """A meter that others may read."""

    def render(self) -> bytes: ...

    @property
    def content_type(self) -> str: ...
