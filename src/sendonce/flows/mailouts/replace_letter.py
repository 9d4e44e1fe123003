"""Give a mailout that is not sent yet another letter. Its id and its time stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

from sendonce.domain.mailouts.letter_files import WrittenLetter
from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.errors import RefusedByRule
from sendonce.flows.mailouts.create_mailout import keep_letter
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore


def replace_letter(
    store: MailoutStore, mailout: Mailout, write: Callable[[], WrittenLetter], zone: tzinfo
) -> NewMailout:
    """What was kept. ``write`` reads the letter. Raises RefusedByRule for a page, and once it was started."""
    if mailout.source_id is not None:
        raise RefusedByRule(
            "This mailout is written on a page of Notion: mend it there. It is read when it starts."
        )
    new = keep_letter(store, mailout.tenant_id, write(), zone)
    changed = store.mailouts.replace_letter(mailout.id, new)
    require_change(store, mailout, changed, "a letter that has been sent cannot be changed")
    return new
