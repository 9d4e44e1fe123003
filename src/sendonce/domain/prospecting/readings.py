"""What a visit to a company's site reads: the pages, what they say, and what was refused and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sendonce.domain.prospecting.companies import Fact
from sendonce.domain.prospecting.contacts import Contacts


class FactKind(StrEnum):
    """What a letter may need to know of a company. Its own pages say it, in public."""

    NAME = "name"
    TITLE = "title"
    DESCRIPTION = "description"
    HEADING = "heading"
    CITY = "city"


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class PageReading:
    """All that is read of one page.

    ``needs_script``: it is an empty frame until a browser runs it. ``sends_to``: where it sends a reader on
    by itself (``<meta http-equiv="refresh">``).
    """

    url: str
    contacts: Contacts
    facts: list[Fact]
    links: list[Link] = field(default_factory=list)
    needs_script: bool = False
    sends_to: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A page that was not read, and the reason in words for people. ``passing``: it may be gone tomorrow."""

    url: str
    reason: str
    passing: bool = False


@dataclass(frozen=True, slots=True)
class SiteReading:
    """``home`` is where the site's first page was at last, after redirects; None if nothing could be read."""

    start: str
    home: str | None
    pages: tuple[PageReading, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def reason(self) -> str:
        """Why nothing was read, or the first thing that went wrong."""
        return self.refusals[0].reason if self.refusals else ""

    @property
    def met_passing_trouble(self) -> bool:
        """Some page was not read for a reason that may be gone another day."""
        return any(refusal.passing for refusal in self.refusals)
