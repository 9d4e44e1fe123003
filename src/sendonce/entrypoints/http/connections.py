"""How many connections may be open, and how long each may keep the service waiting.

A file descriptor is the scarcest thing that a stranger can take from us: without one there is no database,
no provider and no file. So some are kept back, the rest are lent out, and where all are lent out a new
connection takes the place of the one that has kept us waiting longest. A client that means well sends its
request within milliseconds; one that does not loses its place to it.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 1024
FEWEST_CONNECTIONS = 32
RESERVED_DESCRIPTORS = 160
"""For the database, the files of the worker, DNS and whatever is fetched. Connections that carry letters
come on top of it."""
_SHARE_TO_END = 16
_TELL_EVERY = 60.0


class Phase(Enum):
    """What a connection waits for its client to do."""

    HEAD = "send the head of a request"
    BODY = "send the rest of a request"
    READ = "read the answer"
    IDLE = "ask for something else"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a client may take. Seconds are those in which it has to get on."""

    connections: int = MOST_CONNECTIONS
    head_bytes: int = 64 * 1024
    """Request line, header fields, chunk extensions and trailers of one request together."""
    head_fields: int = 128
    head_seconds: float = 10.0
    body_seconds: float = 35.0  # the endpoints give up after 30 s and say so
    read_seconds: float = 10.0
    idle_seconds: int = 75  # longer than a load balancer's 60 s, so that it is the one to hang up
    look_every: float = 0.5

    def allows(self, phase: Phase) -> float:
        return {
            Phase.HEAD: self.head_seconds,
            Phase.BODY: self.body_seconds,
            Phase.READ: self.read_seconds,
        }.get(phase, float("inf"))  # uvicorn itself ends a connection that is idle


def connections_beside(letters: int) -> int:
    """How many connections fit beside those of the worker, by the limit on open files (``ulimit -n``)."""
    try:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        files = 1024  # what most systems give
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, files - RESERVED_DESCRIPTORS - letters))


class Wait(NamedTuple):
    phase: Phase
    since: float

    @property
    def urgency(self) -> tuple[bool, float]:
        """Who keeps us waiting in the middle of a request goes before who rests between two."""
        return self.phase is Phase.IDLE, self.since


class Connection(Protocol):
    def wait(self, now: float) -> Wait | None:
        """What the client is to do next, and since when; None while it is our turn."""

    def end(self, phase: Phase) -> None:
        """The client took too long over it."""

    def drop(self) -> None:
        """Give the descriptor back at once."""


class OpenConnections:
    """All connections of one server. Looks at each twice a second and ends those that take too long."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._told = float("-inf")

    def admit(self, connection: Connection) -> bool:
        """Whether there is room. False only where every other connection is being worked for."""
        loop = asyncio.get_running_loop()
        if len(self._open) >= self._limits.connections and not self._make_room(loop.time()):
            return False
        self._open.add(connection)
        if self._timer is None:
            self._timer = loop.call_later(self._limits.look_every, self._look)
        return True

    def dismiss(self, connection: Connection) -> None:
        self._open.discard(connection)

    def _make_room(self, now: float) -> bool:
        """Several go at once: to look for the slowest at every new connection would be a flood's delight."""
        waits = [(wait.urgency, it) for it in self._open if (wait := it.wait(now)) is not None]
        waits.sort(key=lambda pair: pair[0])
        slowest = waits[: max(1, self._limits.connections // _SHARE_TO_END)]
        for _, connection in slowest:
            self._open.discard(connection)
            connection.drop()
        self._tell(now, len(slowest))
        return bool(slowest)

    def _tell(self, now: float, ended: int) -> None:
        if now - self._told >= _TELL_EVERY:
            self._told = now
            facts = {"most": self._limits.connections, "ended": ended}
            log.warning("all connections are taken: the slowest are ended", extra={"fields": facts})

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._open):
            wait = connection.wait(now)
            if wait is not None and now - wait.since > self._limits.allows(wait.phase):
                connection.end(wait.phase)
        self._timer = loop.call_later(self._limits.look_every, self._look) if self._open else None
