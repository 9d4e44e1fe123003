"""What a page of Notion says when something about it changed, or when its button was pressed."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.domain.mailouts.mailouts import MailoutStatus, PageEvent


@dataclass(frozen=True, slots=True)
class PageNews:
    """Something about a page changed. ``may_ask``: it is of a kind by which a page asks to be sent.

    ``changed`` are the ids of the properties that changed, None where nobody says which.
    """

    page_id: str
    event: PageEvent
    may_ask: bool
    changed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PageSight:
    """The page as it is now, in the table of letters; which of its marks the news are about."""

    page_id: str
    status: MailoutStatus | None
    is_test: bool
    status_changed: bool
    test_mark_changed: bool


@dataclass(frozen=True, slots=True)
class PagePress:
    """The page's button was pressed, or an automation did the same. ``event`` is None where it has no id."""

    page_id: str
    is_test: bool
    event: PageEvent | None
