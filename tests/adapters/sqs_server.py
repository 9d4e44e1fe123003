"""An SQS on loopback: the JSON protocol, signatures checked as botocore makes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ACCESS_KEY, SECRET_KEY = "AKIAEXAMPLE", "an-aws-secret"


class SqsServer:
    """Waits for messages, hides what it hands out until ``reappear``, deletes by the latest receipt.

    It may behave as badly as Amazon's: ``batch`` hands out fewer messages than wait, ``blind`` polls find
    nothing although messages wait, ``copies`` hands a message out again after its deletion, ``backwards``
    hands out the newest first, and what is put with ``delayed`` is not to be had until ``reappear``.
    """

    def __init__(self, region: str = "eu-central-1") -> None:
        self._region = region
        self._numbers = count(1)
        self._changed = threading.Condition()
        self._visible: dict[str, str] = {}  # message id -> body
        self._in_flight: dict[str, tuple[str, str]] = {}  # receipt -> message id, body
        self._delayed: dict[str, str] = {}
        self.batch = 10
        self.blind = 0
        self.copies = 0
        self.backwards = False
        self.calls: list[str] = []
        self.refuse: dict[str, tuple[int, dict[str, Any]]] = {}
        self.waiting = threading.Event()  # somebody waits for messages
        self._ended = False
        sqs = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = sqs._answer(self.path, dict(self.headers.items()), body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hung up gets no answer, and that is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.queue_url = f"http://127.0.0.1:{self._server.server_port}/123456789012/ses-events"

    def __enter__(self) -> SqsServer:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # -- the test's side ----------------------------------------------------------------------

    def put(self, *bodies: str | dict[str, Any], delayed: bool = False) -> None:
        with self._changed:
            for body in bodies:
                text = body if isinstance(body, str) else json.dumps(body)
                where = self._delayed if delayed else self._visible
                where[f"message-{next(self._numbers)}"] = text
            self._changed.notify_all()

    def take(self) -> None:
        """Another reader gets all that is visible."""
        with self._changed:
            for message_id in list(self._visible):
                self._hand_out(message_id)

    def reappear(self) -> None:
        """The visibility timeout and the delays are over."""
        with self._changed:
            self._visible |= self._delayed
            self._delayed.clear()
            for message_id, body in self._in_flight.values():
                self._visible[message_id] = body
            self._in_flight.clear()
            self._changed.notify_all()

    @property
    def left(self) -> int:
        """Messages that nobody has deleted."""
        return len(self._visible) + len(self._in_flight) + len(self._delayed)

    # -- the wire's side ----------------------------------------------------------------------

    def _answer(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        operation = headers["X-Amz-Target"].removeprefix("AmazonSQS.")
        self.calls.append(operation)
        if path != "/" or headers["Content-Type"] != "application/x-amz-json-1.0":
            return 400, {"__type": "com.amazon.coral.service#UnknownOperationException"}
        if not self._signed(headers, body):
            return 403, {
                "__type": "com.amazon.coral.service#InvalidSignatureException",
                "message": "The request signature does not match.\nThe Canonical String was: token",
            }
        if operation in self.refuse:
            return self.refuse[operation]
        request = json.loads(body)
        if request["QueueUrl"] != self.queue_url:
            return 400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "No such queue."}
        actions = {
            "ReceiveMessage": self._receive,
            "DeleteMessageBatch": self._delete,
            "GetQueueAttributes": self._attributes,
        }
        return 200, actions[operation](request)

    def _signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Sign the same request as botocore does, at the same moment, and compare."""
        request = AWSRequest("POST", f"http://{headers['Host']}/", data=body)
        for name in ("Host", "Content-Type", "X-Amz-Target"):
            request.headers[name] = headers[name]
        request.context["timestamp"] = headers["X-Amz-Date"]
        request.headers["X-Amz-Date"] = headers["X-Amz-Date"]
        signer = SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "sqs", self._region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        return headers["Authorization"].endswith(f"Signature={signer.signature(text, request)}")

    def _receive(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            self.waiting.set()
            self._changed.wait_for(lambda: self._visible or self._ended, request["WaitTimeSeconds"])
            if self.blind:
                self.blind -= 1
                return {}
            found = sorted(self._visible, key=_number, reverse=self.backwards)
            handed = found[: min(request["MaxNumberOfMessages"], self.batch)]
            messages = [self._hand_out(message_id) for message_id in handed]
        return {"Messages": messages} if messages else {}

    def _hand_out(self, message_id: str) -> dict[str, str]:
        receipt, body = f"receipt-{next(self._numbers)}", self._visible.pop(message_id)
        self._in_flight[receipt] = (message_id, body)
        return {"MessageId": message_id, "ReceiptHandle": receipt, "Body": body}

    def _delete(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"Successful": [], "Failed": []}
        with self._changed:
            for entry in request["Entries"]:
                gone = self._in_flight.pop(entry["ReceiptHandle"], None)
                if gone is not None and self.copies:
                    self.copies -= 1
                    self._visible[gone[0]] = gone[1]  # a server that was away did not hear of the deletion
                if gone is None:
                    failure = {"Id": entry["Id"], "Code": "ReceiptHandleIsInvalid", "SenderFault": True}
                    answer["Failed"].append(failure)
                else:
                    answer["Successful"].append({"Id": entry["Id"]})
        return answer

    def _attributes(self, request: dict[str, Any]) -> dict[str, Any]:
        known = {
            "ApproximateNumberOfMessages": self._visible,
            "ApproximateNumberOfMessagesNotVisible": self._in_flight,
            "ApproximateNumberOfMessagesDelayed": self._delayed,
        }
        with self._changed:
            return {"Attributes": {name: str(len(known[name])) for name in request["AttributeNames"]}}


def _number(message_id: str) -> int:
    return int(message_id.rpartition("-")[2])
