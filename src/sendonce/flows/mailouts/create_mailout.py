"""Make a mailout of a letter. Nothing is sent yet."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo

from sendonce.domain.engine.checks import people
from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.engine.sender_identities import find_sender
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.letter_files import WrittenLetter
from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.ports.mailouts import MailoutStore


def create_mailout(
    store: MailoutStore,
    tenant_id: TenantId,
    written: WrittenLetter,
    zone: tzinfo,
    *,
    draft: bool = False,
    sender: str | None = None,
) -> tuple[Mailout, NewMailout]:
    """The mailout, and what it was made of, with all that its author should know. A page that has a mailout
    already keeps it. ``sender`` is the address or the id of an added one, None the environment's own."""
    sender_id = find_sender(store.senders.all(), sender).id if sender is not None else OWN_SENDER
    new = replace(keep_letter(store, tenant_id, written, zone), draft=draft, sender_id=sender_id)
    return store.mailouts.create(tenant_id, new), new


def keep_letter(store: MailoutStore, tenant_id: TenantId, written: WrittenLetter, zone: tzinfo) -> NewMailout:
    """Keep the images of a letter, and warn where the same words went out before. Times are shown by the
    clock of ``zone``."""
    for asset in written.assets:
        store.assets.put(asset.sha256, asset.content_type, asset.content)
    new = written.new
    warning = _twin_warning(store, tenant_id, new, zone)
    return replace(new, warnings=(*new.warnings, warning)) if warning else new


def _twin_warning(store: MailoutStore, tenant_id: TenantId, new: NewMailout, zone: tzinfo) -> str | None:
    """Its author may have forgotten."""
    twins = store.mailouts.twins(tenant_id, new.letter) if new.letter else []
    if not twins or twins[0].started_at is None:
        return None
    latest = twins[0]
    when = shown_moment(twins[0].started_at, zone)
    count = store.jobs.books(latest.id).sent
    return (
        f"This letter went out already: mailout {latest.id}, {when}, to {people(count)}. To write to the "
        f"others only: sendonce mailout send ID --except-recipients-of {latest.id}"
    )
