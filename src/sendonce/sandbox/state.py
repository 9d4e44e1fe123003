"""What a directory remembers from one run to the next: the seed and the subscription."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass
class WorldState:
    path: Path
    seed: int
    events_url: str = ""
    token: str = ""
    confirmed: bool = False

    def save(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(content))
        fresh.replace(self.path)


def open_state(directory: Path, seed: int | None) -> WorldState:
    path = directory / "world.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if seed is not None or "seed" not in kept:
        kept["seed"] = secrets.randbelow(2**32) if seed is None else seed
    state = WorldState(path, **kept)
    state.save()
    return state
