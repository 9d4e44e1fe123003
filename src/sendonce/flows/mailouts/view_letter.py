"""Show a letter to its reader in the browser. No copy is kept: it is filled in again."""

from __future__ import annotations

from sendonce.domain.mailouts.web_letters import web_letter
from sendonce.domain.people.privacy import is_erased
from sendonce.errors import NotFound
from sendonce.ports.mailouts import MailoutStore


def view_letter(store: MailoutStore, job_id: str, footer_address: str) -> str | None:
    """The page; None for a letter that is not there, or whose reader asked to be erased."""
    job = store.jobs.get(job_id)
    if job is None or is_erased(job.recipient):
        return None
    try:
        letter = store.mailouts.letter(job.mailout_id)
    except NotFound:
        return None
    return web_letter(letter, job.fields, footer_address)
