"""Follow what came back to letters to companies: whom not to write to any more, and which companies to leave.

The engine has suppressed the address already. Here its contact gives way to the company's next one, or the
whole company is left alone.
"""

from __future__ import annotations

from typing import Any

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.mailbox.causes import Bounce
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import answered_topic
from sendonce.domain.prospecting.kept_contacts import Trouble
from sendonce.domain.prospecting.written_letters import KIND
from sendonce.errors import BadInput
from sendonce.ports.prospecting import ProspectingStore

_CHUNK = 500
_REASONS = {MailKind.OPT_OUT: "asked to be left alone", MailKind.COMPLAINT: "complained"}


def follow_answers(store: ProspectingStore) -> int:
    """How many answers were followed. Killed in between, it follows one again, which changes nothing."""
    entries = store.outbox.due(answered_topic(KIND), _CHUNK)
    for entry_id, body in entries:
        _follow(store, body)
        store.outbox.done(entry_id)
    return len(entries)


def _follow(store: ProspectingStore, answer: dict[str, Any]) -> None:
    job = store.jobs.get(answer["job_id"])
    letter = store.written_letters.of_job(job.tenant_id, job.id) if job is not None else None
    if job is None or letter is None:
        return
    kind = MailKind(answer["kind"])
    if kind in _REASONS:
        store.companies.opt_out(job.tenant_id, letter.made.company_id, _REASONS[kind], store.ledger.now())
    trouble = Trouble.OPTED_OUT if kind in _REASONS else Trouble.BOUNCED
    if kind in _REASONS or (kind is MailKind.BOUNCE and answer["bounce"] == Bounce.HARD):
        try:
            store.contacts.give_up(job.tenant_id, parse_address(job.recipient).key, trouble)
        except BadInput:
            return  # an erased recipient: its contact is gone, too
