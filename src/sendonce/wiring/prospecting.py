"""The working parts of prospecting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sendonce.ports.prospecting import PageContacts, Sites


def site_reader() -> Sites:
    from sendonce.adapters.web.site_reader import site_reader

    return site_reader()


def contact_reader() -> PageContacts:
    from sendonce.adapters.contacts.reader import ContactReader
    from sendonce.adapters.web.public_suffixes import public_suffixes
    from sendonce.adapters.web.site_reader import site_reader

    return ContactReader(site_reader(), public_suffixes())
