"""The mailout: one letter to all active subscribers, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NewType

from sendonce.domain.engine.dispatches import Dispatch, DispatchPhase
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import DispatchId, TenantId

KIND = "mailout"
"""The kind of a mailout's dispatch. Both have the same id."""


class MailoutStatus(StrEnum):
    DRAFT = "draft"
    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


class Phase(StrEnum):
    """Where a started mailout is: no job is claimed before all are planned."""

    FETCHING = "fetching"  # its letter is still to be read from where it was written
    PLANNING = "planning"
    RUNNING = "running"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class PageEvent:
    """A page asked for something: its button was pressed, or it was changed. ``id`` is the same in every copy
    of the event; ``at`` is when it happened, by the clock of the page's host, where that is told."""

    id: str
    at: datetime | None = None

    def is_news_to(self, known: PageEvent | None) -> bool:
        """Whether it is neither a second copy of the event that is known nor older than that."""
        if known is None:
            return True
        late = self.at is not None and known.at is not None and self.at < known.at
        return self.id != known.id and not late


MailoutId = NewType("MailoutId", DispatchId)
"""The handle of a mailout that was found for its tenant, and of its dispatch, which has the same id."""


@dataclass(frozen=True, slots=True)
class Mailout:
    """``source_id`` is the page it was written on; there is one mailout a page, and any number of tests.

    ``audience`` is None for all active subscribers, or the few addresses of a test.
    ``warnings`` are what the letter's author should know.
    ``send_at`` is when it is to start; nothing starts it then unless it is ``scheduled``.
    ``except_of`` are earlier mailouts: who got one of them, or may have, is skipped.
    ``page_event`` is the last event of its page that was obeyed or refused.
    ``forced``: a person started it although the provider would refuse every letter.
    """

    id: MailoutId
    tenant_id: TenantId
    letter_id: str | None
    name: str
    source: str
    source_id: str | None
    status: MailoutStatus
    is_test: bool
    audience: tuple[str, ...] | None
    warnings: tuple[str, ...]
    reason: str | None
    created_at: datetime
    phase: Phase | None = None
    paused: bool = False
    cancelled: bool = False
    started_at: datetime | None = None
    sent_at: datetime | None = None
    send_at: datetime | None = None
    scheduled: bool = False
    except_of: tuple[str, ...] = ()
    page_event: PageEvent | None = None
    forced: bool = False
    sender_id: str = OWN_SENDER

    def seen_through(self, dispatch: Dispatch) -> Mailout:
        """Its own row says what it is; how far it is, its dispatch says."""
        status, phase = self.status, None
        started = dispatch.started_at is not None
        if dispatch.phase == DispatchPhase.OVER:
            status, phase = MailoutStatus(dispatch.result or MailoutStatus.FAILED), Phase.OVER
        elif started:
            fetching = dispatch.phase == DispatchPhase.PREPARING
            status, phase = MailoutStatus.SENDING, Phase.FETCHING if fetching else Phase(dispatch.phase)
        return replace(
            self,
            status=status,
            phase=phase,
            paused=dispatch.paused,
            cancelled=dispatch.cancelled,
            # Why it was stopped outweighs why it was not started.
            reason=dispatch.reason or self.reason,
            started_at=dispatch.started_at,
            sent_at=dispatch.ended_at if started else None,
            scheduled=self.scheduled and not dispatch.cancelled,
            sender_id=dispatch.sender_id,
        )

    def is_still(self, checked: Mailout | None) -> bool:
        """Whether its letter and its time are those that were checked."""
        return checked is None or (
            (self.letter_id, self.send_at, self.scheduled)
            == (checked.letter_id, checked.send_at, checked.scheduled)
        )


@dataclass(frozen=True, slots=True)
class NewMailout:
    """``letter`` is None for a page that is read when the mailout starts.

    ``send_at`` is its author's wish: the mailout starts then once somebody has said that it is to be sent.
    """

    name: str
    source: str
    letter: Letter | None
    source_id: str | None = None
    draft: bool = False
    is_test: bool = False
    audience: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    send_at: datetime | None = None
    sender_id: str = OWN_SENDER


@dataclass(frozen=True, slots=True)
class FetchedLetter:
    """A letter as its page says it. ``warnings`` are for its author.

    ``status_name`` is the page's own word; ``status`` is what it means, None where it means nothing to us.
    ``send_at`` is when it is to start; None starts it when somebody says so.
    """

    name: str
    letter: Letter
    warnings: tuple[str, ...]
    is_test: bool
    status: MailoutStatus | None
    status_name: str
    send_at: datetime | None = None

    @property
    def may_be_sent(self) -> bool:
        """A page without a word on its state is sent when somebody says so; a draft or a sent one is not."""
        return self.status == MailoutStatus.READY or not self.status_name


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """One chunk of planning: how many jobs it added, and whether it was the last."""

    added: int
    finished: bool
