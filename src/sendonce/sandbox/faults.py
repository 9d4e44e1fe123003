"""What shall go wrong, and how often. All dice are thrown from one seed."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from sendonce.errors import BadInput


class Fault(StrEnum):
    """Where a SendEmail request comes to grief. ``*_after``, truncate and garbage come after acceptance."""

    REFUSE = "refuse"
    THROTTLE = "throttle"
    PAUSED = "paused"
    ERROR_BEFORE = "error_before"
    RESET_BEFORE = "reset_before"
    HANG_BEFORE = "hang_before"
    ERROR_AFTER = "error_after"
    RESET_AFTER = "reset_after"
    HANG_AFTER = "hang_after"
    TRUNCATE = "truncate"
    GARBAGE = "garbage"


@dataclass(slots=True)
class EventFaults:
    duplicate: float = 0.0  # share posted twice, word for word, as SNS does when it misses an answer
    republish: float = 0.0  # share told twice under two SNS ids
    shuffle: bool = False
    late: tuple[float, float] = (0.0, 0.0)  # seconds
    withhold: float = 0.0
    withhold_jobs: tuple[str, ...] = ()


@dataclass(slots=True)
class FaultPlan:
    shares: dict[Fault, float] = field(default_factory=dict)
    next: deque[Fault | None] = field(default_factory=deque)  # the fate of the very next requests
    slow_ms: tuple[float, float] = (0.0, 0.0)
    hang_seconds: float = 30.0
    error_status: int = 500
    events: EventFaults = field(default_factory=EventFaults)

    def describe(self) -> dict[str, Any]:
        return {
            **{fault.value: self.shares.get(fault, 0.0) for fault in Fault},
            "next": [fault.value if fault else "ok" for fault in self.next],
            "slow": list(self.slow_ms),
            "hang_seconds": self.hang_seconds,
            "error_status": self.error_status,
            "events": asdict(self.events),
        }

    def change(self, wishes: Mapping[str, Any]) -> None:
        """Apply what is named and leave the rest; on a wrong word nothing changes."""
        changed = FaultPlan(
            dict(self.shares), deque(self.next), self.slow_ms, self.hang_seconds, self.error_status
        )
        changed.events = EventFaults(**asdict(self.events))
        for name, value in wishes.items():
            changed.apply(name, value)
        if sum(changed.shares.values()) > 1:
            raise BadInput("The shares of all modes add up to more than 1.")
        for part in fields(self):
            setattr(self, part.name, getattr(changed, part.name))

    def apply(self, name: str, value: Any) -> None:
        if name in tuple(Fault):
            self.shares[Fault(name)] = share(name, value)
        elif name == "next":
            self.next = deque(_mode(word) for word in _listed(name, value))
        elif name == "slow":
            self.slow_ms = span(name, value)
        elif name == "hang_seconds":
            self.hang_seconds = span(name, [0, value])[1]
        elif name == "error_status" and value in (500, 502, 503, 504):
            self.error_status = int(value)
        elif name == "events" and isinstance(value, dict):
            for event_name, event_value in value.items():
                self._apply_to_events(event_name, event_value)
        else:
            raise BadInput(
                f"There is no fault {name!r} with the value {value!r}. Known: {', '.join(Fault)} "
                "(shares from 0 to 1), next (a list of these or ok), slow ([from, to] in ms), hang_seconds, "
                "error_status (500, 502, 503 or 504), events ({…})."
            )

    def _apply_to_events(self, name: str, value: Any) -> None:
        if name in ("duplicate", "republish", "withhold"):
            setattr(self.events, name, share(name, value))
        elif name == "late":
            self.events.late = span(name, value)
        elif name == "shuffle" and isinstance(value, bool):
            self.events.shuffle = value
        elif name == "withhold_jobs":
            self.events.withhold_jobs = tuple(str(job) for job in _listed(name, value))
        else:
            raise BadInput(
                f"There is no fault events.{name} with the value {value!r}. Known: duplicate, republish, "
                "withhold (shares), late ([from, to] in seconds), shuffle (true or false), "
                "withhold_jobs (a list)."
            )


class Dice:
    """Throws for each request and each event, and counts what fell."""

    def __init__(self, plan: FaultPlan, seed: int) -> None:
        self.plan = plan
        self.seed = seed
        self.random = random.Random(seed)
        self.injected: Counter[str] = Counter()

    def fault(self) -> Fault | None:
        if self.plan.next:
            return self._count(self.plan.next.popleft())
        if not self.plan.shares:
            return None
        throw = self.random.random()
        for fault, part in self.plan.shares.items():
            throw -= part
            if throw < 0:
                return self._count(fault)
        return None

    def _count(self, fault: Fault | None) -> Fault | None:
        if fault is not None:
            self.injected[fault.value] += 1
        return fault

    def latency(self) -> float:
        """Seconds that a request and its reply are under way together."""
        low, high = self.plan.slow_ms
        return self.random.uniform(low, high) / 1000 if high else 0.0

    def happens(self, part: float) -> bool:
        return part > 0 and self.random.random() < part


def share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadInput(f"{name} is {value!r}: give a share from 0 to 1.")
    return float(value)


def span(name: str, value: Any) -> tuple[float, float]:
    match value:
        case [(int() | float()) as low, (int() | float()) as high] if 0 <= low <= high:
            return float(low), float(high)
    raise BadInput(f"{name} is {value!r}: give two numbers, the lesser first, neither below 0.")


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(f"{name} is {value!r}: give a list.")
    return value


def _mode(word: Any) -> Fault | None:
    if word == "ok":
        return None
    if word not in tuple(Fault):
        raise BadInput(f"next names {word!r}. Known: ok, {', '.join(Fault)}.")
    return Fault(word)
