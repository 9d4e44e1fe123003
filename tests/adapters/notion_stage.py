"""What tests of Notion share: a stand-in in a process of its own, and a client that does not dawdle."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.pace import Policy
from sendonce.sandbox.notion.seeds import Seeds
from tests.adapters.sandbox_stage import Sandbox

SEEDS = Seeds()
QUICK = Policy(rate=10_000, burst=1000, first_pause=0.01, patience=5, request_seconds=3)
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "notion_blocks.json"


class NotionStage:
    """A Notion stand-in; ``client`` is ours, with quick retries."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.sandbox = Sandbox(directory, {"notion_requests": 1_000_000, **settings})
        self.environment: dict[str, str] = self.sandbox.addresses["environment"]
        self.client = self.connect()

    def connect(self, policy: Policy = QUICK, **changes: str) -> NotionClient:
        given = {"token": self.environment["NOTION_TOKEN"], "api_url": self.sandbox.endpoint, **changes}
        return NotionClient(given["token"], given["api_url"], policy=policy)

    def fail(self, *modes: str, on: str = "", **more: Any) -> None:
        """The next requests that begin with ``on`` go wrong; what was set before is forgotten."""
        self.sandbox.post("notion/faults", method="DELETE")
        self.sandbox.post("notion/faults", {"next": list(modes), "on": on, **more})

    def write(self, properties: dict[str, Any], blocks: Any = (), parent: str = SEEDS.letters) -> str:
        """A page as its author would write it in the app."""
        wish = {"parent": parent, "properties": properties, "blocks": list(blocks)}
        page: str = self.sandbox.post("notion/pages", wish)["id"]
        return page

    def look(self, page: str) -> dict[str, Any]:
        values: dict[str, Any] = self.sandbox.get(f"notion/pages/{page}")["properties"]
        return values

    def rows(self, table: str = SEEDS.errors) -> list[dict[str, Any]]:
        return [row["properties"] for row in self.sandbox.get(f"notion/rows/{table}")]

    def put_file(self, name: str, content: bytes) -> dict[str, Any]:
        """Upload a file; the block that shows it."""
        body = {"name": name, "base64": base64.b64encode(content).decode()}
        block: dict[str, Any] = self.sandbox.post("notion/files", body)["block"]
        return block

    def asked(self, what: str) -> int:
        count: int = self.sandbox.get("notion/stats")["asked"].get(what, 0)
        return count

    def close(self) -> None:
        self.client.close()
        self.sandbox.stop()


def paragraph(text: str, *children: dict[str, Any]) -> dict[str, Any]:
    block = {"type": "paragraph", "paragraph": {"rich_text": [{"text": {"content": text}}]}}
    return {**block, **({"children": list(children)} if children else {})}


def listing(*blocks: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
    """The body of a page of a list."""
    return {
        "object": "list",
        "results": list(blocks),
        "has_more": cursor is not None,
        "next_cursor": cursor,
    }


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
