"""Settings in, what every letter carries, and the secrets behind its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.tokens import secret_fingerprint
from sendonce.errors import BadSetting
from sendonce.flows.people.sign_links import signing_secret
from sendonce.settings import NOWHERE, Settings

if TYPE_CHECKING:
    from sendonce.ports.store import Store


# Signed the letters of a maildir before the ledger kept secrets of its own.
_OF_LETTERS_THAT_GO_NOWHERE = b"letters in a maildir go nowhere"


def message_settings(settings: Settings, store: Store) -> MessageSettings:
    """What every letter carries. Letters that leave the machine need a postal address and a way out."""
    require_for_leaving(settings)
    return _messages(settings, signing_secret(store.keys, settings.unsubscribe_secret.encode()))


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
