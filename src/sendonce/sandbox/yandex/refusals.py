"""What Yandex Cloud answers when it says no: google.rpc.Status in JSON."""

from __future__ import annotations

import uuid

from sendonce.sandbox.http_server import Reply, json_reply


class YandexRefusal(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def reply(self) -> Reply:
        info = {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": str(uuid.uuid4())}
        return json_reply({"code": self.code, "message": self.message, "details": [info]}, self.status)
