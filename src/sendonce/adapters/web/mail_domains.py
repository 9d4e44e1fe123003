"""Whether a domain takes mail: by its MX records or, without any, by its addresses (RFC 5321 §5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from sendonce.adapters.web.dns_records import Records
from sendonce.domain.prospecting.kept_contacts import TakesMail
from sendonce.errors import Unavailable

_AT_ONCE = 10
_MANY = 50_000


class MailDomains:
    """Without ``records`` nothing is asked: in a rehearsal the domains are made up."""

    def __init__(self, records: Records | None) -> None:
        self._records = records
        self._known: dict[str, TakesMail] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def look_up(self, domains: Iterable[str]) -> Mapping[str, TakesMail]:
        wanted = sorted(set(domains))
        answers = await asyncio.gather(*map(self._ask, wanted))
        return dict(zip(wanted, answers, strict=True))

    async def _ask(self, domain: str) -> TakesMail:
        if self._records is None:
            return TakesMail.UNKNOWN
        async with self._turns:
            if domain not in self._known:
                answer = await _answer(self._records, domain)
                if answer is TakesMail.UNKNOWN:
                    return answer
                if len(self._known) > _MANY:
                    self._known.clear()
                self._known[domain] = answer
            return self._known[domain]


async def _answer(records: Records, domain: str) -> TakesMail:
    try:
        servers = await records.mail_servers(domain)
        # A lone "." says in so many words that there is no mail (RFC 7505).
        reachable = (
            any(server.strip(".") for server in servers) if servers else await records.addresses(domain)
        )
    except Unavailable:
        return TakesMail.UNKNOWN
    except ValueError:  # dnspython: no name of the DNS
        return TakesMail.NO
    return TakesMail.YES if reachable else TakesMail.NO
