"""A sender identity in, the settings that its letters leave by out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sendonce.domain.engine.senders import OWN_SENDER, SenderKeys
from sendonce.errors import BadSetting
from sendonce.settings import Settings, usual_security
from sendonce.wiring.transports import rate_key, route, sender_key

if TYPE_CHECKING:
    from sendonce.domain.engine.sender_identities import NewSender
    from sendonce.flows.engine.show_senders import KeysOf
    from sendonce.ports.store import Store

_SMTP_PORT = 587


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """The environment's settings with the sender's own laid over them."""

    settings: Settings
    rate_key: str
    route: str


def settings_of(settings: Settings, made: NewSender) -> SenderSettings:
    """Raises BadSetting where its secret is not found."""
    laid_over = replace(described(settings, made), **_credentials(settings, made))
    return SenderSettings(laid_over, account_of(settings, made), _route(laid_over, made))


def own_settings(settings: Settings) -> SenderSettings:
    """Those of the environment's own sender."""
    return SenderSettings(settings, rate_key(settings), route(settings))


def _route(laid_over: Settings, made: NewSender) -> str:
    """Another access key may be another account's, whose configuration set and events are its own."""
    own_key = f"/{made.username}" if made.transport == "ses" and made.secret_from else ""
    return route(laid_over) + own_key


def in_second_region(sender: SenderSettings) -> SenderSettings | None:
    """The same sender in its second region; None where it has none.

    Raises BadSetting where a stand-in is set for the first region only: a rehearsal must not write to the
    world.
    """
    settings = sender.settings
    if settings.transport != "ses" or not settings.ses_second_region:
        return None
    if settings.aws_endpoint_url_sesv2 and not settings.ses_second_endpoint_url:
        raise BadSetting(
            "SES_SECOND_ENDPOINT_URL is not set, and AWS_ENDPOINT_URL_SESV2 is. Set both, or neither: or "
            "else letters of a rehearsal would leave through the second region."
        )
    there = replace(
        settings,
        aws_region=settings.ses_second_region,
        ses_configuration_set=settings.ses_second_configuration_set or settings.ses_configuration_set,
        aws_endpoint_url_sesv2=settings.ses_second_endpoint_url,
        ses_second_region="",
    )
    shared = sender.rate_key != rate_key(settings)
    rate = f"{sender.rate_key}/{there.aws_region}" if shared else rate_key(there)
    own_key = sender.route.removeprefix(route(settings))
    return SenderSettings(there, rate, route(there) + own_key)


def account_of(settings: Settings, made: NewSender) -> str:
    """Whose rate and letters a day its own count for."""
    return made.rate_key or rate_key(described(settings, made))


def keys_of(settings: Settings) -> KeysOf:
    """Whom the provider judges, of any sender; None is the environment's own. It takes no secret."""
    own = _keys(settings)
    return lambda identity: own if identity is None else _keys(described(settings, identity.made))


def _keys(settings: Settings) -> SenderKeys:
    home = sender_key(settings)
    if settings.transport != "ses" or not settings.ses_second_region:
        return SenderKeys(str(home))
    return SenderKeys(str(home), str(home._replace(account=settings.ses_second_region)))


def sender_settings(settings: Settings, store: Store, sender_id: str) -> Settings:
    """As a letter of that sender carries them; the environment's own for one that is not known."""
    added = store.senders.get(sender_id) if sender_id != OWN_SENDER else None
    return described(settings, added.made) if added is not None else settings


def described(settings: Settings, made: NewSender) -> Settings:
    """The sender's settings but for its secret."""
    common: dict[str, Any] = {
        "transport": made.transport,
        "ses_from_email": made.address,
        "smtp_from_email": made.address,
        "ses_from_name": made.name or "",
        "ses_reply_to": made.reply_to or "",
        "rate_limit_per_sec": settings.rate_limit_per_sec if made.rate_limit is None else made.rate_limit,
        "concurrency": made.connections or settings.concurrency,
    }
    return replace(settings, **common, **_way_out(settings, made))


def _way_out(settings: Settings, made: NewSender) -> dict[str, Any]:
    if made.transport == "ses":
        return {
            "aws_region": made.place,
            "ses_configuration_set": made.configuration_set or settings.ses_configuration_set,
            "ses_second_region": made.second_region or "",
            "ses_second_configuration_set": made.second_configuration_set or made.configuration_set or "",
        }
    if made.transport == "maildir":
        return {"maildir_path": Path(made.place)}
    port = made.port or _SMTP_PORT
    security = made.security or usual_security(made.place, port)
    return {"smtp_host": made.place, "smtp_port": port, "smtp_security": security}


def _credentials(settings: Settings, made: NewSender) -> dict[str, Any]:
    secret = read_secret(settings, made.secret_from) if made.secret_from else ""
    if made.transport == "smtp":
        return {"smtp_username": made.username or "", "smtp_password": secret, "smtp_oauth_token": ""}
    if made.transport == "ses" and secret:
        keys = {"aws_access_key_id": made.username, "aws_secret_access_key": secret}
        return {**keys, "aws_session_token": "", "aws_profile": ""}
    return {}


def read_secret(settings: Settings, where: str) -> str:
    """What the variable or the file holds. The message says where it was looked for, never what was there."""
    if not where.startswith("/"):
        if where not in settings.sender_secrets:
            raise BadSetting(f"{where} is not set, and a sender's secret is to be found there. Set it.")
        return settings.sender_secrets[where]
    try:
        secret = Path(where).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as exc:
        unread = f"{where} cannot be read ({type(exc).__name__})"
        raise BadSetting(f"{unread}, and a sender's secret is to be found there.") from exc
    if not secret:
        raise BadSetting(f"{where} is empty, and a sender's secret is to be found there.")
    return secret
