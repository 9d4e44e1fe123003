"""Named places where a test may make the process die, to see what is left behind.

Nothing happens unless one is armed, which only the FAILPOINT setting does: ``name:n`` for the n-th
time that the place is passed.
"""

from __future__ import annotations

from collections.abc import Callable

NAMES = (
    "plan-chunk",
    "claim-before-commit",
    "claimed",
    "wire-before",
    "wire-after",
    "body-after",
    "reply-before",
    "reply-after",
    "settle-before",
    "settle-after",
    "bury-before",
    "bury-after",
    "complete-before",
)

_armed: dict[str, int] = {}
_strike: list[Callable[[], None]] = []


def arm(name: str, count: int, strike: Callable[[], None]) -> None:
    _armed[name] = count
    _strike[:] = [strike]


def failpoint(name: str) -> None:
    if not _armed:
        return
    left = _armed.get(name)
    if left is None:
        return
    _armed[name] = left - 1
    if left == 1:
        _strike[0]()
