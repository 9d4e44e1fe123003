"""Which addresses a file has already named, in memory that does not grow with a list of a million.

A set of a million strings takes a hundred megabytes; here an address takes eight bytes, in a table that
is made at its full size, 16 MB.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

_SLOTS = 1 << 21
# A table this full is made twice as large, up to 256 MB.
_MOST_FULL = 0.6
_MOST_SLOTS = 1 << 25


class Fingerprints:
    """A hash table with open addressing over 64-bit hashes.

    Two addresses of a list of ten million share their hash once in 370,000 lists. What does not fit in
    the largest table is not remembered: such a repeat is then written to the store a second time.
    """

    def __init__(self) -> None:
        self._slots = _SLOTS
        self._table = array("q", bytes(8 * _SLOTS))
        self._used = 0

    def new_among(self, keys: Iterable[str]) -> list[bool]:
        """For each key whether it was never asked for before."""
        hashes = [mark or 1 for mark in map(hash, keys)]
        while not self._has_room(len(hashes)) and self._slots < _MOST_SLOTS:
            self._grow()
        return self._enter(hashes, remember=self._has_room(len(hashes)))

    def _has_room(self, more: int) -> bool:
        return self._used + more <= _MOST_FULL * self._slots

    def _enter(self, hashes: Iterable[int], remember: bool) -> list[bool]:
        table, mask, new = self._table, self._slots - 1, []
        for mark in hashes:
            slot = mark & mask
            while (found := table[slot]) != mark:
                if not found:
                    break
                slot = (slot + 1) & mask
            if not found and remember:
                table[slot] = mark
            new.append(not found)
        if remember:
            self._used += sum(new)
        return new

    def _grow(self) -> None:
        old = self._table
        self._slots *= 2
        self._table = array("q", bytes(8 * self._slots))
        self._used = 0
        self._enter(filter(None, old), remember=True)
