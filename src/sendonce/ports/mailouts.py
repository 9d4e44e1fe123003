"""What door A needs from outside: the mailouts themselves, their images, and where letters are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.reports import RecipientOutcome
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import (
    FetchedLetter,
    Mailout,
    MailoutId,
    MailoutStatus,
    NewMailout,
    PageEvent,
    PlanProgress,
)
from sendonce.domain.mailouts.page_calls import PageNews, PagePress, PageSight
from sendonce.ports.people import PeopleStore


class Mailouts(Protocol):
    """A mailout owns the dispatch of the same id, of the kind "mailout": pausing, cancelling and finishing
    it are verbs of ``Dispatches``.

    Whoever changes or reads one mailout shows its ``MailoutId``, which only a verb gives that was told the
    tenant. What looks for work looks for that of every tenant.
    """

    def create(self, tenant_id: TenantId, new: NewMailout) -> Mailout:
        """A new mailout; for a page that has one already (tests apart), that one."""

    def get(self, tenant_id: TenantId, mailout_id: str) -> Mailout | None: ...

    def of_page(self, tenant_id: TenantId, source: str, source_id: str) -> Mailout | None: ...

    def letter(self, mailout_id: MailoutId) -> Letter: ...

    def all(self, tenant_id: TenantId, limit: int = 100) -> Sequence[Mailout]:
        """The newest first."""

    def of_all_tenants(self, limit: int = 100) -> Sequence[Mailout]:
        """The newest first: for what concerns the database, or a person whoever wrote to them."""

    def with_status(self, status: MailoutStatus) -> Sequence[Mailout]: ...

    def being_prepared(self) -> Sequence[Mailout]:
        """Started mailouts that are still to be read or planned."""

    def running(self) -> int:
        """How many share the workers now."""

    def make_ready(self, mailout_id: MailoutId) -> bool:
        """draft → ready; False when it is no draft."""

    def replace_letter(self, mailout_id: MailoutId, new: NewMailout) -> bool:
        """Another letter for a draft or a ready mailout of a file; a time that it is scheduled for stays.

        False when it has been started, or is written on a page.
        """

    def delete(self, mailout_id: MailoutId) -> bool:
        """Remove a draft or a ready mailout, and its letter; False when it has been started."""

    def twins(self, tenant_id: TenantId, letter: Letter) -> Sequence[Mailout]:
        """The mailouts, tests apart, that went out with the same words before, the latest first."""

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so (see ``domain.ids.is_prefix``), at most ``limit``."""

    def start(
        self,
        mailout_id: MailoutId,
        event: PageEvent | None = None,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
        checked: Mailout | None = None,
    ) -> bool:
        """ready → sending, atomically; False when somebody else did it or it is not ready.

        ``checked`` is the mailout as somebody looked at it: False also when its letter or its time is another
        by now.

        Whom one of ``except_of`` went to, or may have, is planned as skipped; None keeps what was said when
        it was scheduled.

        With ``event`` also False when that is no news (``PageEvent.is_news_to``); else it is remembered.
        """

    def hear(self, mailout_id: MailoutId, event: PageEvent) -> bool:
        """Remember an event of its page that starts nothing; False when it is no news."""

    def note(self, mailout_id: MailoutId, reason: str) -> bool:
        """Why a mailout that is not under way was not started; False when it is sending or cancelled."""

    def schedule(
        self,
        mailout_id: MailoutId,
        send_at: datetime,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
    ) -> bool:
        """Have a ready mailout started at a time; again: at another time. False when it is not ready."""

    def unschedule(self, mailout_id: MailoutId, reason: str | None = None) -> bool:
        """The clock starts it no more; it stays ready, with the reason. False when it was not scheduled."""

    def due(self) -> Sequence[Mailout]:
        """The scheduled mailouts whose time has come, by the store's clock, in the order of their times."""

    def freeze(self, mailout_id: MailoutId, name: str, letter: Letter, warnings: Sequence[str]) -> bool:
        """Give a mailout that is being fetched its letter, for good; planning follows."""

    def stop_before_first(
        self,
        mailout_id: MailoutId,
        reason: str | None,
        warnings: Sequence[str] = (),
        *,
        send_at: datetime | None = None,
    ) -> bool:
        """Back to ready with a reason, and what its author should know, if nothing was planned yet.

        With ``send_at`` it is scheduled to start again then.
        """

    def count_excluded(self, tenant_id: TenantId, except_of: Sequence[str]) -> int:
        """How many active subscribers these mailouts went to, or may have."""

    def plan_chunk(self, mailout_id: MailoutId, planner: str, size: int) -> PlanProgress | None:
        """Plan the next ``size`` active subscribers; None while another planner holds the lease."""

    def with_stale_report(self, source: str, limit: int) -> Sequence[tuple[Mailout, str | None]]:
        """Mailouts of a source that changed lately, with what was last reported of them."""

    def set_reported(self, mailout_id: MailoutId, what: str) -> None: ...


class Assets(Protocol):
    """Images of letters, under the hash of their content."""

    def put(self, sha256: str, content_type: str, content: bytes) -> None: ...

    def get(self, sha256: str) -> tuple[str, bytes] | None: ...


class Reports(Protocol):
    """The report files of this machine: one for each mailout, with a line for each recipient."""

    def has(self, mailout_id: str) -> bool:
        """Raises BadInput where nobody can tell."""

    def place_of(self, mailout_id: str) -> str: ...

    def put(self, mailout_id: str, recipients: Iterable[RecipientOutcome]) -> None:
        """Whole or not at all, in place of an earlier one. Raises BadInput where it cannot be written."""

    def read(self, mailout_id: str) -> bytes:
        """Raises BadInput where it cannot be read."""


class LetterSource(Protocol):
    """Where letters are written: a page of Notion."""

    def fetch(self, page_id: str) -> FetchedLetter:
        """The letter as it stands now, its images copied.

        Raises NotFound, BadInput or RefusedByRule for what the author must mend, Unavailable to try later.
        """

    def take_back(self, page_id: str) -> None:
        """Set the page's own status from ready to draft: a property changed later starts nothing.

        Raises like ``fetch``.
        """


class PageInbox(Protocol):
    """What the host of pages posts to us: signed news of pages, and presses of their buttons."""

    @property
    def has_token(self) -> bool:
        """Whether there is a token by which news are signed."""

    def is_signed(self, body: bytes, signature: str | None) -> bool: ...

    def keep_handshake(self, body: bytes) -> bool:
        """Keep the token in this body if the owner waits for it; False for anything else."""

    def read(self, body: bytes) -> PageNews:
        """The news in a signed body. Raises BadInput."""

    def look(self, news: PageNews) -> PageSight | None:
        """The page as it is now; None if it is gone, or not among the letters. Raises Unavailable."""

    def is_press(self, fields: Mapping[str, Any]) -> bool: ...

    def pressed(self, fields: Mapping[str, Any]) -> PagePress:
        """The press in a body that ``is_press``. Raises BadInput."""

    def close(self) -> None: ...


class MailoutStore(PeopleStore, Protocol):
    """An open database, as door A sees it."""

    mailouts: Mailouts
    assets: Assets
