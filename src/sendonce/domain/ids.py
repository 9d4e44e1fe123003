"""Time-ordered ids (UUID version 7): rows made together lie together, so big inserts append."""

from __future__ import annotations

import os


def time_ordered_ids(count: int, unix_ms: int) -> list[str]:
    """``count`` UUIDs of the given millisecond, rising in the order of the list.

    A 26-bit counter sits above the random bits (RFC 9562 §6.2 method 1), so the order holds for up
    to 67 million ids of one call. Ids of two calls in one millisecond may interleave.
    """
    random = os.urandom(6 * count)
    head = f"{unix_ms & 0xFFFFFFFFFFFF:012x}"
    prefix = f"{head[:8]}-{head[8:]}-7"
    ids = []
    for n in range(count):
        tail = random[6 * n : 6 * n + 6].hex()
        ids.append(f"{prefix}{n >> 14 & 0xFFF:03x}-{0x8000 | n & 0x3FFF:04x}-{tail}")
    return ids


def time_ordered_id(unix_ms: int) -> str:
    return time_ordered_ids(1, unix_ms)[0]
