"""What shall go wrong with this Notion, how often, and with which requests."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sendonce.errors import BadInput
from sendonce.sandbox.faults import share, span
from sendonce.sandbox.http_server import Ending, Reply
from sendonce.sandbox.notion.refusals import NotionRefusal


class NotionFault(StrEnum):
    """Those with ``_after`` come when the request has been carried out."""

    CONFLICT = "conflict"
    RATE_LIMITED = "rate_limited"
    ERROR = "error"
    BAD_GATEWAY = "bad_gateway"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    OVERLOAD = "overload"
    RESET_BEFORE = "reset_before"
    ERROR_AFTER = "error_after"
    BAD_GATEWAY_AFTER = "bad_gateway_after"
    RESET_AFTER = "reset_after"
    TRUNCATE_AFTER = "truncate_after"
    GARBAGE_AFTER = "garbage_after"
    HTML_AFTER = "html_after"


_STATUSES = {
    NotionFault.CONFLICT: 409,
    NotionFault.RATE_LIMITED: 429,
    NotionFault.ERROR: 500,
    NotionFault.ERROR_AFTER: 500,
    NotionFault.UNAVAILABLE: 503,
    NotionFault.TIMEOUT: 504,
    NotionFault.OVERLOAD: 529,
}
_ENDINGS = {
    NotionFault.RESET_BEFORE: Ending.RESET,
    NotionFault.RESET_AFTER: Ending.RESET,
    NotionFault.TRUNCATE_AFTER: Ending.CUT,
    NotionFault.GARBAGE_AFTER: Ending.GARBAGE,
}
_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"


@dataclass(slots=True)
class NotionFaults:
    """``on`` is the beginning of the requests that are hit, such as "POST /v1/pages"; empty: all."""

    shares: dict[NotionFault, float] = field(default_factory=dict)
    next: deque[NotionFault | None] = field(default_factory=deque)
    on: str = ""
    slow_ms: tuple[float, float] = (0.0, 0.0)
    retry_after: int = 1

    def describe(self) -> dict[str, Any]:
        return {
            **{fault.value: self.shares.get(fault, 0.0) for fault in NotionFault},
            "next": [fault.value if fault else "ok" for fault in self.next],
            "on": self.on,
            "slow": list(self.slow_ms),
            "retry_after": self.retry_after,
        }

    def changed(self, wishes: Mapping[str, Any]) -> NotionFaults:
        """With what is named changed and the rest as it is. Raises BadInput for a wrong word."""
        plan = replace(self, shares=dict(self.shares), next=deque(self.next))
        for name, value in wishes.items():
            plan._apply(name, value)
        if sum(plan.shares.values()) > 1:
            raise BadInput("The shares of all modes add up to more than 1.")
        return plan

    def _apply(self, name: str, value: Any) -> None:
        if name in tuple(NotionFault):
            self.shares[NotionFault(name)] = share(name, value)
        elif name == "next" and isinstance(value, list):
            self.next = deque(_mode(word) for word in value)
        elif name == "on" and isinstance(value, str):
            self.on = value
        elif name == "slow":
            self.slow_ms = span(name, value)
        elif name == "retry_after" and isinstance(value, int) and value >= 0:
            self.retry_after = value
        else:
            raise BadInput(
                f"There is no fault {name!r} with the value {value!r}. Known: {', '.join(NotionFault)} "
                '(shares from 0 to 1), next (a list of these or ok), on (such as "POST /v1/pages"), '
                "slow ([from, to] in ms), retry_after (whole seconds)."
            )


class NotionDice:
    def __init__(self, seed: int) -> None:
        self.plan = NotionFaults()
        self.injected: Counter[str] = Counter()
        self._random = random.Random(seed)

    def throw(self, request: str) -> NotionFault | None:
        if not request.startswith(self.plan.on):
            return None
        fault = self.plan.next.popleft() if self.plan.next else self._by_share()
        if fault is not None:
            self.injected[fault.value] += 1
        return fault

    def _by_share(self) -> NotionFault | None:
        throw = self._random.random() if self.plan.shares else 1.0
        for fault, part in self.plan.shares.items():
            throw -= part
            if throw < 0:
                return fault
        return None

    def latency(self) -> float:
        return self._random.uniform(*self.plan.slow_ms) / 1000

    def reply(self, fault: NotionFault, carried_out: Reply) -> Reply:
        """What the client sees of a fault; ``carried_out`` is what it would have seen."""
        if fault in (NotionFault.BAD_GATEWAY, NotionFault.BAD_GATEWAY_AFTER):
            return Reply(502, _HTML, content_type="text/html")
        if fault is NotionFault.HTML_AFTER:
            return Reply(200, _HTML, content_type="text/html")
        if fault in _ENDINGS:
            return replace(carried_out, ending=_ENDINGS[fault])
        status = _STATUSES[fault]
        told = (("Retry-After", str(self.plan.retry_after)),) if status in (429, 529) else ()
        return NotionRefusal(status, "The sandbox was asked for this.", headers=told).reply()


def is_after(fault: NotionFault) -> bool:
    return fault.value.endswith("_after")


def _mode(word: Any) -> NotionFault | None:
    if word == "ok":
        return None
    if word not in tuple(NotionFault):
        raise BadInput(f"next names {word!r}. Known: ok, {', '.join(NotionFault)}.")
    return NotionFault(word)
