"""Settings in, the doctor's probes out: beside ``wiring``, and under the same rules."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.adapters.doctor.audience import Audience, AudienceProbe
from sendonce.adapters.doctor.configuration import Configuration, SettingsProbe
from sendonce.adapters.doctor.holds import SenderHoldProbe
from sendonce.adapters.doctor.keys import KeysProbe
from sendonce.adapters.doctor.letter import LetterProbe
from sendonce.adapters.doctor.letters_gone import LettersGoneProbe
from sendonce.adapters.doctor.machine import (
    ClockProbe,
    DatabaseProbe,
    DiskProbe,
    ExposureProbe,
    LedgerProbe,
    MaildirProbe,
    StateProbe,
    StoreDoor,
    WorkersProbe,
)
from sendonce.adapters.doctor.unreadable import UnreadableEventsProbe
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.doctor.web import UnsubscribeProbe
from sendonce.domain.engine.checks import Check, Verdict, count_of, ok, stop, warning
from sendonce.domain.engine.hosts import is_loopback, is_loopback_url
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import BadInput, BadSetting
from sendonce.flows.engine.check_ledger import check_ledger
from sendonce.flows.engine.check_senders import NAME, check_senders
from sendonce.flows.engine.doctor import Probe, examine
from sendonce.flows.mailouts.find_mailout import mailout_named
from sendonce.settings import DECLARED, Settings
from sendonce.wiring.messages import (
    fingerprints_of_known_secrets,
    require_for_leaving,
    sample_message_settings,
)
from sendonce.wiring.mortality import SIGNATURE, mortality_of, require_death_proof
from sendonce.wiring.notion import letter_sources, notion_client, notion_names
from sendonce.wiring.senders import in_second_region, keys_of, own_settings, settings_of
from sendonce.wiring.stores import open_store, sqlite_file, state_directory
from sendonce.wiring.transports import aws_credentials, make_transport

if TYPE_CHECKING:
    from sendonce.adapters.doctor.sender_domain import SenderDomainProbe
    from sendonce.adapters.doctor.ses_reader import SesReader
    from sendonce.domain.engine.letters import MessageSettings
    from sendonce.domain.engine.sender_identities import SenderIdentity
    from sendonce.ports.store import Store


async def run_doctor(settings: Settings, mailout_id: str | None = None) -> list[Check]:
    """All checks of this installation, and of a mailout where one is named."""
    door = StoreDoor(lambda: open_store(settings, make=False))
    try:
        return await examine(_probes(settings, door, mailout_id))
    finally:
        door.close()


def _probes(settings: Settings, door: StoreDoor, mailout_id: str | None) -> Sequence[Probe]:
    configuration = configuration_of(settings)
    leaves = configuration.leaves

    def look(store: Store) -> None:
        check_ledger(store, mortality_of(settings, store))

    probes: list[Probe] = [
        SettingsProbe(configuration),
        DatabaseProbe(door, _shown_database(settings), needed=mailout_id is not None),
        *_exposure_probes(settings, door),
        LedgerProbe(door, look),
        WorkersProbe(door),
        *_death_probes(settings, door),
        DiskProbe(_folders(settings)),
    ]
    if not configuration.missing:
        try:
            probes += _transport_probes(settings, door, leaves=leaves)
        except BadInput as exc:
            probes.append(_Foregone("transport", str(exc)))
    probes += [SenderHoldProbe(door, keys_of(settings)(None)), _AddedSenders(settings, door)]
    probes += [_Mailboxes(settings, door), LettersGoneProbe(door)]
    probes += [*notion_probes(settings), *_search_probes(settings)]
    probes += [UnreadableEventsProbe(door)]
    probes += [KeysProbe(door, lambda store: fingerprints_of_known_secrets(settings, store))]
    probes += [UnsubscribeProbe(settings.app_base_url, leaves=leaves)]
    probes += [
        LetterProbe(
            door,
            lambda: _tried_messages(settings),
            lambda store: letter_sources(settings, store),
            lambda store, name: mailout_named(store, DEFAULT_TENANT, name),
            mailout_id,
            leaves=leaves,
        ),
        AudienceProbe(Audience(door), needed=mailout_id is not None),
    ]
    return probes


def _tried_messages(settings: Settings) -> MessageSettings:
    """As letters will carry it, but for the secret: a look makes none."""
    require_for_leaving(settings)
    return sample_message_settings(settings)


def _exposure_probes(settings: Settings, door: StoreDoor) -> list[Probe]:
    """Only a server answers to others."""
    from sendonce.adapters.stores.sql import SqlStore

    def look(store: Store) -> Sequence[str]:
        return store.exposures() if isinstance(store, SqlStore) else ()

    return [] if sqlite_file(settings) else [ExposureProbe(door, look)]


def _death_probes(settings: Settings, door: StoreDoor) -> list[Probe]:
    """Locks are tried out. That SES refuses old signatures is taken for granted."""
    try:
        require_death_proof(settings)
    except BadInput as exc:
        return [_Foregone("state", str(exc))]
    if settings.death_proof == SIGNATURE:
        return []
    return [StateProbe(door, lambda store: state_directory(settings, store), settings.state_dir)]


@dataclass(frozen=True)
class _Foregone:
    """What need not be tried: the settings contradict each other."""

    name: str
    what: str

    async def examine(self) -> Sequence[Check]:
        return [stop(self.name, self.what, "Correct the settings that it names.")]


@dataclass(frozen=True)
class _InSecondRegion:
    """A probe of the region that is in reserve: its troubles stop nobody yet."""

    probe: Probe
    region: str

    @property
    def name(self) -> str:
        return f"second.{self.probe.name}"

    async def examine(self) -> Sequence[Check]:
        return [
            replace(
                check,
                name=f"second.{check.name}",
                verdict=Verdict.WARNING if check.verdict is Verdict.STOP else check.verdict,
                what=f"In the second region {self.region}: {check.what}",
                refuses_all=False,
            )
            for check in await self.probe.examine()
        ]


@dataclass(frozen=True)
class _AddedSenders:
    """The senders beside the environment's own."""

    settings: Settings
    door: StoreDoor
    name: str = NAME

    async def examine(self) -> Sequence[Check]:
        store = await self.door.get_or_none()
        if store is None:
            return []
        return [*await in_own_thread(lambda: self._look(store)), *await self._domains(store)]

    def _look(self, store: Store) -> Sequence[Check]:
        settings = self.settings

        def trouble_of(identity: SenderIdentity) -> str | None:
            try:
                sender = settings_of(settings, identity.made)
                make_transport(sender.settings)
                in_second_region(sender)
            except BadInput as exc:
                return str(exc)
            return None

        return check_senders(store, keys_of(settings), settings.sender, trouble_of)

    async def _domains(self, store: Store) -> Sequence[Check]:
        """A domain that is not in order holds its senders and nobody else."""
        from sendonce.wiring.sender_domains import added_domains

        domains = await in_own_thread(lambda: added_domains(self.settings, store))
        found = await gather(*(probe.examine() for probe in domains.values()))
        wrong = [
            warning(NAME, f"{whose}: {check.what}", check.fix)
            for whose, checks in zip(domains, found, strict=True)
            for check in checks
            if check.verdict is not Verdict.OK
        ]
        if domains and not wrong:
            what = f"{count_of(len(domains), 'domain')} of added senders: MX, SPF, DKIM and DMARC are there."
            return [ok(NAME, what)]
        return wrong


