"""Connections for a crawler that strangers send where they like: only to the public internet.

The name is resolved here, every address of it must be public, and the connection goes to one that was
checked: a name that changes its mind between the check and the connection (DNS rebinding) gains nothing.
Each new connection asks again, and so does each redirect.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import httpcore

from sendonce.adapters.web.public_fetch import is_public

Resolve = Callable[[str, int], Awaitable[list[str]]]
PORTS = (80, 443)


class AddressRefused(Exception):
    """Why no connection is made, in words for people."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """One server on this machine that plays every site of the web, told apart by the Host header."""

    address: str
    port: int


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """With a ``stand_in`` no name is looked up and nothing leaves this machine; TLS is left out on the way
    to it. An address in place of a name has to be public even so."""

    def __init__(self, resolve: Resolve | None = None, stand_in: StandIn | None = None) -> None:
        self._resolve = resolve or look_up
        self._stand_in = stand_in
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        if port not in PORTS:
            raise AddressRefused(f"its address names the port {port}")
        if self._stand_in is not None:
            _check(host, [host] if _is_address(host) else [])
            there = self._stand_in
            return _InTheClear(await self._plain.connect_tcp(there.address, there.port, timeout))
        addresses = await self._addresses(host, port)
        return await self._first_that_answers(addresses, port, timeout, local_address, socket_options)

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise AddressRefused("a socket of this machine is no site")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = [host] if _is_address(host) else await self._resolve(host, port)
        except (OSError, UnicodeError) as exc:
            raise AddressRefused(f"there is no host {host}") from exc
        if not found:
            raise AddressRefused(f"there is no host {host}")
        _check(host, found)
        return found

    async def _first_that_answers(
        self, addresses: list[str], port: int, timeout: float | None, local_address: str | None, options: Any
    ) -> httpcore.AsyncNetworkStream:
        trouble: Exception = httpcore.ConnectError("no address answers")
        for address in addresses[:3]:
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                trouble = exc
        raise trouble


class _InTheClear(httpcore.AsyncNetworkStream):
    """A connection to the stand-in: https without its TLS."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,  # noqa: ARG002
        server_hostname: str | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        return self

    def get_extra_info(self, info: str) -> Any:
        return None if info == "ssl_object" else self._stream.get_extra_info(info)


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name, by the system's own resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A scope ("%eth0") comes with link-local addresses only.
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


def _check(host: str, addresses: list[str]) -> None:
    if not all(is_public(address) for address in addresses):
        raise AddressRefused(f"{host} is not on the public internet")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
