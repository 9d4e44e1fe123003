"""Settings in, the way out for letters, and by what names a provider knows us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from sendonce.domain.engine.senders import SenderKey
from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.adapters.aws.credentials import CredentialSource
    from sendonce.ports.engine import Transport


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


def route(settings: Settings) -> str:
    """The way of the letters and of their events: what proves that one works says nothing of another."""
    if settings.transport == "ses":
        return f"{rate_key(settings)}/{settings.ses_configuration_set}"
    return rate_key(settings)


def rate_key(settings: Settings) -> str:
    """Whose rate it is: an SES account in a region, or an SMTP submission host."""
    return f"{settings.transport}/{_account(settings)}"


def sender_key(settings: Settings) -> SenderKey:
    """Whom the provider judges: the address that letters leave from, at that account or host."""
    return SenderKey(settings.transport, _account(settings), settings.sender)


def _account(settings: Settings) -> str:
    where = {"ses": settings.aws_region, "smtp": f"{settings.smtp_host}:{settings.smtp_port}"}
    return where.get(settings.transport, "local")
