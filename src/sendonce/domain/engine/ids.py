"""Time-ordered ids (UUID version 7): rows made together lie together, so big inserts append."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from sendonce.errors import BadInput, NotFound

_LOW_BITS = 14


def time_ordered_ids(count: int, unix_ms: int) -> list[str]:
    """``count`` UUIDs of the given millisecond, rising in the order of the list.

    A 26-bit counter sits above the random bits (RFC 9562 §6.2 method 1), so the order holds for up
    to 67 million ids of one call. Ids of two calls in one millisecond may interleave.
    """
    head = f"{unix_ms & 0xFFFFFFFFFFFF:012x}"
    tails = iter(os.urandom(6 * count).hex("-", 6).split("-")) if count else iter(())
    ids: list[str] = []
    while len(ids) < count:
        group = f"{head[:8]}-{head[8:]}-7{len(ids) >> _LOW_BITS & 0xFFF:03x}-"
        lows = _low_counters((count - len(ids) - 1).bit_length())
        ids += [f"{group}{low}-{tail}" for low, tail in zip(lows, tails, strict=False)]
    return ids


@lru_cache(maxsize=_LOW_BITS + 1)
def _low_counters(bits: int) -> list[str]:
    """The low bits of the counter below the two of the variant, counted from 0."""
    return [f"{0x8000 | n:04x}" for n in range(1 << min(bits, _LOW_BITS))]


def time_ordered_id(unix_ms: int) -> str:
    return time_ordered_ids(1, unix_ms)[0]


def first_id_of(moment: datetime) -> str:
    """Not above any id that was made then or later, and above all that were made before."""
    head = f"{int(moment.timestamp() * 1000):012x}"
    return f"{head[:8]}-{head[8:]}-0000-0000-000000000000"


SHORTEST_PREFIX = 6
_PREFIX = re.compile(f"[0-9a-f]{{{SHORTEST_PREFIX},32}}")
_SHORT_PREFIX = re.compile(f"[0-9a-f]{{1,{SHORTEST_PREFIX - 1}}}")


def time_of(time_ordered_id: str) -> datetime:
    """When it was made, to the millisecond."""
    return datetime.fromtimestamp(int(time_ordered_id[:8] + time_ordered_id[9:13], 16) / 1000, UTC)


def is_prefix(text: str) -> bool:
    """Whether it may be the beginning of an id, with its dashes or without."""
    return _PREFIX.fullmatch(text.replace("-", "")) is not None


def is_short_prefix(text: str) -> bool:
    """Whether it looks like the beginning of an id but has too few characters to find one by."""
    return _SHORT_PREFIX.fullmatch(text.replace("-", "")) is not None


def prefix_range(prefix: str) -> tuple[str, str]:
    """The first and the last id that begin with a prefix."""
    digits = prefix.replace("-", "")
    return _dashed(digits.ljust(32, "0")), _dashed(digits.ljust(32, "f"))


def _dashed(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_MOST_SHOWN = 5


def whole_id(noun: str, beginning: str, look: Callable[[str, int], Sequence[str]]) -> str:
    """The one id that begins so; the text itself where there is none. ``look`` finds at most so many.

    Raises BadInput for several, and NotFound for too few characters.
    """
    if is_short_prefix(beginning.lower()):
        raise NotFound(
            f"{beginning} is too short to find a {noun} by: write at least {SHORTEST_PREFIX} characters "
            "of its id."
        )
    found = look(beginning.lower(), _MOST_SHOWN + 1) if is_prefix(beginning.lower()) else []
    if len(found) > 1:
        shown = "\n".join(f"  {each}" for each in found[:_MOST_SHOWN])
        more = "\n  …" if len(found) > _MOST_SHOWN else ""
        raise BadInput(f"Several {noun}s begin with {beginning}: write more of it.\n{shown}{more}")
    return found[0] if found else beginning
