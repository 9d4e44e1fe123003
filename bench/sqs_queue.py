"""A queue of SQS on loopback that answers as late as Amazon's does within a region.

    python -m bench.sqs_queue PORT BODIES

``BODIES`` is a file with one message a line. Each is handed out once; signatures are not looked at.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from pathlib import Path
from typing import Any

import uvloop

ANSWERS_AFTER = 0.01
"""Seconds; a call to SQS from the same region takes about ten milliseconds."""
_MOST = 10


class Queue:
    def __init__(self, bodies: list[str]) -> None:
        self._waiting = deque(enumerate(bodies))
        self._handed_out: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One kept connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                await asyncio.sleep(ANSWERS_AFTER)
                content = json.dumps(self._answer(headers["x-amz-target"], body)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
        except asyncio.IncompleteReadError:
            writer.close()

    def _answer(self, target: str, body: dict[str, Any]) -> dict[str, Any]:
        if target.endswith("receivemessage"):
            count = min(_MOST, len(self._waiting))
            return {"Messages": [self._hand_out(*self._waiting.popleft()) for _ in range(count)]}
        if target.endswith("deletemessagebatch"):
            self._handed_out -= {entry["ReceiptHandle"] for entry in body["Entries"]}
            return {"Successful": [], "Failed": []}
        return {
            "Attributes": {
                "ApproximateNumberOfMessages": str(len(self._waiting)),
                "ApproximateNumberOfMessagesNotVisible": str(len(self._handed_out)),
                "ApproximateNumberOfMessagesDelayed": "0",
            }
        }

    def _hand_out(self, number: int, text: str) -> dict[str, str]:
        self._handed_out.add(f"receipt-{number}")
        return {"MessageId": f"message-{number}", "ReceiptHandle": f"receipt-{number}", "Body": text}


async def _main(port: int, bodies: list[str]) -> None:
    server = await asyncio.start_server(Queue(bodies).serve, "127.0.0.1", port, limit=2**20)
    await server.serve_forever()


if __name__ == "__main__":
    port, bodies_file = sys.argv[1:]
    uvloop.run(_main(int(port), Path(bodies_file).read_text(encoding="utf-8").splitlines()))
