"""Questions to the domain name system, each within seconds. «There is none» is an answer, silence is not."""

from __future__ import annotations

import asyncio
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.resolver

from sendonce.errors import Unavailable

_WITHIN = 3.0


class Records:
    """``server`` is ``address:port``; without it the system's own name servers are asked."""

    def __init__(self, server: str | None = None) -> None:
        self._server = server
        self._resolver: dns.asyncresolver.Resolver | None = None

    async def exists(self, name: str) -> bool:
        """Whether the name is there at all, with whatever records."""
        try:
            await self._ask(name, "SOA")
        except dns.resolver.NXDOMAIN:
            return False
        except dns.resolver.NoAnswer:
            return True
        return True

    async def works(self) -> bool:
        """Whether real name servers answer: all of them know the root, and a stand-in that knows nothing
        says of every name that it does not exist."""
        return await self.exists(".")

    async def texts(self, name: str) -> list[str]:
        """The TXT records; a long one comes in strings that belong together (RFC 7208 §3.3)."""
        return [
            b"".join(record.strings).decode("utf-8", "replace") for record in await self._get(name, "TXT")
        ]

    async def mail_servers(self, name: str) -> list[str]:
        return [record.exchange.to_text(omit_final_dot=True) for record in await self._get(name, "MX")]

    async def addresses(self, name: str) -> list[str]:
        found = await asyncio.gather(self._get(name, "A"), self._get(name, "AAAA"))
        return [record.address for records in found for record in records]

    async def _get(self, name: str, kind: str) -> list[Any]:
        try:
            return await self._ask(name, kind)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return []

    async def _ask(self, name: str, kind: str) -> list[Any]:
        try:
            resolver = self._resolver = self._resolver or self._made()
            return list(await resolver.resolve(name, kind, lifetime=_WITHIN, search=False))
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            raise
        except (dns.exception.DNSException, OSError) as exc:
            raise Unavailable(f"DNS does not tell {kind} of {name}: {str(exc)[:200]}") from exc

    def _made(self) -> dns.asyncresolver.Resolver:
        if self._server is None:
            return dns.asyncresolver.Resolver()
        address, _, port = self._server.rpartition(":")
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = [address]
        resolver.port = int(port)
        return resolver
