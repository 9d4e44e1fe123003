"""Who receives the mail of domains, by their MX records, within a time that an import can spare."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from sendonce.adapters.web.dns_records import Records
from sendonce.domain.campaigns.receivers import Receiver, receiver_of_mx
from sendonce.errors import Unavailable

_AT_ONCE = 50


class MxReceivers:
    """Asks for ``seconds`` altogether, however many domains there are. What is not known by then, and all of
    it where no name server answers, is left out."""

    def __init__(self, records: Records, seconds: float = 60.0) -> None:
        self._records = records
        self._left = seconds
        self._known: dict[str, Receiver] = {}
        self._answers: bool | None = None

    def look_up(self, domains: Iterable[str]) -> Mapping[str, Receiver]:
        wanted = set(domains)
        new = wanted - self._known.keys()
        if new and self._left > 0 and self._answers is not False:
            begun = time.monotonic()
            asyncio.run(self._ask_all(sorted(new)))
            self._left -= time.monotonic() - begun
        return {domain: self._known[domain] for domain in wanted & self._known.keys()}

    async def _ask_all(self, domains: list[str]) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)
        try:
            async with asyncio.timeout(self._left):
                if self._answers is None:
                    self._answers = await self._server_answers()
                if self._answers:
                    await asyncio.gather(*(self._ask(domain, turns) for domain in domains))
        except TimeoutError:
            return

    async def _server_answers(self) -> bool:
        """One question before a thousand: each would wait for seconds where nobody answers."""
        try:
            return await self._records.works()
        except Unavailable:
            return False

    async def _ask(self, domain: str, turns: asyncio.Semaphore) -> None:
        async with turns:
            try:
                self._known[domain] = receiver_of_mx(await self._records.mail_servers(domain))
            except (Unavailable, ValueError):  # ValueError: dnspython takes it for no name of the DNS
                return
