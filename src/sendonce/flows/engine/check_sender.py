"""Before a mailout starts: would the provider refuse every letter of it?

Only what is certain stops a start. What cannot be found out in time does not: then the first refusal holds
the sender, and no letter is harmed either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sendonce.domain.engine.checks import SANDBOXED, Check, may_send, stop
from sendonce.errors import BadInput, NotFound, SenderRefused, SendonceError

MOST_RECIPIENTS = 200
"""An account that may write to verified addresses only takes 200 letters per day."""
WELL_FOR = 30.0
UNFIT = "sender"
"""The check of whether there is such a sender, and its secret."""

Recipients = Callable[[], Sequence[str]]
"""To whom it would go; asked only where it matters. More than MOST_RECIPIENTS stand for everybody."""


class SenderCheck(Protocol):
    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:
        """The doctor's stops that would meet every letter, found out within a few seconds."""


class _Unchecked:
    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:  # noqa: ARG002 (the port's shape)
        return ()


UNCHECKED: SenderCheck = _Unchecked()
"""For who leaves it to somebody else: the worker that reads a page, or the hold."""


class Provider(Protocol):
    """What can be asked of a sender's mail provider before a start."""

    async def examine(self) -> Sequence[Check]: ...

    async def may_write_to(self, recipients: Sequence[str]) -> bool:
        """Whether an account that may write to verified addresses only may write to all of these."""


class ProviderCheck:
    """What is well is believed for a while. What is not is asked again each time: somebody is mending it.

    ``provider_of`` gives the provider of a sender, None where there is nobody to ask. It raises BadInput
    where the sender's settings or its secret are not in order, NotFound where the sender was removed.
    """

    def __init__(self, provider_of: Callable[[str], Provider | None], within: float) -> None:
        self._provider_of = provider_of
        self._within = within
        self._well_until: dict[str, float] = {}

    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:
        """Waits for the provider, up to its time. What cannot be found out by then is no refusal."""
        if time.monotonic() < self._well_until.get(sender_id, float("-inf")):
            return []
        try:
            provider = self._provider_of(sender_id)
        except (BadInput, NotFound) as exc:
            return [stop(UNFIT, str(exc), "", refuses_all=True)]
        if provider is None:
            return []
        try:
            return asyncio.run(self._ask(sender_id, provider, recipients))
        except (TimeoutError, SendonceError):
            return []

    async def _ask(self, sender_id: str, provider: Provider, recipients: Recipients) -> list[Check]:
        async with asyncio.timeout(self._within):
            found = await provider.examine()
            if may_send(found):
                self._well_until[sender_id] = time.monotonic() + WELL_FOR
            refused = [check for check in found if check.refuses_all]
            if any(check.name == SANDBOXED for check in refused):
                few = recipients()
                if len(few) <= MOST_RECIPIENTS and await provider.may_write_to(few):
                    return [check for check in refused if check.name != SANDBOXED]
            return refused


def refuse_if_refused(check: SenderCheck, sender_id: str, recipients: Recipients) -> None:
    """Raises SenderRefused with the reasons and what to do."""
    refusals = check.refusals(sender_id, recipients)
    if not refusals:
        return
    reasons = " ".join(f"{refusal.what} {refusal.fix}".strip() for refusal in refusals)
    if any(refusal.name == UNFIT for refusal in refusals):
        raise SenderRefused(f"The sender cannot send from here, so nothing was started. {reasons}")
    raise SenderRefused(f"The provider would refuse every letter, so nothing was started. {reasons}")
