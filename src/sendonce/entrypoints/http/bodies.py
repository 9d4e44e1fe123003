"""Request bodies: counted while they come in, so that nobody can fill the memory, and read strictly."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from sendonce.domain.engine.strict_json import strict_object

MAX_BODY_BYTES = 256 * 1024  # also the most that SNS delivers
_PATIENCE_SECONDS = 30.0


async def read_body(request: Request) -> bytes:
    """The whole body. 413 as soon as it is known to be too long, whatever Content-Length says.

    The connection is left open: the server drops what still comes of that body, and the client, which may
    be busy sending, gets to read the answer.
    """
    body = await _read(request, MAX_BODY_BYTES)
    assert body is not None
    return body


async def read_short_body(request: Request, most: int) -> bytes | None:
    """The body, or None if it has more than ``most`` bytes. Nothing of a longer one is kept; 413 as above."""
    return await _read(request, most)


async def drop_body(request: Request) -> None:
    """Let a body pass that says nothing; 413 as above."""
    await _read(request, 0)


async def _read(request: Request, most: int) -> bytes | None:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit():
        length = int(declared[:12])
        if length > MAX_BODY_BYTES:
            raise _too_long()
        if length > most:
            return None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await _gather(request, most)
    except TimeoutError as exc:
        raise HTTPException(408, "The request took too long to arrive.", {"Connection": "close"}) from exc
    except ClientDisconnect as exc:
        raise HTTPException(400, "The request was cut off.") from exc


async def _gather(request: Request, most: int) -> bytes | None:
    pieces: list[bytes] = []
    length = 0
    async for piece in request.stream():
        length += len(piece)
        if length > MAX_BODY_BYTES:
            raise _too_long()
        if length <= most:
            pieces.append(piece)
        else:
            pieces.clear()
    return b"".join(pieces) if length <= most else None


def _too_long() -> HTTPException:
    return HTTPException(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises BadInput."""
    return strict_object(body, "The request")
