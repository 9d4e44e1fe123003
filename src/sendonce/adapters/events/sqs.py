"""The SQS queue that an SNS topic delivers to.

SQS speaks the AWS JSON 1.0 protocol: POST / with the operation in ``X-Amz-Target``. Everybody who may
write to the queue could put anything there, so every message is checked as if it had come by HTTP.
"""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from sendonce.adapters.aws.credentials import CredentialSource
from sendonce.adapters.aws.http1 import Endpoint
from sendonce.adapters.aws.sigv4 import sign
from sendonce.domain.engine.queued_messages import QueuedMessage
from sendonce.errors import BadInput, BadSetting, Unavailable

log = logging.getLogger(__name__)

LONGEST_WAIT = 20  # seconds; SQS allows no more
MOST_MESSAGES = 10  # SQS gives and deletes no more at a time
# Ten messages of 256 KB, each escaped as a JSON string.
_MAX_ANSWER_BYTES = 8 * 2**20
_TIMEOUT_SECONDS = 10.0
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_SQS_HOST = re.compile(r"sqs\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.amazonaws\.com(?:\.cn)?")


@dataclass(frozen=True, slots=True)
class SqsSettings:
    """``region`` is taken where the queue's address does not tell it."""

    queue_url: str
    region: str
    credentials: CredentialSource
    wait_seconds: int = LONGEST_WAIT


class SqsQueue:
    """One kept connection, used by one thread at a time; ``hang_up`` may come from any."""

    def __init__(
        self, settings: SqsSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._settings = settings
        self._now = now
        parts = urlsplit(settings.queue_url)
        if not re.fullmatch(r"/[0-9]{1,20}/[A-Za-z0-9_.-]{1,80}", parts.path):
            raise BadSetting(
                f"SES_EVENTS_QUEUE_URL is {settings.queue_url!r}: it must be the address of a queue. "
                "Set it, e.g., SES_EVENTS_QUEUE_URL=https://sqs.eu-central-1.amazonaws.com/123456789012/ses-events."
            )
        self._endpoint = Endpoint.parse(f"{parts.scheme}://{parts.netloc}", "SES_EVENTS_QUEUE_URL")
        named = _SQS_HOST.fullmatch(self._endpoint.host)
        self._region = named[1] if named else settings.region
        self._connection: http.client.HTTPConnection | None = None
        self._in_use = threading.Lock()
        self._ended = threading.Event()

    def receive(self, *, patiently: bool = True) -> list[QueuedMessage]:
        """Up to ten messages; ``patiently`` waits for the first. Raises Unavailable."""
        wait = self._settings.wait_seconds if patiently else 0
        request = {"MaxNumberOfMessages": MOST_MESSAGES, "WaitTimeSeconds": wait}
        answer = self._call("ReceiveMessage", request, wait + _TIMEOUT_SECONDS)
        found = answer.get("Messages")
        messages = [_queued(item) for item in found] if isinstance(found, list) else []
        return [message for message in messages if message is not None]

    def remove(self, messages: Sequence[QueuedMessage]) -> None:
        """Raises Unavailable; then they come again."""
        entries = [{"Id": str(n), "ReceiptHandle": it.receipt} for n, it in enumerate(messages)]
        answer = self._call("DeleteMessageBatch", {"Entries": entries}, _TIMEOUT_SECONDS)
        failed = answer.get("Failed")
        if isinstance(failed, list) and failed:
            facts = {"failed": len(failed), "error": str(failed[0])[:300]}
            log.warning("SQS did not delete messages; they come again", extra={"fields": facts})

    def waiting(self) -> int:
        """About how many messages are in the queue, those handed out or delayed too. Raises Unavailable."""
        answer = self._call("GetQueueAttributes", {"AttributeNames": list(_COUNTS)}, _TIMEOUT_SECONDS / 2)
        attributes = answer.get("Attributes")
        told = attributes if isinstance(attributes, dict) else {}
        numbers = [str(told.get(name)) for name in _COUNTS]
        if not all(number.isdecimal() for number in numbers):
            raise Unavailable(f"SQS did not tell how many messages there are: {str(attributes)[:200]}")
        return sum(map(int, numbers))

    def hang_up(self) -> None:
        """Shutting the socket down wakes the thread that reads from it; closing it would not."""
        self._ended.set()
        connection = self._connection
        wire = connection.sock if connection is not None else None
        if wire is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
        if self._in_use.acquire(timeout=0.1):
            self.close()
            self._in_use.release()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _call(self, operation: str, fields: dict[str, Any], timeout: float) -> dict[str, Any]:
        body = json.dumps({"QueueUrl": self._settings.queue_url, **fields}).encode("ascii")
        headers = {
            "Host": self._endpoint.host_header,
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AmazonSQS.{operation}",
        }
        try:
            headers |= sign(
                "POST",
                "/",
                headers,
                body,
                credentials=self._settings.credentials.current(),
                region=self._region,
                service="sqs",
                when=self._now(),
            )
        except BadInput as exc:  # keys that cannot be used: they may be corrected
            raise Unavailable(str(exc)) from exc
        with self._in_use:
            status, answer = self._exchange(body, headers, timeout)
        if status != 200:
            raise Unavailable(f"SQS answered {operation} with {status} {_error(answer)}".rstrip())
        return answer

    def _exchange(self, body: bytes, headers: dict[str, str], timeout: float) -> tuple[int, dict[str, Any]]:
        try:
            response, content = self._ask(body, headers, timeout)
            answer = json.loads(content) if len(content) <= _MAX_ANSWER_BYTES else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as exc:
            self.close()
            where = self._endpoint.host_header
            raise Unavailable(f"SQS does not answer at {where}: {str(exc) or type(exc).__name__}") from exc
        if response.will_close or answer is None or self._ended.is_set():
            self.close()
        return response.status, answer if isinstance(answer, dict) else {}

    def _ask(
        self, body: bytes, headers: dict[str, str], timeout: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """A kept connection that the server has closed is replaced once: asking twice is harmless."""
        if self._connection is not None:
            try:
                return self._converse(self._connection, body, headers, timeout)
            except (ConnectionError, http.client.HTTPException):
                self.close()
        if self._ended.is_set():
            raise ConnectionError("it was hung up")
        kind = http.client.HTTPSConnection if self._endpoint.secure else http.client.HTTPConnection
        self._connection = kind(self._endpoint.host, self._endpoint.port, timeout=_TIMEOUT_SECONDS)
        self._connection.connect()
        return self._converse(self._connection, body, headers, timeout)

    def _converse(
        self, connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str], timeout: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._ended.is_set():
            raise ConnectionError("it was hung up")
        connection.sock.settimeout(timeout)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response, response.read(_MAX_ANSWER_BYTES + 1)


def _queued(item: object) -> QueuedMessage | None:
    if not isinstance(item, dict):
        return None
    receipt, body = item.get("ReceiptHandle"), item.get("Body")
    if not isinstance(receipt, str) or not isinstance(body, str):
        return None
    return QueuedMessage(str(item.get("MessageId", ""))[:100], receipt, body.encode("utf-8", "replace"))


def _error(answer: dict[str, Any]) -> str:
    """The code, and the first line of the message: after it, a signature error repeats our own headers."""
    code = str(answer.get("__type", "")).rpartition("#")[2][:100]
    message = str(answer.get("message") or answer.get("Message") or "").partition("\n")[0][:300]
    return "".join(c if c.isprintable() else " " for c in f"{code} {message}")
