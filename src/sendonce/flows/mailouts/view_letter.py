"""Show a letter to its reader in the browser. No copy is kept: it is filled in again."""

from __future__ import annotations

from sendonce.domain.mailouts.web_letters import web_letter
from sendonce.domain.people.privacy import is_erased
from sendonce.ports.mailouts import MailoutStore


def view_letter(store: MailoutStore, job_id: str, footer_address: str) -> str | None:
    """The page; None for a letter that is not there, or whose reader asked to be erased."""
    job = store.jobs.get(job_id)
    if job is None or is_erased(job.recipient):
        return None
    dispatch = store.dispatches.get(job.dispatch_id)
    letter_id = job.letter_id or (dispatch.letter_id if dispatch else None)
    letter = store.letters.get(letter_id) if letter_id else None
    return web_letter(letter, job.fields, footer_address) if letter else None
