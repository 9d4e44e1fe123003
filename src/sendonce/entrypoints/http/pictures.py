"""GET /assets/{sha256}: pictures of letters. Open and immutable: the address is the content's hash."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.answers import answer, error_answer
from sendonce.entrypoints.http.service import Service

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


class PictureEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def get(self, request: Request) -> Response:
        name = request.path_params["sha256"]
        found = (
            await self._service.in_thread(self._service.store.assets.get, name)
            if _SHA256.fullmatch(name)
            else None
        )
        if found is None:
            return error_answer(404, "There is no such picture.")
        content_type, content = found
        return answer(content, content_type, headers=_FOR_EVER)
