"""Go on with a paused mailout."""

from __future__ import annotations

from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.errors import RefusedByRule
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore


def resume_mailout(store: MailoutStore, mailout: Mailout, *, not_sent_elsewhere: bool = False) -> None:
    """Raises RefusedByRule for a mailout that is not paused, and for one that another copy of the database
    may have sent, unless an operator knows that it was ``not_sent_elsewhere``."""
    if mailout.reason == RESTORED and not not_sent_elsewhere:
        raise RefusedByRule(
            f"Mailout {mailout.id} may have been sent from another copy of this database: whoever got it "
            "would get it again. If you know that it was not sent, add --not-sent-elsewhere."
        )
    require_change(store, mailout, store.dispatches.set_paused(mailout.id, False), "it cannot be resumed")
