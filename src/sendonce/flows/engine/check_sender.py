"""Before a mailout starts: would the provider refuse every letter of it?

Only what is certain stops a start. What cannot be found out in time does not: then the first refusal holds
the sender, and no letter is harmed either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sendonce.domain.engine.checks import Check
from sendonce.errors import SenderRefused

MOST_RECIPIENTS = 200
"""An account that may write to verified addresses only takes 200 letters per day."""

Recipients = Callable[[], Sequence[str]]
"""To whom it would go; asked only where it matters. More than MOST_RECIPIENTS stand for everybody."""


class SenderCheck(Protocol):
    def refusals(self, recipients: Recipients) -> Sequence[Check]:
        """The doctor's stops that would meet every letter, found out within a few seconds."""


class _Unchecked:
    def refusals(self, recipients: Recipients) -> Sequence[Check]:  # noqa: ARG002 (the port's shape)
        return ()


UNCHECKED: SenderCheck = _Unchecked()
"""For who leaves it to somebody else: the worker that reads a page, or the hold."""


def refuse_if_refused(check: SenderCheck, recipients: Recipients) -> None:
    """Raises SenderRefused with the reasons and what to do."""
    refusals = check.refusals(recipients)
    if refusals:
        reasons = " ".join(f"{refusal.what} {refusal.fix}" for refusal in refusals)
        raise SenderRefused(f"The provider would refuse every letter, so nothing was started. {reasons}")
