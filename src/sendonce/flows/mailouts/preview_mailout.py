"""Show a mailout's letter as a reader would get it. Nothing is sent, and nothing is written down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.mailouts.previews import Preview
from sendonce.domain.people.subscribers import Subscriber, SubscriberStatus
from sendonce.errors import BadInput, NotFound, Unsendable
from sendonce.ports.mailouts import LetterSource, MailoutStore

# Never a job: the link that is signed with it unsubscribes nobody.
NO_JOB = "00000000-0000-7000-8000-000000000000"
NOBODY = "reader@example.com"


def preview_mailout(
    store: MailoutStore,
    settings: MessageSettings,
    sources: Mapping[str, LetterSource],
    mailout: Mailout,
    email: str | None = None,
) -> Preview:
    """As the subscriber ``email`` would get it, or as the first on the list. Raises NotFound for another."""
    letter = _letter(store, sources, mailout)
    reader = _reader(store, mailout.tenant_id, email)
    recipient = reader.email if reader else NOBODY
    fields = {**reader.attributes, **({"name": reader.name} if reader.name else {})} if reader else {}
    try:
        compiled = compile_letter(letter, settings, mailout.id)
        content = compiled.build(NO_JOB, recipient, fields, datetime.now(UTC))
    except BadInput as exc:
        raise Unsendable(f"The letter cannot be sent to {recipient} as it is: {exc}") from exc
    return _shown(recipient, content)


def _letter(store: MailoutStore, sources: Mapping[str, LetterSource], mailout: Mailout) -> Letter:
    if mailout.letter_id is not None or mailout.source_id is None:
        return store.mailouts.letter(mailout.id)
    source = sources.get(mailout.source)
    if source is None:
        raise BadInput(f"Letters from {mailout.source!r} cannot be read here: set NOTION_TOKEN.")
    return source.fetch(mailout.source_id).letter


def _reader(store: MailoutStore, tenant_id: TenantId, email: str | None) -> Subscriber | None:
    if email is None:
        return next(iter(store.subscribers.all(tenant_id, status=SubscriberStatus.ACTIVE, limit=1)), None)
    found = store.subscribers.find(tenant_id, parse_address(email))
    if found is None:
        raise NotFound(f"{email[:100]!r} is no subscriber: 'sendonce subscribers list' shows who is.")
    return found


def _shown(recipient: str, content: bytes) -> Preview:
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    headers = tuple((name, str(value)) for name, value in message.items())
    return Preview(
        recipient,
        str(message["Subject"]),
        headers,
        plain.get_content() if plain else "",
        html.get_content() if html else "",
    )
