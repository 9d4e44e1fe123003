"""Start a mailout: check all that can be checked at once, then claim it in one atomic step.

A letter that lives on a page is not read here: whoever asked gets an answer at once, however slow the
page's host is. The worker reads and checks it before anything is planned (prepare_mailouts.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus, NewMailout, PageEvent
from sendonce.errors import BadInput, LedgerRolledBack, NotFound, Overtaken, RefusedByRule, Unsendable
from sendonce.flows.engine.check_sender import (
    UNCHECKED,
    Recipients,
    SenderCheck,
    refuse_if_refused,
)
from sendonce.flows.mailouts.audience import subscribers_of
from sendonce.flows.mailouts.preflight import check_letter, check_variables, count_audience
from sendonce.ports.mailouts import MailoutStore

log = logging.getLogger(__name__)

TEST_MARK = "[TEST] "


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Which mailout to start. Another tenant's mailout counts as not found.

    ``dry_run`` makes all the checks and changes nothing; ``test_emails`` sends to these few only, and the
    mailout stays as it is. ``send_at`` schedules it; without it the letter's own time holds, which
    ``at_once`` overrules. The clock starts it ``for_time``, unless that was changed meanwhile.
    ``event`` is what its page asked by: it starts the mailout once.
    Whom one of the mailouts ``except_of`` went to is left out; None keeps what was said when scheduling.
    ``force`` starts it although the provider would refuse every letter.
    """

    mailout_id: str
    tenant_id: TenantId
    dry_run: bool = False
    test_emails: tuple[str, ...] | None = None
    send_at: datetime | None = None
    at_once: bool = False
    for_time: datetime | None = None
    event: PageEvent | None = None
    except_of: tuple[str, ...] | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class StartReport:
    """``mailout`` is the one that sends: for a test, a mailout of its own.

    ``waits_until`` is its time when it was scheduled and not started.
    """

    mailout: Mailout
    planned: int
    waits_until: datetime | None = None

    @property
    def status(self) -> str:
        return "scheduled" if self.waits_until else "sending"


def start_mailout(
    store: MailoutStore,
    message_settings: Callable[[], MessageSettings],
    order: StartOrder,
    sender_check: SenderCheck = UNCHECKED,
) -> StartReport:
    """Check and start. Of many callers at once one succeeds; the others get RefusedByRule.

    What starts is what was checked: Overtaken where the letter or its time was changed meanwhile.
    Raises NotFound, RefusedByRule for a mailout that is not ready, Unsendable for one that could not be sent
    as it is, and SenderRefused: then it stays as it was. Whoever starts one without a ``sender_check`` leaves
    that to somebody else.
    """
    mailout = store.mailouts.get(order.tenant_id, order.mailout_id)
    if mailout is None:
        raise NotFound(
            f"There is no mailout {order.mailout_id!r}: 'sendonce mailout list' shows what there is."
        )
    if order.test_emails is not None:
        return _start_test(store, message_settings(), mailout, order, sender_check)
    _check_status(mailout, order)
    _check_ledger(store)
    settings = message_settings()
    try:
        planned = _check(store, settings, mailout) - _check_exceptions(store, mailout, order)
    except BadInput as exc:
        raise Unsendable(str(exc)) from exc
    if planned <= 0:
        raise RefusedByRule(
            "Everybody on the list got one of these mailouts already: there is nobody to write to."
        )
    waits_until = _start_time(store, mailout, order)
    _check_sender(mailout, order, sender_check, subscribers_of(store, mailout.tenant_id))
    if not order.dry_run:
        _start(store, mailout, order, waits_until, planned)
    return StartReport(mailout, planned, waits_until)


def try_unread_page(
    store: MailoutStore, message_settings: Callable[[], MessageSettings], tenant_id: TenantId
) -> int:
    """A dry run for a page that nobody has asked for yet: all but its letter, and nothing is written down."""
    _check_ledger(store)
    message_settings()
    try:
        return count_audience(store, tenant_id)
    except BadInput as exc:
        raise Unsendable(str(exc)) from exc


def page_mailout(store: MailoutStore, tenant_id: TenantId, source: str, page_id: str) -> Mailout:
    """The mailout of a page, made when it is first asked for."""
    new = NewMailout(name=page_id, source=source, letter=None, source_id=page_id)
    return store.mailouts.create(tenant_id, new)


def start_test(
    store: MailoutStore,
    mailout: Mailout,
    letter: Letter | None,
    emails: Sequence[str],
    event: PageEvent | None = None,
    *,
    forced: bool = False,
) -> Mailout:
    """A mailout of its own to a few addresses, its subject marked. Any number of times."""
    new = NewMailout(
        name=TEST_MARK + mailout.name,
        source=mailout.source,
        letter=marked_as_test(letter) if letter else None,
        source_id=mailout.source_id,
        is_test=True,
        audience=tuple(emails),
        sender_id=mailout.sender_id,
    )
    test = store.mailouts.create(mailout.tenant_id, new)
    store.mailouts.start(test.id, event, forced=forced)
    return test


def marked_as_test(letter: Letter) -> Letter:
    return replace(letter, subject=TEST_MARK + letter.subject)


