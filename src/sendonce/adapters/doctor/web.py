"""Whether the address in the unsubscribe links leads to this service."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, ok, stop, warning
from sendonce.domain.engine.hosts import is_loopback_url

_WITHIN = 6.0
_SOCKET_WITHIN = 5.0
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Page:
    status: int
    body: bytes
    server: str  # the address that answered


class UnsubscribeProbe:
    """``leaves``: letters leave this machine, so the link must work for the world."""

    name = "unsubscribe"

    def __init__(self, base_url: str, tls: ssl.SSLContext | None = None, *, leaves: bool) -> None:
        self._base_url = base_url
        self._tls = tls
        self._leaves = leaves

    async def examine(self) -> Sequence[Check]:
        url = f"{self._base_url}/healthz"
        try:
            async with asyncio.timeout(_WITHIN):
                page = await in_own_thread(self._fetch)
        except TimeoutError:
            return [self._fault(f"{url} did not answer within {_WITHIN:g} seconds.")]
        except (OSError, http.client.HTTPException, ValueError) as exc:
            return [self._fault(f"{url} cannot be opened: {str(exc)[:200] or type(exc).__name__}.")]
        return [self._judge(url, page)]

    def _judge(self, url: str, page: _Page) -> Check:
        if 300 <= page.status < 400:
            # RFC 8058 §3.1: the one-click POST must not be redirected.
            return self._fault(f"{url} redirects ({page.status}), and one-click unsubscription may not.")
        if page.status != 200 or not _is_ours(page.body):
            return self._fault(f"{url} answers {page.status}, and not as sendonce does.")
        if is_loopback_url(self._base_url):
            what = f"{url} answers, on this machine only."
            return warning(
                self.name, what, "Set APP_BASE_URL to an https:// address before you send for real."
            )
        if self._leaves and not ipaddress.ip_address(page.server).is_global:
            what = f"{url} answers, from the private address {page.server}: the world may see nothing there."
            return warning(self.name, what, "Open it from a telephone outside your network.")
        return ok(self.name, f"{url} answers: unsubscribe links work.")

    def _fault(self, what: str) -> Check:
        fix = "Start 'sendonce serve', let your proxy pass APP_BASE_URL on to it, and check its certificate."
        return stop(self.name, what, fix) if self._leaves else warning(self.name, what, fix)

    def _fetch(self) -> _Page:
        parts = urlsplit(self._base_url)
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            tls = self._tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, parts.port, timeout=_SOCKET_WITHIN, context=tls)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=_SOCKET_WITHIN)
        try:
            connection.connect()
            server = connection.sock.getpeername()[0]
            connection.request("GET", f"{parts.path}/healthz", headers={"User-Agent": "sendonce-doctor"})
            response = connection.getresponse()
            return _Page(response.status, response.read(_MOST_BYTES), server)
        finally:
            connection.close()


def _is_ours(body: bytes) -> bool:
    try:
        return bool(json.loads(body) == {"status": "ok"})
    except (ValueError, RecursionError):
        return False
