"""What tests of the sandbox share: sandboxes in processes of their own, webhooks, signed requests."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from sendonce.sandbox import SandboxAddresses
from tests.nursery import start_sandbox

FAST = {"max_rate": 1e6, "daily_quota": -1}
NO_QUESTIONS = {"subscribe": False}
RAW = (
    b"From: News <news@example.com>\r\nTo: {to}\r\nSubject: Hello\r\n"
    b"Message-ID: <1@example.com>\r\n\r\nHi\r\n"
)


class Sandbox:
    """A sandbox in a process of its own."""

    def __init__(self, directory: Path, settings: dict[str, Any]) -> None:
        self.directory = directory
        flags = [flag for name, value in settings.items() for flag in _flags(name, value)]
        self.process, self.addresses = start_sandbox(["--dir", str(directory), "--port", "0", *flags])
        self.endpoint = self.addresses["endpoint"]
        self.port = int(self.endpoint.rpartition(":")[2])

    def client(self, service: str = "sesv2", **changes: str) -> Any:
        environment = self.addresses["environment"]
        options = {
            "endpoint_url": environment[f"AWS_ENDPOINT_URL_{service.upper()}"],
            "region_name": environment["AWS_REGION"],
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
            "config": Config(retries={"total_max_attempts": 1}),
        }
        return boto3.client(service, **{**options, **changes})

    def send(self, client: Any, to: str, job: str = "j1", attempt: int = 1, **more: Any) -> str:
        request = {
            "FromEmailAddress": "news@example.com",
            "Destination": {"ToAddresses": [to]},
            "Content": {"Raw": {"Data": RAW.replace(b"{to}", to.encode())}},
            "EmailTags": [{"Name": "job", "Value": job}, {"Name": "attempt", "Value": str(attempt)}],
            "ConfigurationSetName": "sandbox",
        }
        message_id: str = client.send_email(**{**request, **more})["MessageId"]
        return message_id

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "accepted.jsonl").read_bytes().splitlines()]

    def logged(self, to: str) -> list[dict[str, Any]]:
        return [row for row in self.log() if to in row["to"]]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.endpoint}/sandbox/{path}") as reply:
            return json.load(reply)

    def post(self, path: str, value: Any = None, method: str = "POST") -> Any:
        request = urllib.request.Request(
            f"{self.endpoint}/sandbox/{path}", json.dumps(value).encode(), method=method
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def drain(self) -> dict[str, Any]:
        stats: dict[str, Any] = self.get("wait?events_pending=0&timeout=20")
        return stats

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait()


def _flags(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}={json.dumps(value) if isinstance(value, dict) else value}"]


class Receiver:
    """A webhook that keeps what it gets. ``react`` sees each post and may answer with another status."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.react: Callable[[dict[str, Any]], int] = lambda _envelope: 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                envelope = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.posts.append(({k.lower(): v for k, v in self.headers.items()}, envelope))
                self.send_response(receiver.react(envelope))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ses-events"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body["Message"]) for _h, body in self.posts if body["Type"] == "Notification"]

    def kinds(self) -> list[str]:
        return [event["eventType"] for event in self.events()]

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Stage:
    """Starts sandboxes and receivers, and takes them down in the right order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sandboxes: list[Sandbox] = []
        self.receivers: list[Receiver] = []

    def sandbox(self, **settings: Any) -> Sandbox:
        self.sandboxes.append(Sandbox(self.directory, settings))
        return self.sandboxes[-1]

    def receiver(self) -> Receiver:
        self.receivers.append(Receiver())
        return self.receivers[-1]

    def listened(self, **settings: Any) -> tuple[Sandbox, Receiver]:
        receiver = self.receiver()
        return self.sandbox(**{**FAST, **NO_QUESTIONS, "events_url": receiver.url, **settings}), receiver

    def close(self) -> None:
        for sandbox in self.sandboxes:
            if sandbox.process.poll() is None:
                sandbox.stop()
        for receiver in self.receivers:
            receiver.close()


def signed_request(
    sandbox: Sandbox | SandboxAddresses, to: str = "raw@example.org", body: bytes | None = None
) -> bytes:
    """The bytes of a SendEmail request, signed now."""
    content = base64.b64encode(RAW.replace(b"{to}", to.encode())).decode()
    if body is None:
        body = json.dumps({"Content": {"Raw": {"Data": content}}, "ConfigurationSetName": "sandbox"}).encode()
    request = AWSRequest("POST", f"{sandbox.endpoint}/v2/email/outbound-emails", data=body)
    SigV4Auth(Credentials("SANDBOXACCESSKEY", "sandbox-secret"), "ses", "us-east-1").add_auth(request)
    lines = [f"POST /v2/email/outbound-emails HTTP/1.1\r\nHost: {sandbox.endpoint[7:]}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name != "Content-Length"]
    return ("\r\n".join(lines) + f"\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def exchange(sandbox: Sandbox, request: bytes) -> tuple[int, Any, bytes]:
    with socket.create_connection(("127.0.0.1", sandbox.port), 10) as wire:
        wire.sendall(request)
        reply = http.client.HTTPResponse(wire)
        reply.begin()
        with reply:
            return reply.status, reply.headers, reply.read()
