"""An open database with the rows of every room."""

from __future__ import annotations

from typing import Protocol

from sendonce.ports.mailouts import MailoutStore


class Store(MailoutStore, Protocol):
    """All of it."""
