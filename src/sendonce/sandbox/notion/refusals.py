"""What Notion answers when it says no."""

from __future__ import annotations

import json
import uuid
from typing import Any

from sendonce.sandbox.http_server import Reply

_CODES = {
    401: "unauthorized",
    403: "restricted_resource",
    404: "object_not_found",
    409: "conflict_error",
    429: "rate_limited",
    500: "internal_server_error",
    503: "service_unavailable",
    504: "gateway_timeout",
    529: "service_overload",
}


class NotionRefusal(Exception):
    def __init__(
        self,
        status: int,
        message: str,
        code: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or _CODES.get(status, "validation_error")
        self.message = message
        self.headers = headers
        self.more = more

    def reply(self) -> Reply:
        body = {
            "object": "error",
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "request_id": str(uuid.uuid4()),
            **self.more,
        }
        return Reply(self.status, json.dumps(body, ensure_ascii=False).encode(), headers=self.headers)


def invalid(message: str) -> NotionRefusal:
    return NotionRefusal(400, message, "validation_error")


def missing(kind: str, wanted: str) -> NotionRefusal:
    return NotionRefusal(
        404,
        f"Could not find {kind} with ID: {wanted}. Make sure the relevant pages and databases are shared "
        "with your integration.",
    )
