"""What prospecting needs from outside."""

from __future__ import annotations

from typing import Protocol

from sendonce.domain.prospecting.contacts import Contacts
from sendonce.domain.prospecting.sites import Site


class Sites(Protocol):
    """Knows which company an address on the web belongs to. Asks no network."""

    def read(self, text: str) -> Site: ...


class PageContacts(Protocol):
    """Reads the contacts of a page that was saved or fetched. Asks no network."""

    def read(self, data: bytes, url: str, charset: str | None = None) -> Contacts: ...
