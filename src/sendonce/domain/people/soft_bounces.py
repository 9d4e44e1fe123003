"""Soft bounces: letters that came back for a passing reason, and when enough is enough.

A full mailbox is no reason never to write again. A mailbox that has been full for the last five letters is
one that nobody reads, and mailbox providers count such letters against their sender.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SOFT_BOUNCE_LIMIT = 5
"""After so many letters in a row that came back the address is written to no more; 0 is never."""

SOFT_BOUNCE_NOTE = "the last letters in a row came back for a passing reason"
"""The note by which a suppression of this kind is known: the only kind that later evidence can lift."""


class LetterFate(NamedTuple):
    """What is known of one letter to an address. ``subtype`` is the provider's word for a soft bounce."""

    job_id: str
    delivered: bool
    came_back: bool
    subtype: str | None = None


def last_of_a_row(letters: Iterable[LetterFate], limit: int) -> LetterFate | None:
    """The newest letter, if it and those before it, ``limit`` in all, came back and none was delivered.

    The letters are taken in the order in which they were planned (job ids rise with time), so the order in
    which events arrive does not matter. A letter that was delivered counts as that, whatever else was told of
    it: SES also calls the answer of an out-of-office robot a transient bounce.
    """
    known = sorted((letter for letter in letters if letter.delivered or letter.came_back), reverse=True)
    newest = known[:limit]
    if limit < 1 or len(newest) < limit or any(letter.delivered for letter in newest):
        return None
    return newest[0]
