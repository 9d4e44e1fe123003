"""The working parts of prospecting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sendonce.ports.prospecting import Sites


def site_reader() -> Sites:
    from sendonce.adapters.web.site_reader import site_reader

    return site_reader()
