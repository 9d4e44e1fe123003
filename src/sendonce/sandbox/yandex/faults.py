"""What shall go wrong with this Yandex, and how often."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from sendonce.errors import BadInput
from sendonce.sandbox.faults import share

F = TypeVar("F", bound=StrEnum)


class SubmitFault(StrEnum):
    """What a submission meets. Those with ``_after`` come when it has been accepted, and paid for."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    RESET_BEFORE = "reset_before"
    RESET_AFTER = "reset_after"
    ERROR_AFTER = "error_after"
    GARBAGE_AFTER = "garbage_after"
    SILENCE_AFTER = "silence_after"


class OperationFault(StrEnum):
    """What becomes of an operation that was accepted."""

    STUCK = "stuck"
    EXPIRED = "expired"
    INTERNAL = "internal"
    INVALID = "invalid"
    BAD_BASE64 = "bad_base64"
    CUT_XML = "cut_xml"
    DEEP_XML = "deep_xml"
    DOCTYPE = "doctype"
    NOTHING = "nothing"
    XML_ERROR = "xml_error"
    XML_REFUSAL = "xml_refusal"


@dataclass(slots=True)
class YandexFaults:
    """``submits`` and ``operations`` are what the next ones meet, "ok" is none; shares are for the rest."""

    shares: dict[str, float] = field(default_factory=dict)
    submits: deque[SubmitFault | None] = field(default_factory=deque)
    operations: deque[OperationFault | None] = field(default_factory=deque)
    pending_seconds: float | None = None

    def describe(self) -> dict[str, Any]:
        return {
            **{fault.value: self.shares.get(fault, 0.0) for fault in (*SubmitFault, *OperationFault)},
            "submits": [fault.value if fault else "ok" for fault in self.submits],
            "operations": [fault.value if fault else "ok" for fault in self.operations],
            "pending_seconds": self.pending_seconds,
        }

    def changed(self, wishes: Mapping[str, Any]) -> YandexFaults:
        """With what is named changed and the rest as it is. Raises BadInput for a wrong word."""
        plan = replace(
            self,
            shares=dict(self.shares),
            submits=deque(self.submits),
            operations=deque(self.operations),
        )
        for name, value in wishes.items():
            plan._apply(name, value)
        return plan

    def _apply(self, name: str, value: Any) -> None:
        if name in (*SubmitFault, *OperationFault):
            self.shares[name] = share(name, value)
        elif name == "submits" and isinstance(value, list):
            self.submits = deque(None if word == "ok" else _known(SubmitFault, word) for word in value)
        elif name == "operations" and isinstance(value, list):
            self.operations = deque(None if word == "ok" else _known(OperationFault, word) for word in value)
        elif name == "pending_seconds" and (value is None or isinstance(value, int | float)):
            self.pending_seconds = value
        else:
            raise BadInput(
                f"There is no fault {name!r} with the value {value!r}. Known: "
                f"{', '.join((*SubmitFault, *OperationFault))} (shares from 0 to 1), submits and operations "
                "(lists of these or ok), pending_seconds."
            )


def _known(kind: type[F], word: Any) -> F:
    if word not in tuple(kind):
        raise BadInput(f"{word!r} is none of ok, {', '.join(kind)}.")
    return kind(word)


class YandexDice:
    def __init__(self, seed: int) -> None:
        self.plan = YandexFaults()
        self.injected: Counter[str] = Counter()
        self._random = random.Random(seed)

    def for_submit(self) -> SubmitFault | None:
        fault = self.plan.submits.popleft() if self.plan.submits else self._by_share(SubmitFault)
        return self._count(fault)

    def for_operation(self) -> OperationFault | None:
        fault = self.plan.operations.popleft() if self.plan.operations else self._by_share(OperationFault)
        return self._count(fault)

    def _count(self, fault: F | None) -> F | None:
        if fault is not None:
            self.injected[fault.value] += 1
        return fault

    def _by_share(self, kind: type[F]) -> F | None:
        throw = self._random.random() if self.plan.shares else 1.0
        for fault in kind:
            throw -= self.plan.shares.get(fault, 0.0)
            if throw < 0:
                return fault
        return None
