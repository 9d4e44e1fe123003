"""A world for worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.world import World, opened


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    slow = '--faults={"slow": [5, 10]}'
    with opened(World(tmp_path, f"sqlite:///{tmp_path}/disk/sendonce.db", [slow])) as world:
        yield world
