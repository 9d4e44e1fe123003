"""Settings in, readers of mailboxes out: the environment's own, and those of senders at the same host."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.written_letters import KIND as PROSPECTING
from sendonce.errors import BadInput, BadSetting
from sendonce.settings import Settings
from sendonce.wiring.messages import known_unsubscribe_secrets
from sendonce.wiring.senders import settings_of

if TYPE_CHECKING:
    from sendonce.adapters.imap.account import ImapAccount
    from sendonce.flows.engine.duties import Chore
    from sendonce.flows.engine.read_mailbox import MailboxReader, Reading
    from sendonce.flows.engine.search_sent import SentSearcher
    from sendonce.ports.store import Store

TOLD_DOORS = (PROSPECTING,)
"""The kinds of dispatches whose doors want an entry in the outbox for what comes back to their letters.
Campaigns look at what was found by themselves."""


def read_mailboxes(settings: Settings, store: Store) -> dict[str, Reading]:
    """One round over every mailbox: what was found in each. Raises BadSetting where none is set."""
    if not settings.imap_host:
        raise BadSetting(
            "IMAP_HOST is not set, so there is no mailbox to read. Set it to your provider's IMAP server, "
            "e.g., IMAP_HOST=imap.example.com."
        )
    return {name: reader.run() for name, reader in _readers(settings, store).items()}


def make_mailbox_chores(settings: Settings, store: Store) -> list[Chore]:
    """What a worker and a scheduler do where a mailbox is set."""
    if not settings.imap_host:
        return []

    def read() -> None:
        read_mailboxes(settings, store)

    return [(settings.imap_read_seconds, read)]


def own_account(settings: Settings) -> ImapAccount:
    from sendonce.adapters.imap.account import ImapAccount, ImapSettings

    if not settings.imap_username:
        raise BadSetting("IMAP_USERNAME is not set, and IMAP_HOST needs it. Set both, or neither.")
    return ImapAccount(
        ImapSettings(
            host=settings.imap_host,
            port=settings.imap_port,
            security=cast(Literal["tls", "starttls", "plain"], settings.imap_security),
            username=settings.imap_username,
            password=settings.imap_password,
            oauth_token="" if settings.imap_password else settings.smtp_oauth_token,
            ca_file=settings.smtp_ca_file,
        )
    )


def _readers(settings: Settings, store: Store) -> dict[str, MailboxReader]:
    from sendonce.flows.engine.read_mailbox import MailboxReader, ReadingRules
    from sendonce.flows.people.opt_out_by_mail import OptOutsByMail

    rules = ReadingRules(
        folders=settings.imap_folders,
        own=frozenset(_own_addresses(settings, store)),
        secrets=known_unsubscribe_secrets(settings, store),
        doors=TOLD_DOORS,
    )
    return {
        each.account.name: MailboxReader(each.account, store, OptOutsByMail(store, each.tenant_id), rules)
        for each in _accounts(settings, store)
    }


def make_sent_searchers(settings: Settings, store: Store) -> list[SentSearcher]:
    """None, unless its owner says that the server files what it takes over SMTP."""
    if not settings.imap_host or not settings.imap_server_files_sent:
        return []
    from sendonce.flows.engine.search_sent import SearchRules, SentSearcher

    quiet = timedelta(seconds=settings.in_doubt_quiet_seconds)
    every = timedelta(seconds=settings.imap_read_seconds)
    return [
        SentSearcher(each.account, store, SearchRules(each.sender_id, quiet, every))
        for each in _accounts(settings, store)
    ]


class _Account(NamedTuple):
    account: ImapAccount
    sender_id: str
    tenant_id: TenantId


def _accounts(settings: Settings, store: Store) -> list[_Account]:
    """Of senders that have an account at our own SMTP host, the mailbox is at our own IMAP host."""
    found = [_Account(own_account(settings), OWN_SENDER, DEFAULT_TENANT)]
    for identity in store.senders.all():
        made = identity.made
        if made.transport != "smtp" or made.place != settings.smtp_host or not made.username:
            continue
        try:
            sender = settings_of(settings, made).settings
        except BadSetting:
            continue  # without its secret nothing can be read; its outlet tells why it is held
        found.append(_Account(own_account(_with_mailbox_of(sender)), identity.id, identity.tenant_id))
    return found


def _with_mailbox_of(sender: Settings) -> Settings:
    return replace(sender, imap_username=sender.smtp_username, imap_password=sender.smtp_password)


def _own_addresses(settings: Settings, store: Store) -> list[str]:
    texts = [settings.sender, settings.ses_reply_to, *(each.address for each in store.senders.all())]
    keys = []
    for text in texts:
        try:
            keys.append(parse_address(text).key)
        except BadInput:
            continue  # not set
    return keys