@dataclass(frozen=True)
class _Mailboxes:
    """Where answers come to: the environment's own mailbox, and those of senders."""

    settings: Settings
    door: StoreDoor
    name: str = "mailbox"

    async def examine(self) -> Sequence[Check]:
        store = await self.door.get_or_none()
        try:
            probes = await in_own_thread(lambda: self._probes(store))
        except BadSetting as exc:
            return [warning(self.name, str(exc), "Correct the IMAP_ settings that it names.")]
        return [check for found in await gather(*(each.examine() for each in probes)) for check in found]

    def _probes(self, store: Store | None) -> list[Probe]:
        from sendonce.adapters.doctor.mailbox import MailboxProbe
        from sendonce.wiring.mailbox import mailboxes

        settings = self.settings
        read = {each.mailbox: each for each in store.mailbox_log.readings()} if store is not None else {}
        return [
            MailboxProbe(
                each.account,
                settings.imap_folders,
                files_sent=settings.imap_server_files_sent and each.at_own_host,
                reading=read.get(each.account.name),
                added=each.sender_id != OWN_SENDER,
            )
            for each in mailboxes(settings, store.senders.all() if store is not None else ())
        ]


def configuration_of(settings: Settings) -> Configuration:
    return Configuration(
        transport=settings.transport,
        missing=_missing(settings),
        leaves=letters_leave(settings),
        base_url=settings.app_base_url,
        base_url_given=settings.sources.get("APP_BASE_URL", "default") != "default",
        footer_address=settings.mail_footer_address,
        unsubscribe_secret=settings.unsubscribe_secret,
        shared_secret=settings.executor_shared_secret,
        cron_secret=settings.cron_secret,
        former_secrets=settings.unsubscribe_former_secrets,
        notion_webhook_token=settings.notion_webhook_token,
        test_emails=settings.test_emails,
        topics=settings.sns_allowed_topic_arns,
        configuration_set=settings.ses_configuration_set,
        pinned_certificate=settings.sns_signing_cert_file is not None,
        failpoint=settings.failpoint,
        unknown_names=settings.unknown_in_dotenv,
        known_names=tuple(DECLARED),
    )


