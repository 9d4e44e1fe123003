"""Start a mailout: check all that can be checked beforehand, then claim it in one atomic step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sendonce.domain.letters import MessageSettings
from sendonce.domain.mailouts import Mailout, MailoutStatus
from sendonce.domain.message import compile_letter
from sendonce.domain.subscribers import SubscriberStatus
from sendonce.errors import BadInput, LedgerRolledBack, NotFound, Refused
from sendonce.ports import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Which mailout to start; ``dry_run`` makes all the checks and changes nothing."""

    mailout_id: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class StartReport:
    """``planned`` is how many people the mailout is for, as of now."""

    mailout: Mailout
    planned: int


def start_mailout(
    store: Store, message_settings: Callable[[], MessageSettings], order: StartOrder
) -> StartReport:
    """Check and start. Of many callers at once one succeeds; the others get Refused.

    Raises NotFound, Refused for a mailout that is not ready, and BadInput for one that could not be sent
    as it is: then it stays as it was.
    """
    mailout = store.mailouts.get(order.mailout_id)
    if mailout is None:
        raise NotFound(
            f"There is no mailout {order.mailout_id!r}: 'sendonce mailout list' shows what there is."
        )
    _check_status(mailout, order)
    _check_ledger(store)
    compile_letter(store.mailouts.letter(mailout.id), message_settings(), mailout.id)
    planned = _audience(store, mailout)
    if not order.dry_run:
        if not store.mailouts.start(mailout.id):
            raise _not_ready(store.mailouts.get(mailout.id) or mailout)
        log.info("mailout started", extra={"fields": {"mailout": mailout.id, "planned": planned}})
    return StartReport(mailout, planned)


def _check_status(mailout: Mailout, order: StartOrder) -> None:
    draft_may_be_tried = order.dry_run and mailout.status == MailoutStatus.DRAFT
    if mailout.status != MailoutStatus.READY and not draft_may_be_tried:
        raise _not_ready(mailout)


def _not_ready(mailout: Mailout) -> Refused:
    what = {
        MailoutStatus.DRAFT: "is still a draft: make it ready first",
        MailoutStatus.SENDING: "is already sending",
        MailoutStatus.SENT: "is already sent",
        MailoutStatus.FAILED: "has ended without success: create it anew to send it",
    }
    return Refused(f"The mailout {mailout.id} {what.get(mailout.status, 'was not ready a moment ago')}.")


def _check_ledger(store: Store) -> None:
    halted = store.ledger.identity().halted
    if halted is not None:
        raise LedgerRolledBack(halted)


def _audience(store: Store, mailout: Mailout) -> int:
    active = store.subscribers.count(mailout.tenant_id).get(SubscriberStatus.ACTIVE, 0)
    if not active:
        raise BadInput(
            f"The mailout {mailout.id} has nobody to go to: there is no active subscriber. "
            "Import some with 'sendonce subscribers import'."
        )
    return active
