"""Request bodies: counted while they come in, so that nobody can fill the memory, and read strictly."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from sendonce.adapters.events.strict_json import strict_object

MAX_BODY_BYTES = 256 * 1024  # also the most that SNS delivers
_PATIENCE_SECONDS = 30.0


async def read_body(request: Request) -> bytes:
    """The whole body. 413 as soon as it is known to be too long, whatever Content-Length says.

    The connection is left open: uvicorn drops what still comes of that body, and the client, which may
    be busy sending, gets to read the answer.
    """
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:12]) > MAX_BODY_BYTES:
        raise _too_long()
    pieces: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            async for piece in request.stream():
                length += len(piece)
                if length > MAX_BODY_BYTES:
                    raise _too_long()
                pieces.append(piece)
    except TimeoutError as exc:
        raise HTTPException(408, "The request took too long to arrive.", {"Connection": "close"}) from exc
    except ClientDisconnect as exc:
        raise HTTPException(400, "The request was cut off.") from exc
    return b"".join(pieces)


def _too_long() -> HTTPException:
    return HTTPException(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises BadInput."""
    return strict_object(body, "The request")
