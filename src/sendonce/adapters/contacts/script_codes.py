"""Sums, slices and shifts by which scripts hide a text."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?[0-9]{1,4}")
_CODE_IN_SUMS = re.compile(r"(?<=fromCharCode\()\s{0,9}(\d{1,3})\s{0,9}([*+-])\s{0,9}(\d{1,3})\s{0,9}(?=\))")
# TYPO3 shifts letters round within these.
_SHIFTED_RANGES = ((0x2B, 0x3A), (0x40, 0x5A), (0x61, 0x7A))


def with_sums_done(script: str) -> str:
    """``fromCharCode(8*8)`` as ``fromCharCode(64)``."""
    return _CODE_IN_SUMS.sub(_summed, script) if "fromCharCode" in script else script


def slice_of(value: str, method: str, bounds: list[str]) -> str | None:
    """What ``slice``, ``substring`` or ``substr`` give; ``None`` where a bound is not known."""
    if not bounds or not all(_WHOLE.fullmatch(bound) for bound in bounds):
        return None
    start, end = int(bounds[0]), int(bounds[1]) if len(bounds) > 1 else None
    if method == "substr" and end is not None:
        return value[start:][:end]
    return value[start:end]


def _summed(found: re.Match[str]) -> str:
    left, right = int(found[1]), int(found[3])
    return str(left * right if found[2] == "*" else left + right if found[2] == "+" else left - right)


def shifted_back(text: str) -> str:
    """A shifted "mailto:", by as much as its first letter tells."""
    by = ord(text[:1] or "m") - ord("m")
    return "".join(_moved(ord(char), by) for char in text)


def _moved(code: int, by: int) -> str:
    for first, last in _SHIFTED_RANGES:
        if first <= code <= last:
            return chr((code - by - first) % (last - first + 1) + first)
    return chr(max(32, code - by))
