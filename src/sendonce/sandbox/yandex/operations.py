"""The operations that were accepted: written down before the answer, so that they outlive the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Accepted:
    id: str
    at: float
    text: str
    region: str
    page: int
    size: int
    fault: str | None


class OperationLog:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "searches.jsonl"
        self._known: dict[str, Accepted] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                accepted = Accepted(**json.loads(line))
                self._known[accepted.id] = accepted

    def add(self, accepted: Accepted) -> None:
        with self.path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(accepted), ensure_ascii=False) + "\n")
        self._known[accepted.id] = accepted

    def get(self, operation_id: str) -> Accepted | None:
        return self._known.get(operation_id)

    def __iter__(self) -> Iterator[Accepted]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)
