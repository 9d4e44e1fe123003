"""Sockets with one deadline for everything: looking up the name, connecting, TLS, and every byte after it.

A socket's own time-out begins again with each byte. A server that sends one byte every few seconds, or one
``100 Continue`` after another, could hold a thread for ever.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Deadline:
    """A moment by which something must be over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left. Raises TimeoutError when there are none."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"it takes more than {self.seconds:g} s")
        return left


def in_time(deadline: Deadline, call: Callable[[], T]) -> T:
    """``call()``, given up at the deadline: the C library's look-up of a name takes no time-out."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as exc:  # noqa: BLE001 (it is raised again by whoever asked)
            errors.append(exc)

    thread = threading.Thread(target=run, name="look-up", daemon=True)
    thread.start()
    thread.join(deadline.left())
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"it takes more than {deadline.seconds:g} s")
    return results[0]


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A scope ("%eth0") comes with link-local addresses only.
    return [str(entry[4][0]).partition("%")[0] for entry in found]


def connect(addresses: Sequence[str], port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first of these addresses that takes one."""
    trouble: OSError = OSError("there is no address to connect to")
    for address in addresses:
        try:
            return socket.create_connection((address, port), deadline.left())
        except OSError as exc:
            trouble = exc
    raise trouble


def secure(wire: socket.socket, tls: ssl.SSLContext, name: str, deadline: Deadline) -> socket.socket:
    """The same connection under TLS; the certificate is checked for the name."""
    wire.settimeout(deadline.left())  # Python's handshake keeps it as a whole
    return tls.wrap_socket(wire, server_hostname=name)


class TimedSocket:
    """What ``http.client`` needs of a socket. Reads and writes end at ``deadline``, which may be set again.

    ``most_bytes`` is how much may still be read, headers included; None sets no limit.
    """

    def __init__(self, wire: socket.socket, deadline: Deadline, most_bytes: int | None = None) -> None:
        self._wire = wire
        self.deadline = deadline
        self.most_bytes = most_bytes

    def sendall(self, data: bytes) -> None:
        self._wire.settimeout(self.deadline.left())
        self._wire.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self, self._wire))

    def close(self) -> None:
        self._wire.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, owner: TimedSocket, wire: socket.socket) -> None:
        self._owner = owner
        self._wire = wire
        # It keeps the connection open as long as it is read, although its owner may have closed it.
        self._raw = wire.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        self._wire.settimeout(self._owner.deadline.left())
        count = self._raw.readinto(buffer)
        if count and self._owner.most_bytes is not None:
            self._owner.most_bytes -= count
            if self._owner.most_bytes < 0:
                raise TooLong
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class TooLong(OSError):
    """More came than may be read."""
