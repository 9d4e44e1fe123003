"""Settings in, working parts out: the only place that knows both the flows and the adapters.

Heavy modules are imported where they are needed, so that ``sendonce --help`` needs none of them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.domain import failpoints
from sendonce.domain.letters import MessageSettings
from sendonce.domain.retries import RetryPolicy
from sendonce.domain.senders import SenderKey
from sendonce.domain.tokens import secret_fingerprint
from sendonce.errors import BadInput, BadSetting, NotFound, Unavailable
from sendonce.settings import NOWHERE, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sendonce.adapters.aws.credentials import CredentialSource
    from sendonce.adapters.events.sns import SnsVerifier
    from sendonce.adapters.notion.client import NotionClient
    from sendonce.adapters.notion.names import TableNames
    from sendonce.adapters.notion.pace import Policy
    from sendonce.adapters.sources.notion import NotionLetters
    from sendonce.adapters.stores.sql import SqlStore
    from sendonce.adapters.wire_journal import StateDirectory
    from sendonce.domain.addresses import Address
    from sendonce.domain.previews import Preview
    from sendonce.flows.work import Chore, Worker
    from sendonce.ports import LetterSource, Meter, Store, Transport


# Signed the letters of a maildir before the ledger kept secrets of its own.
_OF_LETTERS_THAT_GO_NOWHERE = b"letters in a maildir go nowhere"


def open_store(settings: Settings, *, make: bool = True) -> SqlStore:
    """Without ``make`` an SQLite file that is not there is NotFound, and stays so."""
    from sendonce.adapters.stores.sql import open_store

    file = sqlite_file(settings)
    if not make and file is not None and not file.exists():
        raise NotFound(
            f"There is no database at {file} yet: 'sendonce subscribers import' or 'sendonce db upgrade' "
            "makes it. If you have one elsewhere, go to its folder or set DATABASE_URL."
        )
    return open_store(settings.database_url, settings.soft_bounce_limit, settings.database_schema or None)


def sqlite_file(settings: Settings) -> Path | None:
    if not settings.database_url.startswith("sqlite"):
        return None
    return Path(settings.database_url.partition("?")[0].removeprefix("sqlite:///"))


def state_directory(settings: Settings, store: Store) -> StateDirectory:
    from sendonce.adapters.wire_journal import StateDirectory

    return StateDirectory(settings.state_dir, store.ledger.identity().ledger_id)


def aws_credentials(settings: Settings) -> CredentialSource:
    from sendonce.adapters.aws.credentials import credential_source

    return credential_source(
        settings.aws_access_key_id or None,
        settings.aws_secret_access_key or None,
        settings.aws_session_token or None,
        settings.aws_profile or None,
    )


def make_transport(settings: Settings) -> Transport:
    name = settings.require_transport()
    if name == "ses":
        from sendonce.adapters.transports.ses import SesSettings, SesTransport

        ses = SesSettings(
            region=settings.aws_region,
            credentials=aws_credentials(settings),
            configuration_set=settings.ses_configuration_set or None,
            endpoint=settings.aws_endpoint_url_sesv2 or None,
            read_timeout=settings.ses_timeout_seconds,
        )
        return SesTransport(ses)
    if name == "smtp":
        from sendonce.adapters.transports.smtp import SmtpSettings, SmtpTransport

        smtp = SmtpSettings(
            host=settings.smtp_host,
            port=settings.smtp_port,
            security=cast(Literal["starttls", "tls", "plain"], settings.smtp_security),
            username=settings.smtp_username or None,
            password=settings.smtp_password or None,
            oauth_token=settings.smtp_oauth_token or None,
            messages_per_connection=settings.smtp_messages_per_connection,
            ca_file=settings.smtp_ca_file,
        )
        return SmtpTransport(smtp)
    from sendonce.adapters.transports.maildir import MaildirTransport

    return MaildirTransport(settings.maildir_path)


def message_settings(settings: Settings, store: Store) -> MessageSettings:
    """What every letter carries. Letters that leave the machine need a postal address and a way out."""
    require_for_leaving(settings)
    return _messages(settings, settings.unsubscribe_secret.encode() or store.keys.make_link_secret())


def sample_message_settings(settings: Settings) -> MessageSettings:
    """The same, with something in place of what is not set yet: to try a letter before all is set up."""
    return _messages(settings, b"a letter that is only tried")


def _messages(settings: Settings, secret: bytes) -> MessageSettings:
    sender = settings.sender or NOWHERE
    return MessageSettings(
        from_address=sender,
        from_name=settings.sender_name or None,
        reply_to=settings.ses_reply_to or None,
        footer_address=settings.mail_footer_address,
        base_url=settings.app_base_url,
        message_id_domain=sender.rpartition("@")[2],
        unsubscribe_secret=secret,
        language=settings.mail_language or None,
        # SES writes a Feedback-ID of its own.
        feedback_id=settings.transport != "ses",
        view_links=settings.view_in_browser,
    )


def require_for_leaving(settings: Settings) -> None:
    """Raises BadSetting for what no letter may leave this machine without."""
    if settings.transport == "maildir":
        return
    missing = {
        "MAIL_FOOTER_ADDRESS": "the law wants your postal address in every letter",
        "APP_BASE_URL": "unsubscribe links begin with it",
    }
    lacking = [
        f"{name} is not set, and letters that leave this machine need it: {why}."
        for name, why in missing.items()
        if settings.sources.get(name, "default") == "default"
    ]
    if lacking:
        raise BadSetting("\n".join(lacking))


def known_unsubscribe_secrets(settings: Settings, store: Store) -> tuple[bytes, ...]:
    """Whose links are good: the secret of the settings, the former ones, and those that the ledger keeps."""
    given = [settings.unsubscribe_secret, *settings.unsubscribe_former_secrets]
    return (*(secret.encode() for secret in given if secret), *store.keys.link_secrets())


def fingerprints_of_known_secrets(settings: Settings, store: Store) -> frozenset[str]:
    """Of the secrets whose letters can still be unsubscribed from, or need not be."""
    known = (_OF_LETTERS_THAT_GO_NOWHERE, *known_unsubscribe_secrets(settings, store))
    return frozenset(map(secret_fingerprint, known))


def require_for_work(settings: Settings, store: Store) -> None:
    """What a worker of this process cannot do without, before a mailout is started that it is to carry out:
    or else the mailout is sending, and nobody sends it."""
    make_transport(settings)
    state_directory(settings, store).require_writable()


def make_worker(settings: Settings, store: Store, meter: Meter, name: str = "") -> Worker:
    from sendonce.adapters.transports.ses import SesTransport
    from sendonce.flows.resolve_doubts import DoubtPolicy
    from sendonce.flows.work import Worker, WorkOptions
    from sendonce.wiring_events import make_event_puller
    from sendonce.wiring_sender_check import PATIENTLY, ProviderCheck

    arm_failpoint(settings)
    transport = make_transport(settings)
    letters = message_settings(settings, store)
    store.keys.note_used(secret_fingerprint(letters.unsubscribe_secret))
    options = WorkOptions(
        name=name or settings.worker_name or f"{socket.gethostname()}-{os.getpid()}",
        rate_limit=settings.rate_limit_per_sec,
        rate_key=_rate_key(settings),
        sender_key=str(sender_key(settings)),
        route=_route(settings),
        connections=settings.concurrency,
        batch_size=settings.batch_size,
        retry=RetryPolicy(settings.max_tries, settings.retry_base_seconds, settings.retry_max_seconds),
        doubts=DoubtPolicy(
            quiet=doubt_quiet(settings),
            signature_window=timedelta(seconds=settings.ses_signature_window_seconds),
            canary_sender=settings.sender if settings.doubt_canary else None,
        ),
        bury_every=settings.bury_interval_seconds,
        account_shared=settings.ses_account_shared,
    )
    return Worker(
        store=store,
        transport=transport,
        witness=transport if isinstance(transport, SesTransport) else None,
        state=state_directory(settings, store),
        message_settings=letters,
        options=options,
        meter=meter,
        chores=make_chores(settings, store),
        puller=make_event_puller(settings, store, meter),
        sender_check=ProviderCheck(settings, PATIENTLY),
    )


def doubt_quiet(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.in_doubt_quiet_seconds)


def _route(settings: Settings) -> str:
    """The way of the letters and of their events: what proves that one works says nothing of another."""
    if settings.transport == "ses":
        return f"{_rate_key(settings)}/{settings.ses_configuration_set}"
    return _rate_key(settings)


def _rate_key(settings: Settings) -> str:
    """Whose rate it is: an SES account in a region, or an SMTP submission host."""
    return f"{settings.transport}/{_account(settings)}"


def sender_key(settings: Settings) -> SenderKey:
    """Whom the provider judges: the address that letters leave from, at that account or host."""
    return SenderKey(settings.transport, _account(settings), settings.sender)


def _account(settings: Settings) -> str:
    where = {"ses": settings.aws_region, "smtp": f"{settings.smtp_host}:{settings.smtp_port}"}
    return where.get(settings.transport, "local")


def arm_failpoint(settings: Settings) -> None:
    """FAILPOINT=name:n makes the process kill itself there, for crash tests."""
    if not settings.failpoint:
        return
    name, _, count = settings.failpoint.partition(":")
    if name not in failpoints.NAMES or not (count or "1").isdigit():
        known = ", ".join(failpoints.NAMES)
        raise BadSetting(f"FAILPOINT is '{settings.failpoint}': it must be name:n with a name of {known}.")
    failpoints.arm(name, int(count or 1), lambda: os.kill(os.getpid(), signal.SIGKILL))


def notion_client(settings: Settings, policy: Policy | None = None) -> NotionClient:
    from sendonce.adapters.notion.client import NotionClient

    if not settings.notion_token:
        raise BadSetting("NOTION_TOKEN is not set: make an integration at notion.so/my-integrations.")
    return NotionClient(settings.notion_token, settings.notion_api_url, policy=policy)


def notion_names(settings: Settings) -> tuple[TableNames, TableNames]:
    """What the columns and options of «Письма» and «Ошибки» are called."""
    from sendonce.adapters.notion.names import own_names

    return own_names(json.loads(settings.notion_names or "{}"))


def make_chores(settings: Settings, store: Store) -> list[Chore]:
    """What a worker does now and then beside sending."""
    return [(2.0, lambda: write_due_reports(settings, store)), *make_notion_chores(settings, store)]


def write_due_reports(settings: Settings, store: Store) -> None:
    from sendonce.flows.write_reports import write_reports

    write_reports(store, lambda mailout_id: write_report(settings, store, mailout_id))


def write_report(settings: Settings, store: Store, mailout_id: str) -> Path:
    """Every recipient of a mailout and what became of the letter, as a CSV file beside the state.

    The file appears when it is whole: whoever writes it may be stopped at any time.
    """
    from sendonce.adapters.reports_csv import CsvTable
    from sendonce.flows.report_mailout import COLUMNS, recipients, row_of

    path = _report_file(settings, mailout_id)
    draft = path.with_name(f".{mailout_id}-{uuid.uuid4()}.csv")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with CsvTable(draft, COLUMNS, even_if_empty=True) as table:
                for recipient in recipients(store.jobs, mailout_id):
                    table.write(row_of(recipient))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as exc:
        raise BadInput(f"The report {path} cannot be written: {exc.strerror}. Set STATE_DIR.") from exc
    return path


def rewrite_reports_to(settings: Settings, store: Store, address: Address) -> int:
    """Write anew the report files of this machine that have a line for a person, as after an erasure; how
    many there were. Raises Unavailable with the files that it could not write."""
    mailouts = {letter.job.mailout_id for letter in store.people.file_of(address).letters}
    written, left = 0, []
    for mailout_id in sorted(mailouts):
        path = _report_file(settings, mailout_id)
        try:
            if path.exists():
                write_report(settings, store, mailout_id)
                written += 1
        except (BadInput, OSError):
            left.append(str(path))
    if left:
        raise Unavailable(
            "The database has nothing of the person any more, but these reports cannot be written anew and "
            f"may still hold the address: {', '.join(left)}. Delete them, or erase again as their owner."
        )
    return written


def _report_file(settings: Settings, mailout_id: str) -> Path:
    return settings.state_dir / "reports" / f"{mailout_id}.csv"


def notion_letters(settings: Settings, store: Store, client: NotionClient) -> NotionLetters:
    """The letters that are written in Notion."""
    from sendonce.adapters.sources.notion import NotionLetters

    table, names = settings.notion_letters_id, notion_names(settings)[0]
    zone = time_zone(settings)
    return NotionLetters(client, store.assets, settings.app_base_url, table, names, zone)


def write_preview(settings: Settings, mailout_id: str, preview: Preview) -> Path:
    from sendonce.adapters.preview_page import write_preview

    return write_preview(settings.state_dir / "previews", mailout_id, preview)


def letter_sources(settings: Settings, store: Store) -> Mapping[str, LetterSource]:
    """Where letters that are not in a file are read."""
    if not settings.notion_token:
        return {}
    return {"notion": notion_letters(settings, store, notion_client(settings))}


def make_notion_chores(settings: Settings, store: Store) -> list[Chore]:
    """Pages are read, and told what became of them."""
    if not settings.notion_token:
        return []
    from sendonce.adapters.notion.reporter import NotionReporter
    from sendonce.adapters.notion.reports import NotionReports
    from sendonce.flows.explain_progress import explain_progress
    from sendonce.flows.prepare_mailouts import Preparer
    from sendonce.wiring_sender_check import PATIENTLY, ProviderCheck

    client = notion_client(settings)
    letters, errors = notion_names(settings)
    source = notion_letters(settings, store, client)
    check = ProviderCheck(settings, PATIENTLY)
    preparer = Preparer(
        store, {"notion": source}, lambda: message_settings(settings, store), settings.test_emails, check
    )
    chores: list[Chore] = [(0.5, preparer.run)]
    if settings.notion_letters_id:
        reports = NotionReports(
            client, settings.notion_letters_id, settings.notion_errors_id, letters, errors
        )
        key = str(sender_key(settings))
        reporter = NotionReporter(
            store,
            reports,
            with_errors=bool(settings.notion_errors_id),
            explain=lambda mailout, books: explain_progress(store, mailout, books, key),
            zone=time_zone(settings),
        )
        chores.append((2.0, reporter.run))
    return chores


def time_zone(settings: Settings) -> ZoneInfo:
    """The clock that people of this house go by."""
    try:
        return ZoneInfo(settings.app_timezone)
    except (ZoneInfoNotFoundError, OSError) as exc:
        raise BadSetting(
            f"APP_TIMEZONE is {settings.app_timezone!r}, which this machine does not know: "
            "install its tzdata package, or set another."
        ) from exc


def sns_verifier(settings: Settings) -> SnsVerifier:
    from sendonce.adapters.events.sns import SnsVerifier

    return SnsVerifier(frozenset(settings.sns_allowed_topic_arns), settings.sns_signing_cert_file)
