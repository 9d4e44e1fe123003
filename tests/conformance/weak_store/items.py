"""Rows that are read and written one at a time, and listings of them that lag behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

from sendonce.adapters.stores.memory.state import State

T = TypeVar("T")
Table = dict[Any, T]


class Listing:
    """A table as an index shows it: each write is seen some operations later.

    Rows that another room writes past the items are shown at once; they are not the engine's to delay.
    """

    def __init__(self, table: Table[Any]) -> None:
        self._table = table
        self._shown: Table[Any] = {}
        self._written: Table[Any] = {}
        self._late: deque[tuple[int, Any, Any]] = deque()

    def note(self, operation: int, key: Any, row: Any) -> None:
        self._written[key] = row
        self._late.append((operation, key, row))

    def look(self, seen_until: int) -> Table[Any]:
        while self._late and self._late[0][0] <= seen_until:
            _, key, row = self._late.popleft()
            self._shown[key] = row
        for key, row in self._table.items():
            if self._written.get(key) != row:
                self._late = deque(late for late in self._late if late[1] != key)
                self._shown[key] = self._written[key] = copy(row)
        return {key: row for key, row in self._shown.items() if row is not None and key in self._table}


class Items:
    """Every read and every write is of one row, and a write is conditional on what was read.

    ``before_write`` is called before each write: a test may let the process die there, or another writer in.
    """

    def __init__(self, state: State, lag: int) -> None:
        self._state = state
        self._lag = lag
        self._listings: dict[int, tuple[Listing, ...]] = {}
        self.operations = 0
        self.before_write: Callable[[], None] = lambda: None

    def list_of(self, table: Table[T]) -> Callable[[], Table[T]]:
        """A listing of the table that lags, to be called for each look."""
        return self._listing(table, self._lag, 1)

    def late_look_at(self, table: Table[T]) -> Callable[[], Table[T]]:
        """The same a moment later: what people look at has caught up."""
        return self._listing(table, 0, 0)

    def _listing(self, table: Table[T], lag: int, cost: int) -> Callable[[], Table[T]]:
        listing = Listing(table)
        self._listings[id(table)] = (*self._listings.get(id(table), ()), listing)

        def look() -> Table[T]:
            with self._state.transaction():
                self.operations += cost
                return listing.look(self.operations - lag)

        return look

    def catch_up(self) -> None:
        """Time passes in which nothing is written: every listing shows what is there."""
        with self._state.transaction():
            self.operations += self._lag

    def get(self, table: Table[T], key: Any) -> T | None:
        with self._state.transaction():
            self.operations += 1
            return copy(table.get(key))

    def put(self, table: Table[T], key: Any, seen: T | None, new: T) -> bool:
        """Write the row if it still is as it was ``seen``, None for one that is not there."""
        self.before_write()
        with self._state.transaction():
            self.operations += 1
            if table.get(key) != seen:
                return False
            table[key] = copy(new)
            for listing in self._listings.get(id(table), ()):
                listing.note(self.operations, key, copy(new))
            return True

    def change(self, table: Table[T], key: Any, how: Callable[[T], T | None]) -> T | None:
        """Read, decide and write, until nobody wrote in between; None where ``how`` wants no change."""
        while (seen := self.get(table, key)) is not None:
            new = how(copy(seen))
            if new is None or self.put(table, key, seen, new):
                return new
        return None

    def append(self, rows: list[T], row: T) -> None:
        """A row of its own under a new key, or under one that it has already."""
        self.before_write()
        with self._state.transaction():
            self.operations += 1
            if row not in rows:
                rows.append(row)
