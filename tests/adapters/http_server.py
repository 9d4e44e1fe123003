"""A scripted HTTP server on loopback: it answers each request with the next step of its script."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.parser import Parser
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Step:
    """The bytes to answer with, and what becomes of the connection then: keep, close, reset or hang."""

    reply: bytes = b""
    then: str = "keep"
    read_body: bool = True
    together_with: int = 1  # hold the answer until so many requests wait for one


@dataclass
class Request:
    method: str
    path: str
    headers: Message
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def answer(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> Step:
    """A well-formed answer with a length."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Whatever\r\n{lines}Content-Length: {len(content)}\r\n\r\n"
    return Step(head.encode() + content)


def accepted(message_id: str = "id-1") -> Step:
    return answer(200, {"MessageId": message_id})


@dataclass
class ScriptedServer:
    script: Iterable[Step] = ()
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> ScriptedServer:
        self._steps = iter(self.script)
        self._lock = threading.Condition()
        self._waiting = 0
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _spawn(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._spawn(self._converse, plain, self.connections)

    def _converse(self, plain: socket.socket, number: int) -> None:
        plain.settimeout(0.05)  # wakes up to see whether the test is over
        try:
            sock = self.tls.wrap_socket(plain, server_side=True) if self.tls else plain
        except OSError:
            plain.close()
            return
        with sock:
            try:
                while self._serve_one(sock, number):
                    pass
            except (ConnectionError, EOFError, ssl.SSLError):
                pass

    def _serve_one(self, sock: socket.socket, number: int) -> bool:
        head = self._read_until(sock, b"\r\n\r\n")
        with self._lock:
            step = next(self._steps, accepted())
        first, _, fields = head.decode("latin-1").partition("\r\n")
        method, path, _ = first.split(" ")
        headers = Parser().parsestr(fields)
        length = int(headers["Content-Length"] or 0)
        body = self._read(sock, length) if step.read_body else b""
        with self._lock:
            self.requests.append(Request(method, path, headers, body, number))
            self._lock.notify_all()
            assert self._lock.wait_for(lambda: len(self.requests) >= step.together_with, 10)
        if step.reply:
            sock.settimeout(20)  # a large reply to a busy reader takes its time
            sock.sendall(step.reply)
            sock.settimeout(0.05)
        if step.then == "hang":
            self._stopped.wait(10)
        if step.then == "reset":  # SO_LINGER with zero seconds makes close() send a RST
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return step.then == "keep"

    def _read_until(self, sock: socket.socket, end: bytes) -> bytes:
        data = b""
        while not data.endswith(end):
            data += self._read(sock, 1)
        return data

    def _read(self, sock: socket.socket, length: int) -> bytes:
        data = b""
        while len(data) < length:
            try:
                piece = sock.recv(length - len(data))
            except TimeoutError:
                if self._stopped.is_set():
                    raise EOFError from None
                continue
            if not piece:
                raise EOFError
            data += piece
        return data


@contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[int]:
    """The port of a server that sends ``first``, and then ``drop`` after ``drop``, without end."""
    over = threading.Event()

    def drip() -> None:
        wire, _ = listener.accept()
        with wire, suppress(OSError):
            wire.sendall(first)
            while not over.wait(0.02):
                wire.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=drip, daemon=True)
        server.start()
        yield listener.getsockname()[1]
        over.set()
        server.join(5)
