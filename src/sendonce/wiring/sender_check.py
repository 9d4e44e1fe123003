"""The doctor's checks of the transport alone, for whoever starts a mailout and waits for the answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.domain.engine.checks import Check, may_send
from sendonce.errors import SendonceError, Unavailable
from sendonce.flows.engine.check_sender import MOST_RECIPIENTS, Recipients
from sendonce.flows.engine.doctor import examine
from sendonce.ports.store import Store
from sendonce.settings import Settings
from sendonce.wiring.doctor import ses_reader, ses_sender_probes, smtp_probe

AT_ONCE = 2.5
"""Seconds that an HTTP caller waits for it."""
PATIENTLY = 8.0
"""Seconds that a person at a terminal or a worker waits for it."""
WELL_FOR = 30.0


class ProviderCheck:
    """What is well is believed for a while. What is not is asked again each time: somebody is mending it."""

    def __init__(self, settings: Settings, within: float) -> None:
        self._settings = settings
        self._within = within
        self._well_until = float("-inf")

    def refusals(self, recipients: Recipients) -> Sequence[Check]:
        """Waits for the provider, up to its time. What cannot be found out by then is no refusal."""
        if self._settings.transport == "maildir" or time.monotonic() < self._well_until:
            return []
        try:
            return asyncio.run(self._ask(recipients))
        except (TimeoutError, SendonceError):
            return []

    async def _ask(self, recipients: Recipients) -> list[Check]:
        async with asyncio.timeout(self._within):
            if self._settings.transport == "smtp":
                found = await examine([smtp_probe(self._settings)], self._within)
            else:
                found = await self._ask_ses(recipients)
        return [check for check in found if check.refuses_all]

    async def _ask_ses(self, recipients: Recipients) -> list[Check]:
        from sendonce.adapters.doctor.ses import SANDBOXED, SesAccountProbe, may_write_to

        reader = ses_reader(self._settings)
        # Without a store the quota is not compared with the list: counting takes time, and it stops nobody.
        account = SesAccountProbe(reader, StoreDoor(_no_store), self._settings.rate_limit_per_sec)
        found = await examine([account, *ses_sender_probes(self._settings, reader)], self._within)
        refused = [check for check in found if check.refuses_all]
        if may_send(found):
            self._well_until = time.monotonic() + WELL_FOR
        if any(check.name == SANDBOXED for check in refused):
            few = recipients()
            if len(few) <= MOST_RECIPIENTS and await may_write_to(reader, few):
                return [check for check in refused if check.name != SANDBOXED]
        return refused


def _no_store() -> Store:
    raise Unavailable("This check does without a store.")
