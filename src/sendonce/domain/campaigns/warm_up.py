"""Warm-up: how many letters a new sender may send on each of its first days.

Receivers distrust an address that nobody knows and that sends much at once. A ramp lists the letters of its
days: day one is the day of the first letter, and a day without letters does not count, because nobody got
to know the sender on it. After its last day the ramp is over and the sender's own daily limit holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from typing import Final

from sendonce.errors import BadInput

MAILBOX_RAMP: Final = tuple(chain([5, 5, 8, 8, 12, 12, 15], accumulate(repeat(3, 20), initial=18)))
"""For one mailbox: under ten letters a day for half a week, some forty a day after two weeks."""
SES_RAMP: Final = (50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 40_000)
"""For an identity of SES, whose addresses asked for their letters."""


def default_ramp(transport: str) -> tuple[int, ...]:
    return SES_RAMP if transport == "ses" else MAILBOX_RAMP


def parse_ramp(text: str) -> tuple[int, ...]:
    """``5,5,8,12``: the letters of the first day, of the second, and so on."""
    try:
        ramp = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"A warm-up is a list of numbers like 5,5,8,12, not {text!r}.") from None
    if any(letters < 1 for letters in ramp):
        raise BadInput(f"Each day of a warm-up has at least one letter: {text!r}.")
    return ramp


def allowed_today(daily: int, ramp: Sequence[int], days_used: int) -> int:
    """How many letters a sender may send today; ``days_used`` is the number of earlier days with letters."""
    if days_used >= len(ramp):
        return daily
    return min(daily, ramp[days_used])