def _start_test(
    store: MailoutStore,
    settings: MessageSettings,
    mailout: Mailout,
    order: StartOrder,
    sender_check: SenderCheck,
) -> StartReport:
    emails = order.test_emails
    if not emails:
        raise BadInput("TEST_EMAILS is not set: say who gets test letters, e.g. TEST_EMAILS=me@example.com.")
    letter = store.mailouts.letter(mailout.id) if mailout.letter_id else None
    if letter is not None:
        try:
            check_letter(letter, settings, mailout.id)
        except BadInput as exc:
            raise Unsendable(str(exc)) from exc
    _check_sender(mailout, order, sender_check, lambda: emails)
    return StartReport(start_test(store, mailout, letter, emails, forced=order.force), len(emails))


def _check_sender(
    mailout: Mailout, order: StartOrder, sender_check: SenderCheck, recipients: Recipients
) -> None:
    """A page is read by a worker, and the worker checks the sender too: whoever asked is answered at once."""
    if mailout.letter_id is not None and not order.force:
        refuse_if_refused(sender_check, mailout.sender_id, recipients)


def _check(store: MailoutStore, settings: MessageSettings, mailout: Mailout) -> int:
    if mailout.letter_id is not None:
        letter = store.mailouts.letter(mailout.id)
        check_letter(letter, settings, mailout.id)
        check_variables(store, mailout.tenant_id, letter)
    return count_audience(store, mailout.tenant_id)


def _start_time(store: MailoutStore, mailout: Mailout, order: StartOrder) -> datetime | None:
    """When to start, if not now. Raises RefusedByRule for a time that has passed."""
    now = store.ledger.now()
    if order.send_at is not None:
        if order.send_at <= now:
            wanted = order.send_at.astimezone(UTC)
            raise RefusedByRule(f"{wanted:%Y-%m-%d %H:%M} UTC has passed: it is {now:%Y-%m-%d %H:%M} UTC.")
        return order.send_at
    # The time of a page stands on the page, which is read after the start.
    if order.at_once or mailout.send_at is None or mailout.source_id is not None:
        return None
    if mailout.send_at > now:
        return mailout.send_at
    if mailout.scheduled:
        return None
    raise RefusedByRule(
        f"The letter's own time, {mailout.send_at:%Y-%m-%d %H:%M} UTC, has passed. Say when to send it: "
        f"sendonce mailout send {mailout.id} --now, or --at and a time."
    )


def _check_exceptions(store: MailoutStore, mailout: Mailout, order: StartOrder) -> int:
    """How many people are left out. Raises RefusedByRule for a mailout that is not over or was never sent."""
    earlier = mailout.except_of if order.except_of is None else order.except_of
    for mailout_id in earlier:
        other = store.mailouts.get(order.tenant_id, mailout_id)
        if other is None or mailout_id == mailout.id:
            raise NotFound(f"There is no earlier mailout {mailout_id!r}, whose recipients could be left out.")
        if other.status in (MailoutStatus.DRAFT, MailoutStatus.READY):
            raise RefusedByRule(f"Mailout {other.id} was never sent: it has no recipients to leave out.")
        if other.status == MailoutStatus.SENDING:
            raise RefusedByRule(
                f"Mailout {other.id} is not over, so nobody knows yet whom it reaches. "
                f"Wait until it is sent, or end it: sendonce mailout cancel {other.id}"
            )
    return store.mailouts.count_excluded(mailout.tenant_id, earlier) if earlier else 0


def _start(
    store: MailoutStore, mailout: Mailout, order: StartOrder, waits_until: datetime | None, planned: int
) -> None:
    if waits_until is None:
        done = store.mailouts.start(
            mailout.id, order.event, except_of=order.except_of, forced=order.force, checked=mailout
        )
    else:
        done = store.mailouts.schedule(mailout.id, waits_until, except_of=order.except_of, forced=order.force)
    what = "mailout started" if waits_until is None else "mailout scheduled"
    if not done:
        raise _not_ready(store.mailouts.get(mailout.tenant_id, mailout.id) or mailout)
    log.info(what, extra={"fields": {"mailout": mailout.id, "planned": planned}})


def _check_status(mailout: Mailout, order: StartOrder) -> None:
    draft_may_be_tried = order.dry_run and mailout.status == MailoutStatus.DRAFT
    if mailout.status != MailoutStatus.READY and not draft_may_be_tried:
        raise _not_ready(mailout)
    if order.for_time is not None and (mailout.send_at, mailout.scheduled) != (order.for_time, True):
        raise _changed(mailout)


def _not_ready(mailout: Mailout) -> RefusedByRule:
    what = {
        MailoutStatus.DRAFT: f"is still a draft: 'sendonce mailout ready {mailout.id}' makes it ready",
        MailoutStatus.SENDING: "is already sending",
        MailoutStatus.SENT: "is already sent",
        MailoutStatus.FAILED: "has ended without success: create it anew to send it",
    }
    over = mailout.cancelled and mailout.status != MailoutStatus.SENDING
    how = "was cancelled: create it anew to send it" if over else what.get(mailout.status)
    return RefusedByRule(f"The mailout {mailout.id} {how}.") if how else _changed(mailout)


def _changed(mailout: Mailout) -> Overtaken:
    return Overtaken(f"The mailout {mailout.id} was changed a moment ago. Look at it, then start it again.")


def _check_ledger(store: MailoutStore) -> None:
    halted = store.ledger.identity().halted
    if halted is not None:
        raise LedgerRolledBack(halted)
