"""Note that delivery events are received: only then a missing one proves anything.

Listening is what was received, not that a process runs. Without an allowed topic, or before one of them
has delivered or confirmed anything, nothing is noted. Whatever may have cost an event (an answer of 5xx, a
request that came too slowly or was too long, a note that could not be written, an event that could not be
read) begins a new stretch with the next note.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Collection

from sendonce.errors import Unavailable
from sendonce.ports.engine import EventRoute

log = logging.getLogger(__name__)

QUEUE = "queue"


class Listener:
    """``durable`` for a queue, which all its readers empty together. May be called from many threads."""

    def __init__(self, route: EventRoute, topics: Collection[str], *, durable: bool = False) -> None:
        self._route = route
        self._topics = frozenset(topics)
        self._durable = durable
        self._name = QUEUE if durable else str(uuid.uuid4())
        self._known: set[str] = set()
        self._broken = False
        self._lock = threading.Lock()

    def attend(self) -> None:
        """Note that events are received now. Raises Unavailable: then the stretch is over."""
        self._known.clear()  # another process may have heard that a subscription ended
        with self._lock:
            broken, self._broken = self._broken, False
        try:
            if self._route.is_subscribed(self._topics):
                self._route.attend(self._name, durable=self._durable, anew=broken)
            else:
                self.broke()
        except Unavailable:
            if broken or not self._durable:  # a queue keeps its events whether or not we can write
                self.broke()
            raise

    def heard_from(self, topic: str) -> None:
        """A genuine message of the topic came, so it delivers to us; the first one is noted at once."""
        if topic not in self._known:
            self._route.subscribed(topic)
            if not self._durable:
                self.attend()
            self._known.add(topic)

    def ended(self, topic: str) -> None:
        """The topic told that it delivers no more."""
        self._known.discard(topic)
        self.broke()
        self._route.unsubscribed(topic)

    def broke(self) -> None:
        """An event may be lost: one that we could not take."""
        with self._lock:
            self._broken = True

    def missed(self) -> None:
        """An event came and could not be read. Raises Unavailable: then it has to come again.

        For a queue the new stretch begins at once: other readers go on with the old one, and this process
        may end before it finds the queue empty.
        """
        self.broke()
        if self._durable:
            self.attend()

    def leave(self) -> None:
        """Sign off in good order."""
        if self._broken:
            return
        try:
            self._route.leave(self._name)
        except Unavailable as exc:
            log.warning("the receiver could not sign off", extra={"fields": {"error": str(exc)}})
