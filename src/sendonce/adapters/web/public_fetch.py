"""GET from addresses that strangers name: only https, only to the public internet, bounded.

The name is resolved once and the connection goes to the address that was checked, so a name that changes its
mind between the check and the connection (DNS rebinding) gains nothing. Each redirect is checked again. One
deadline holds for all of it, and the headers have a limit of their own, interim answers (1xx) included.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urljoin, urlsplit

from sendonce.adapters.web.deadlines import (
    Deadline,
    TimedSocket,
    TooLong,
    connect,
    in_time,
    look_up,
    secure,
)

Resolve = Callable[[str, int], list[str]]

LONGEST_FETCH = 20.0
_MOST_HEADERS = 64 * 1024
_REDIRECTS = {301, 302, 303, 307, 308}

# IANA's registry of special-purpose IPv4 addresses, whole: nobody keeps images in any of them, and what
# some are routed to is nobody's business. 224.0.0.0/4 is multicast. The last is not in the registry: there
# every machine of Azure finds a server that gives away secrets.
_SPECIAL_4 = tuple(
    IPv4Network(net)
    for net in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
    )
)
# Of IPv6 only 2000::/3 is given out to networks. Outside of it are loopback, private, link-local and
# site-local (fec0::/10) addresses, multicast, and IPv4 addresses in disguise: compatible (::/96), translated
# (::ffff:0:0:0/96) and NAT64 (64:ff9b::/96).
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Inside of it: protocol assignments with Teredo (2001::/32) among them, documentation, 6to4 and AS112.
_SPECIAL_6 = tuple(
    IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
# RFC 5214: an interface identifier that leads through a tunnel to the IPv4 address at its end.
_ISATAP = (0x00005EFE, 0x02005EFE)


class FetchRefused(Exception):
    """Why this address is not, or could not be, fetched; fit to be shown to the author of a letter."""


@dataclass(frozen=True, slots=True)
class FetchRules:
    """``loopback_too`` is for stand-ins of the outside world on this machine."""

    most_bytes: int
    seconds: float = LONGEST_FETCH
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
    deadline = Deadline(rules.seconds)
    try:
        for _ in range(rules.redirects + 1):
            target = _check(url, rules, deadline, resolve or look_up)
            body, location = _get(target, rules, deadline, tls)
            if location is None:
                return body
            url = _joined(url, location)
    except TimeoutError as exc:
        raise FetchRefused("it takes too long to come") from exc
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
    if isinstance(it, IPv6Address):
        tunnelled = int(it) >> 32 & 0xFFFFFFFF in _ISATAP
        return it in _GLOBAL_UNICAST and not tunnelled and not any(it in net for net in _SPECIAL_6)
    return not any(it in net for net in _SPECIAL_4)


def _check(url: str, rules: FetchRules, deadline: Deadline, resolve: Resolve) -> _Target:
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
    addresses = _addresses(host, port, deadline, resolve)
    local = rules.loopback_too and all(ip_address(address).is_loopback for address in addresses)
    if not local:
        if parts.scheme != "https" or port != 443:
            raise FetchRefused("its address does not begin with https://, or names a port")
        if not all(is_public(address) for address in addresses):
            raise FetchRefused(f"{host} is not on the public internet")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
    return _Target(parts.scheme == "https", host, port, path + query, addresses[0])


def _addresses(host: str, port: int, deadline: Deadline, resolve: Resolve) -> list[str]:
    try:
        found = in_time(deadline, lambda: resolve(host, port))
    except TimeoutError:
        raise
    except (OSError, UnicodeError) as exc:
        raise FetchRefused(f"there is no host {host}") from exc
    if not found:
        raise FetchRefused(f"there is no host {host}")
    return found


def _get(
    target: _Target, rules: FetchRules, deadline: Deadline, tls: ssl.SSLContext | None
) -> tuple[bytes, str | None]:
    """The body, or where to go instead."""
    wire = _connected(target, deadline, tls)
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = wire
    try:
        connection.request("GET", target.request, headers={"Accept": "image/*", "User-Agent": "sendonce"})
        response = connection.getresponse()
        if response.status in _REDIRECTS and (location := response.headers.get("Location")):
            return b"", location
        if response.status != 200:
            raise FetchRefused(f"{target.host} answered {response.status}")
        wire.most_bytes = None
        return _read(response, rules), None
    except TimeoutError:
        raise
    except TooLong as exc:
        raise FetchRefused(f"{target.host} sends headers without end") from exc
    except (OSError, http.client.HTTPException) as exc:
        raise FetchRefused(f"{target.host} did not send it ({type(exc).__name__})") from exc
    finally:
        connection.close()


def _connected(target: _Target, deadline: Deadline, tls: ssl.SSLContext | None) -> TimedSocket:
    """Connected to the address that was checked; the certificate is checked for the name."""
    try:
        wire = connect([target.address], target.port, deadline)
    except TimeoutError:
        raise
    except OSError as exc:
        raise FetchRefused(f"{target.host} cannot be reached") from exc
    try:
        if target.secure:
            wire = secure(wire, tls or ssl.create_default_context(), target.host, deadline)
    except TimeoutError:
        wire.close()
        raise
    except (OSError, ValueError) as exc:
        wire.close()
        raise FetchRefused(f"{target.host} has no good certificate") from exc
    return TimedSocket(wire, deadline, _MOST_HEADERS)


def _read(response: http.client.HTTPResponse, rules: FetchRules) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > rules.most_bytes:
            raise FetchRefused(f"it is larger than {rules.most_bytes // 1024} KB")
    if response.length:
        raise FetchRefused("it came only in part")
    return b"".join(pieces)
