"""GET /assets/{sha256}: images of letters. Open and immutable: the address is the content's hash.

Everybody who opens a letter asks for the same few assets at the same time, so each is in memory once,
whoever reads it, and is handed out in pieces as fast as its reader takes them. A reader who takes none costs
a piece; the server hangs up on him after a while.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sendonce.entrypoints.http.answers import answer, error_answer
from sendonce.entrypoints.http.service import Service

_SHA256 = re.compile(r"[0-9a-f]{64}")
_RANGE = re.compile(r"bytes=([0-9]{0,12})-([0-9]{0,12})")
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Accept-Ranges": "bytes"}

_PIECE_BYTES = 32 * 1024
_SHELF_BYTES = 32 * 1024 * 1024
_MOST_READERS = 256


@dataclass(slots=True, eq=False)
class _Asset:
    content_type: str
    content: bytes
    readers: int = 0


class AssetEndpoint:
    def __init__(self, service: Service) -> None:
        self._shelf = _Shelf(service)

    async def get(self, request: Request) -> Response:
        name = request.path_params["sha256"]
        asset = await self._shelf.find(name) if _SHA256.fullmatch(name) else None
        if asset is None:
            return error_answer(404, "There is no such image.")
        headers = _FOR_EVER | {"ETag": f'"{name}"'}
        if headers["ETag"] in request.headers.get("if-none-match", "")[:1000]:
            return answer(b"", asset.content_type, 304, headers)
        part = _wanted(request, len(asset.content), headers["ETag"])
        if part is None:
            unsatisfiable = {"Content-Range": f"bytes */{len(asset.content)}"}
            return error_answer(416, "The image has no such part.", unsatisfiable)
        if self._shelf.readers >= _MOST_READERS:
            raise _busy()
        return _Handout(self._shelf, asset, part, headers)


class _Shelf:
    """The assets that are being read, and those that were of late, in bounded memory."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._assets: dict[str, _Asset] = {}  # the one longest untouched comes first
        self._fetching = asyncio.Lock()
        self.readers = 0

    async def find(self, name: str) -> _Asset | None:
        """One at a time is fetched: a stranger who asks for many keeps one thread busy, and no more."""
        async with self._fetching:
            asset = self._assets.pop(name, None)
            if asset is None:
                found = await self._service.in_thread(self._service.store.assets.get, name)
                if found is None:
                    return None
                asset = _Asset(*found)
                self._make_room(len(asset.content))
            self._assets[name] = asset
            return asset

    def _make_room(self, needed: int) -> None:
        held = sum(len(asset.content) for asset in self._assets.values())
        for name in [name for name, asset in self._assets.items() if not asset.readers]:
            if held + needed <= _SHELF_BYTES:
                return
            held -= len(self._assets.pop(name).content)
        if held and held + needed > _SHELF_BYTES:
            raise _busy()


class _Handout(Response):
    """The answer: a part of an asset, piece by piece."""

    def __init__(self, shelf: _Shelf, asset: _Asset, part: range, headers: dict[str, str]) -> None:
        whole = len(part) == len(asset.content)
        headers |= {"Content-Length": str(len(part))}
        if not whole:
            headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{len(asset.content)}"
        head = answer(b"", asset.content_type, 200 if whole else 206, headers)
        super().__init__(None, head.status_code)
        self.raw_headers = head.raw_headers
        self._shelf = shelf
        self._asset = asset
        self._part = part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        self._shelf.readers += 1
        self._asset.readers += 1
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            part = self._part if scope["method"] != "HEAD" else range(0)
            for start in part[::_PIECE_BYTES]:
                piece = self._asset.content[start : min(start + _PIECE_BYTES, part.stop)]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._shelf.readers -= 1
            self._asset.readers -= 1


def _wanted(request: Request, size: int, etag: str) -> range | None:
    """The part that is asked for; None if there is none such. What is not one plain range means all of it."""
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None or request.headers.get("if-range", etag) != etag or not any(asked.groups()):
        return range(size)
    first, last = asked.groups()
    if not first:
        return range(max(size - int(last), 0), size) if int(last) and size else None
    if last and int(last) < int(first):
        return range(size)
    return range(int(first), min(int(last) + 1, size) if last else size) if int(first) < size else None


def _busy() -> HTTPException:
    return HTTPException(503, "Too many images are being read. Try again later.", {"Retry-After": "5"})
