"""aiosmtplib with several connections, messages built by email.message.

python aiosmtplib_pool.py PORT COUNT CONNECTIONS LETTER.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import aiosmtplib
from common import build, read_letter


async def lane(port: int, numbers: Iterator[int], letter: dict[str, str]) -> None:
    async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False) as client:
        for number in numbers:
            await client.send_message(build(letter, number))


async def main(port: int, count: int, connections: int, letter: dict[str, str]) -> None:
    numbers = iter(range(count))
    began = time.perf_counter()
    await asyncio.gather(*(lane(port, numbers, letter) for _ in range(connections)))
    print(json.dumps({"sent": count, "seconds": time.perf_counter() - began}))


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), read_letter(sys.argv[4])))
