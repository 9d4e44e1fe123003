"""Answers and their headers. Nothing here is to be cached, framed, sniffed or referred from."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

_ON_EVERY_ANSWER = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def answer(
    content: bytes, media_type: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    all_headers = _ON_EVERY_ANSWER | headers if headers else _ON_EVERY_ANSWER
    return Response(content, status, all_headers, media_type)


def json_answer(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    content = json.dumps(body, ensure_ascii=False).encode("utf-8")
    return answer(content, "application/json", status, headers)


def error_answer(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    return json_answer({"error": error}, status, headers)