def _missing(settings: Settings) -> tuple[str, ...]:
    """The variables that the transport cannot do without, by the first word of each line of the refusal."""
    try:
        settings.require_transport()
    except BadSetting as exc:
        return tuple(line.partition(" ")[0] for line in str(exc).splitlines())
    return ()


def letters_leave(settings: Settings) -> bool:
    """Whether letters leave this machine: not into files, and not to a stand-in on loopback."""
    if settings.transport == "ses":
        return not (settings.aws_endpoint_url_sesv2 and is_loopback_url(settings.aws_endpoint_url_sesv2))
    if settings.transport == "smtp":
        return not is_loopback(settings.smtp_host)
    return False


def _shown_database(settings: Settings) -> str:
    return "The SQLite database" if settings.database_url.startswith("sqlite") else "The PostgreSQL database"


def _folders(settings: Settings) -> list[Path]:
    folders = [settings.state_dir]
    file = sqlite_file(settings)
    if file is not None:
        folders.append(file.parent)
    return [*folders, settings.maildir_path] if settings.transport == "maildir" else folders


def notion_probes(settings: Settings) -> list[Probe]:
    if not settings.notion_token:
        return []
    from sendonce.adapters.doctor.notion import NotionProbe, Webhook
    from sendonce.adapters.notion.handshake import WebhookDiary
    from sendonce.adapters.notion.pace import Policy
    from sendonce.adapters.notion.setup import SetupWish

    letters, errors = notion_names(settings)
    wish = SetupWish(
        letters_id=settings.notion_letters_id,
        errors_id=settings.notion_errors_id,
        letters=letters,
        errors=errors,
    )
    webhook = Webhook(
        token=settings.notion_webhook_token,
        rehearsal=is_loopback_url(settings.notion_api_url),
        base_url=settings.app_base_url,
        diary=WebhookDiary(settings.state_dir),
    )
    quick = Policy(burst=10, tries=1, patience=7.0, request_seconds=7.0)
    return [NotionProbe(lambda: notion_client(settings, quick), wish, webhook)]


