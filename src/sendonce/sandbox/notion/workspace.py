"""Everything that is in this Notion, and the file it is kept in."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BOT = "b0b0b0b0-0000-4000-8000-000000000001"
PERSON = "b0b0b0b0-0000-4000-8000-000000000002"


@dataclass
class Workspace:
    """``children`` lists what is on a page or in a block, in order; pages and tables are listed, too."""

    path: Path
    pages: dict[str, Record] = field(default_factory=dict)
    databases: dict[str, Record] = field(default_factory=dict)
    data_sources: dict[str, Record] = field(default_factory=dict)
    blocks: dict[str, Record] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    unshared: list[str] = field(default_factory=list)
    last_moment: float = 0.0

    def save(self) -> None:
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        fresh.replace(self.path)

    def stamp(self) -> str:
        """Now, later than whatever was stamped before: the order of creation is never in doubt."""
        self.last_moment = max(time.time(), self.last_moment + 0.001)
        moment = datetime.fromtimestamp(self.last_moment, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def new_record(self, parent: Record, identity: str = "", author: str = BOT) -> Record:
        moment = self.stamp()
        return {
            "id": identity or str(uuid.uuid4()),
            "parent": parent,
            "created_time": moment,
            "last_edited_time": moment,
            "created_by": {"object": "user", "id": author},
            "last_edited_by": {"object": "user", "id": author},
            "in_trash": False,
        }

    def touch(self, record: Record) -> None:
        record["last_edited_time"] = self.stamp()

    def container(self, record: Record) -> str | None:
        """What a thing is in, one step up."""
        parent = record["parent"]
        found: str | None = parent.get(parent["type"]) if parent["type"] != "workspace" else None
        return found

    def find(self, identity: str) -> Record | None:
        for kind in (self.pages, self.databases, self.data_sources, self.blocks):
            if identity in kind:
                return kind[identity]
        return None

    def is_shared(self, identity: str) -> bool:
        """Sharing a page shares all that is on it; taking it away likewise."""
        place: str | None = identity
        while place is not None:
            if place in self.unshared:
                return False
            record = self.find(place)
            place = self.container(record) if record else None
        return True


def open_workspace(directory: Path) -> tuple[Workspace, bool]:
    """The workspace of a directory, and whether it is new."""
    path = directory / "notion.json"
    if not path.exists():
        return Workspace(path), True
    return Workspace(path, **json.loads(path.read_text(encoding="utf-8"))), False
