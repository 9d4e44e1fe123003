"""Settings in, readers of mailboxes out: the environment's own, and those of senders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.written_letters import KIND as PROSPECTING
from sendonce.errors import BadInput, BadSetting, Unavailable
from sendonce.settings import Settings, usual_security
from sendonce.wiring.messages import known_unsubscribe_secrets
from sendonce.wiring.senders import settings_of
from sendonce.wiring.stores import has_campaigns, has_prospects

if TYPE_CHECKING:
    from sendonce.adapters.imap.account import ImapAccount
    from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
    from sendonce.flows.engine.duties import Chore
    from sendonce.flows.engine.read_mailbox import MailboxReader, Reading
    from sendonce.flows.engine.search_sent import SentSearcher
    from sendonce.ports.store import Store

_IMAP_PORT = 993
TOLD_DOORS = (PROSPECTING,)
"""The kinds of dispatches whose doors want an entry in the outbox for what comes back to their letters.
Campaigns look at what was found by themselves."""


def read_mailboxes(settings: Settings, store: Store) -> dict[str, Reading]:
    """One round over every mailbox: what was found in each.

    Raises BadSetting where none is set, and Unavailable where one could not be read, after the others were.
    """
    from sendonce.flows.prospecting.follow_answers import follow_answers

    readers = _readers(settings, store)
    if not readers:
        raise BadSetting(
            "IMAP_HOST is not set, and no sender has an --imap-host, so there is no mailbox to read. Set it "
            "to your provider's IMAP server, e.g., IMAP_HOST=imap.example.com."
        )
    found, troubles = {}, []
    for name, reader in readers.items():
        try:
            found[name] = reader.run()
        except Unavailable as exc:
            troubles.append(exc)
    if has_prospects(store):
        follow_answers(store)
    if troubles:
        raise troubles[0]
    return found


def make_mailbox_chores(settings: Settings, store: Store) -> list[Chore]:
    """What a worker and a scheduler do where a mailbox is set, also one that is set later."""

    def read() -> None:
        if has_mailboxes(settings, store):
            read_mailboxes(settings, store)

    return [(settings.imap_read_seconds, read)]


def has_mailboxes(settings: Settings, store: Store) -> bool:
    return bool(settings.imap_host) or any(each.made.imap_host for each in store.senders.all())


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
    leases = store.leases if has_campaigns(store) else None
    return {
        each.account.name: MailboxReader(
            each.account, store, OptOutsByMail(store, each.tenant_id), rules, leases
        )
        for each in mailboxes(settings, store.senders.all())
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
        for each in mailbox_accounts(settings, store.senders.all())
        if each.at_own_host
    ]


class MailboxAccount(NamedTuple):
    """``at_own_host``: at IMAP_HOST, whose settings tell what the server does with sent letters."""

    account: ImapAccount
    sender_id: str
    tenant_id: TenantId
    at_own_host: bool = True


def mailbox_accounts(settings: Settings, senders: Iterable[SenderIdentity]) -> list[MailboxAccount]:
    """The environment's own mailbox, and those of senders."""
    found = [MailboxAccount(own_account(settings), OWN_SENDER, DEFAULT_TENANT)] if settings.imap_host else []
    for identity in senders:
        host = _mailbox_host(settings, identity.made)
        if host is None:
            continue
        try:
            sender = settings_of(settings, identity.made).settings
        except BadSetting:
            continue  # without its secret nothing can be read; its outlet tells why it is held
        account = own_account(_with_mailbox_of(sender, identity.made))
        found.append(MailboxAccount(account, identity.id, identity.tenant_id, host == settings.imap_host))
    return found


def mailboxes(settings: Settings, senders: Iterable[SenderIdentity]) -> list[MailboxAccount]:
    """Each mailbox once: several senders may sign in with one account."""
    return list({each.account.name: each for each in mailbox_accounts(settings, senders)}.values())


def _mailbox_host(settings: Settings, made: NewSender) -> str | None:
    """Of senders that have an account at our own SMTP host, the mailbox is at our own IMAP host."""
    if made.imap_host is not None:
        return made.imap_host
    at_our_host = made.transport == "smtp" and made.place == settings.smtp_host and made.username
    return settings.imap_host or None if at_our_host else None


def _with_mailbox_of(sender: Settings, made: NewSender) -> Settings:
    account = replace(sender, imap_username=sender.smtp_username, imap_password=sender.smtp_password)
    if made.imap_host is None:
        return account
    port = made.imap_port or _IMAP_PORT
    return replace(
        account,
        imap_host=made.imap_host,
        imap_port=port,
        imap_security=usual_security(made.imap_host, port),
    )


def _own_addresses(settings: Settings, store: Store) -> list[str]:
    texts = [settings.sender, settings.ses_reply_to, *(each.address for each in store.senders.all())]
    keys = []
    for text in texts:
        try:
            keys.append(parse_address(text).key)
        except BadInput:
            continue  # not set
    return keys
