"""What a server allows, learned from its refusals: connections at once, letters per connection.

A server that refuses one more connection while others are open has reached its limit, and the others go on.
Limits are not for ever: every now and then one more connection is tried, and the letters are counted again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from sendonce.domain.engine.outcomes import Deferred

log = logging.getLogger(__name__)

T = TypeVar("T")

# How long a learned limit stands before one more is tried; each time without success doubles it.
GROW_AFTER = 60.0
GROW_AFTER_AT_MOST = 960.0
LETTERS_STAND_FOR = 600.0
# A server counts a connection for a moment after it was closed, so a refusal below the number it granted
# before is not believed at once.
FIRST_PAUSE = 0.1
REFUSALS_BELIEVED = 5
_MOST_SUSPECTS = 10_000


class Habits:
    """What all sessions with one server have learned about it, and share."""

    def __init__(self, letters: int) -> None:
        self.quick = False
        """Whether it answered its last letter within the patience of a claim."""
        self.keeps_transaction = False
        """Whether a letter that it refused at the final dot leaves its transaction open."""
        self.open = 0
        """Sessions that are ready for letters now."""
        self.accepted = 0
        """Letters that it accepted, over all sessions."""
        self.letters = letters
        """Letters per connection."""
        self._most_letters = letters
        self._letters_stand_until = 0.0
        self._last_cut: int | None = None
        self._trouble_at = 0
        self._suspects: OrderedDict[str, int] = OrderedDict()

    def cut_off(self, letters: int, now: float) -> None:
        """A connection was closed after so many letters. Twice the same number is a limit."""
        if letters == self._last_cut and letters < self.letters:
            self.letters = letters
            self._letters_stand_until = now + LETTERS_STAND_FOR
            log.info("learned a limit", extra={"fields": {"letters_per_connection": letters}})
        self._last_cut = letters

    def count_again(self, now: float) -> None:
        """Forget an old limit of letters: it may be gone."""
        if now > self._letters_stand_until:
            self.letters = self._most_letters

    def weigh(self, job_id: str, trouble: Deferred) -> Deferred:
        """Whose trouble is a reply that stops a session in the middle of a letter?

        At first the letter's: it waits, uses up no try, and the others go on. Trouble again with nothing
        accepted between is the server's: the transport rests. A letter that meets it again after others
        were accepted pays with a try.
        """
        before = self._suspects.get(job_id)
        self.remember(job_id)
        if before is not None and self.accepted > before:
            return Deferred(trouble.code, trouble.reason)
        return trouble if self.again() else replace(trouble, local=True)

    def remember(self, job_id: str) -> bool:
        """Remember that a letter met trouble; whether it had before."""
        known = self._suspects.pop(job_id, None) is not None
        self._suspects[job_id] = self.accepted
        if len(self._suspects) > _MOST_SUSPECTS:
            self._suspects.popitem(last=False)
        return known

    def again(self) -> bool:
        """Note a trouble; True when nothing was accepted since the one before, or ever."""
        repeated = self.accepted == self._trouble_at
        self._trouble_at = self.accepted
        return repeated


class Slots:
    """How many connections there may be: who may open one enters, and leaves when it has ended."""

    def __init__(self, connections: int, habits: Habits) -> None:
        self._habits = habits
        self._wanted = connections
        self._granted = connections
        self._proven = 0
        self._refusals = 0
        self._pause_ends = 0.0
        self._tried_more = False
        self._taken = 0
        self._grow_after = GROW_AFTER
        self._growing: asyncio.TimerHandle | None = None
        self._queue: deque[asyncio.Future[None]] = deque()
        self._scout: asyncio.Event | None = None

    async def enter(self) -> None:
        while self._taken >= self._granted:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(place)
            await place
        self._taken += 1

    def leave(self) -> None:
        self._taken -= 1
        self._call()

    @property
    def others_open(self) -> bool:
        return self._habits.open > 0

    async def scouted(self, attempt: Callable[[], Awaitable[T]]) -> T | None:
        """Make an attempt to open a session. While none is open, one lane tries, and the others wait to see
        how it fares: a wrong password is tried once, not once per connection."""
        if self._habits.open:
            return await attempt()
        if self._scout is not None:
            await self._scout.wait()
            return None
        self._scout = scout = asyncio.Event()
        try:
            return await attempt()
        finally:
            self._scout = None
            scout.set()

    def opened(self, now: float) -> None:
        self._habits.count_again(now)
        self._habits.open += 1
        self._refusals = 0
        if self._habits.open > self._proven:
            self._proven = self._habits.open
            self._grow_after = GROW_AFTER
            self._tried_more = False
        self._granted = max(self._granted, self._habits.open)
        self._call()

    def closed(self) -> None:
        self._habits.open -= 1

    def refused(self) -> float:
        """One more connection was refused while others are open; seconds to wait before the next try."""
        now = asyncio.get_running_loop().time()
        if now >= self._pause_ends:  # what several lanes hear at once is one refusal
            self._refusals += 1
            self._pause_ends = now + FIRST_PAUSE * 2.0**self._refusals
        if self._habits.open < self._proven and self._refusals < REFUSALS_BELIEVED:
            return self._pause_ends - now
        self._limit_to(max(self._habits.open, 1))
        return 0.0

    def _limit_to(self, connections: int) -> None:
        if connections != self._granted:
            log.info("learned a limit", extra={"fields": {"connections": connections}})
        self._proven = self._granted = connections
        self._refusals = 0
        if self._tried_more:
            self._tried_more = False
            self._grow_after = min(2 * self._grow_after, GROW_AFTER_AT_MOST)
        self._grow_later()

    def stop(self) -> None:
        if self._growing is not None:
            self._growing.cancel()
            self._growing = None

    def _grow_later(self) -> None:
        if self._growing is None:
            self._growing = asyncio.get_running_loop().call_later(self._grow_after, self._grow)

    def _grow(self) -> None:
        self._growing = None
        if self._granted < self._wanted:
            self._granted += 1
            self._tried_more = True
            self._call()
            self._grow_later()

    def _call(self) -> None:
        """Let in as many as there is room for."""
        room = self._granted - self._taken
        while self._queue and room > 0:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                room -= 1
