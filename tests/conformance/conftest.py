"""The stage of the conformance tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sendonce.ports.store import Store
from tests.conformance.stage import Stage
from tests.conftest import OpenStore


@pytest.fixture
def stage(store: Store) -> Stage:
    """A store of each kind in turn."""
    return Stage(store)


@pytest.fixture(params=("weak", "sqlite", "postgres"))
def meeting_stage(request: pytest.FixtureRequest, open_any_store: OpenStore) -> Iterator[Stage]:
    """The same, and the weak store, in which writers of one row meet."""
    with open_any_store(request.param) as opened:
        yield Stage(opened)


@pytest.fixture
def shared_stage(shared_store: Store) -> Stage:
    """A store in which writers meet."""
    return Stage(shared_store)
