"""The stage of the conformance tests."""

from __future__ import annotations

import pytest

from sendonce.ports.store import Store
from tests.conformance.stage import Stage


@pytest.fixture
def stage(store: Store) -> Stage:
    """A store of each kind in turn."""
    return Stage(store)


@pytest.fixture
def shared_stage(shared_store: Store) -> Stage:
    """A store in which writers meet."""
    return Stage(shared_store)
