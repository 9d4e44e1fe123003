"""GET from addresses that strangers name: only https, only to the public internet, bounded.

The name is resolved once and the connection goes to the address that was checked, so a name that changes its
mind between the check and the connection (DNS rebinding) gains nothing. Each redirect is checked anew.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urljoin, urlsplit

Resolve = Callable[[str, int], list[str]]

# IPv6 addresses that carry an IPv4 address to be reached through a gateway: NAT64, 6to4, Teredo.
_CARRIERS = tuple(IPv6Network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))
_REDIRECTS = {301, 302, 303, 307, 308}


class FetchRefused(Exception):
    """Why this address is not, or could not be, fetched; fit to be shown to the author of a letter."""


@dataclass(frozen=True, slots=True)
class FetchRules:
    """``loopback_too`` is for stand-ins of the outside world on this machine."""

    most_bytes: int
    seconds: float = 20.0
    redirects: int = 4
    loopback_too: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    secure: bool
    host: str
    port: int
    request: str
    address: str


def fetch(
    url: str, rules: FetchRules, *, resolve: Resolve | None = None, tls: ssl.SSLContext | None = None
) -> bytes:
    """The body behind an address. Raises FetchRefused."""
    deadline = time.monotonic() + rules.seconds
    for _ in range(rules.redirects + 1):
        target = _check(url, rules, resolve or _resolve)
        body, location = _get(target, rules, deadline, tls)
        if location is None:
            return body
        url = _joined(url, location)
    raise FetchRefused(f"it redirects more than {rules.redirects} times")


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as exc:
        raise FetchRefused("it redirects to a malformed address") from exc


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet."""
    it = ip_address(address)
    if isinstance(it, IPv6Address) and it.ipv4_mapped is not None:
        it = it.ipv4_mapped
    if isinstance(it, IPv6Address) and any(it in net for net in _CARRIERS):
        return False
    return it.is_global and not it.is_multicast


def _check(url: str, rules: FetchRules, resolve: Resolve) -> _Target:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError as exc:  # UnicodeError, too
        raise FetchRefused("its address is malformed") from exc
    if not host or parts.scheme not in ("http", "https"):
        raise FetchRefused("its address does not begin with https://")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused("its address carries a password")
    addresses = resolve(host, port)
    if not addresses:
        raise FetchRefused(f"there is no host {host}")
    local = rules.loopback_too and all(_plain(address).is_loopback for address in addresses)
    if not local:
        if parts.scheme != "https" or port != 443:
            raise FetchRefused("its address does not begin with https://, or names a port")
        if not all(is_public(address) for address in addresses):
            raise FetchRefused(f"{host} is not on the public internet")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
    return _Target(parts.scheme == "https", host, port, path + query, addresses[0])


def _plain(address: str) -> IPv4Address | IPv6Address:
    return ip_address(address)


def _resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise FetchRefused(f"there is no host {host}") from exc
    # A scope ("%eth0") comes with link-local addresses only.
    return [str(entry[4][0]).partition("%")[0] for entry in found]


def _get(
    target: _Target, rules: FetchRules, deadline: float, tls: ssl.SSLContext | None
) -> tuple[bytes, str | None]:
    """The body, or where to go instead."""
    connection = _connection(target, _left(deadline), tls)
    try:
        connection.request("GET", target.request, headers={"Accept": "image/*", "User-Agent": "sendonce"})
        response = connection.getresponse()
        if response.status in _REDIRECTS and (location := response.headers.get("Location")):
            return b"", location
        if response.status != 200:
            raise FetchRefused(f"{target.host} answered {response.status}")
        return _read(response, rules, deadline), None
    except (OSError, http.client.HTTPException) as exc:
        raise FetchRefused(f"{target.host} did not send it ({type(exc).__name__})") from exc
    finally:
        connection.close()


def _connection(target: _Target, seconds: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    """Connected to the address that was checked; the certificate is checked for the name."""
    try:
        wire = socket.create_connection((target.address, target.port), seconds)
    except OSError as exc:
        raise FetchRefused(f"{target.host} cannot be reached") from exc
    connection = http.client.HTTPConnection(target.host, target.port, timeout=seconds)
    try:
        if target.secure:
            wire = (tls or ssl.create_default_context()).wrap_socket(wire, server_hostname=target.host)
    except (OSError, ValueError) as exc:
        wire.close()
        raise FetchRefused(f"{target.host} has no good certificate") from exc
    connection.sock = wire
    return connection


def _read(response: http.client.HTTPResponse, rules: FetchRules, deadline: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > rules.most_bytes:
            raise FetchRefused(f"it is larger than {rules.most_bytes // 1024} KB")
        _left(deadline)
    if response.length:
        raise FetchRefused("it came only in part")
    return b"".join(pieces)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise FetchRefused("it takes too long to come")
    return left
