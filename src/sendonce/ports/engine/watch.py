"""What whoever watches over the house needs: the checks of every day, and those that alerts come from."""

from __future__ import annotations

from typing import Protocol

from sendonce.ports.engine.store import EngineStore
from sendonce.ports.engine.workers import Leases


class WatchStore(EngineStore, Protocol):
    """An open database with what the watch keeps in it."""

    leases: Leases