def _search_probes(settings: Settings) -> list[Probe]:
    from sendonce.adapters.doctor.search import SearchProbe
    from sendonce.wiring.searching import has_search_settings, search_provider

    return [SearchProbe(lambda: search_provider(settings))] if has_search_settings(settings) else []


def _transport_probes(settings: Settings, door: StoreDoor, *, leaves: bool) -> list[Probe]:
    if settings.transport == "ses":
        return _ses_probes(settings, door, leaves=leaves)
    if settings.transport == "smtp":
        return [ClockProbe(door), smtp_probe(settings), *_domain_probes(settings, leaves=leaves)]
    return [ClockProbe(door), MaildirProbe(settings.maildir_path)]


def _ses_probes(settings: Settings, door: StoreDoor, *, leaves: bool) -> list[Probe]:
    from sendonce.adapters.doctor.ses import SesAccountProbe

    reader = ses_reader(settings)
    probes: list[Probe] = [
        SesAccountProbe(reader, door, settings.rate_limit_per_sec),
        *ses_sender_probes(settings, reader),
    ]
    if settings.ses_events_queue_url:
        from sendonce.adapters.doctor.queue import QueueProbe
        from sendonce.wiring.events import event_queue

        probes.append(QueueProbe(event_queue(settings), settings.ses_events_queue_url))
    return probes + _second_region_probes(settings, door) + _domain_probes(settings, leaves=leaves)


def _second_region_probes(settings: Settings, door: StoreDoor) -> list[Probe]:
    """What a fail-over will need is looked at before it is needed."""
    second = in_second_region(own_settings(settings))
    if second is None:
        return []
    from sendonce.adapters.doctor.ses import SesAccountProbe

    reader = ses_reader(second.settings)
    probes: list[Probe] = [
        SesAccountProbe(reader, door, settings.rate_limit_per_sec),
        *ses_sender_probes(second.settings, reader),
    ]
    return [_InSecondRegion(probe, second.settings.aws_region) for probe in probes]


def ses_reader(settings: Settings) -> SesReader:
    from sendonce.adapters.doctor.ses_reader import SesReader

    credentials = aws_credentials(settings)
    return SesReader(settings.aws_region, credentials, settings.aws_endpoint_url_sesv2 or None)


def ses_sender_probes(settings: Settings, reader: SesReader) -> list[Probe]:
    from sendonce.adapters.doctor.ses import SesEventsProbe, SesIdentityProbe

    probes: list[Probe] = [SesIdentityProbe(reader, settings.sender)]
    if settings.ses_configuration_set:
        topics = settings.sns_allowed_topic_arns
        probes.append(SesEventsProbe(reader, settings.ses_configuration_set, topics))
    return probes


def smtp_probe(settings: Settings, fix: str | None = None) -> Probe:
    """``fix`` is for a sender that was added: it has no variables that could be corrected."""
    from sendonce.adapters.doctor.smtp import SmtpProbe

    return SmtpProbe(make_transport(settings), f"{settings.smtp_host}:{settings.smtp_port}", fix)


def _domain_probes(settings: Settings, *, leaves: bool) -> list[Probe]:
    """In a rehearsal the world's name servers are left alone, unless one was named."""
    return [domain_probe(settings)] if leaves or settings.dns_server else []


def domain_probe(settings: Settings, *, to_strangers: bool = False) -> SenderDomainProbe:
    """Of the sender that these settings describe."""
    from sendonce.adapters.doctor.sender_domain import SenderDomainProbe
    from sendonce.adapters.doctor.ses import dkim_names
    from sendonce.adapters.web.dns_records import Records

    by_ses = settings.transport == "ses"

    async def names() -> Sequence[str]:
        return await dkim_names(ses_reader(settings), settings.sender) if by_ses else ()

    records = Records(settings.dns_server or None)
    return SenderDomainProbe(
        records, settings.sender, names, by_own_name=not by_ses, to_strangers=to_strangers
    )
