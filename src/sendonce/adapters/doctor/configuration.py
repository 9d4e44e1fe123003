"""The settings: fine one by one, but would letters sent by them be lawful, believed and undoable?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sendonce.domain.engine.checks import Check, listed, ok, stop, warning
from sendonce.domain.engine.hosts import is_loopback_url
from sendonce.domain.engine.secret_strength import weakness

_MAKE_ONE = "Make one with: openssl rand -hex 32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the checks need of the settings.

    ``missing`` is what the transport cannot do without; ``leaves`` whether letters leave this machine: a
    stand-in on loopback and a maildir keep them here.
    """

    transport: str
    missing: tuple[str, ...]
    leaves: bool
    base_url: str
    base_url_given: bool
    footer_address: str
    unsubscribe_secret: str = field(repr=False)
    shared_secret: str = field(repr=False)
    cron_secret: str = field(repr=False)
    former_secrets: tuple[str, ...] = field(repr=False)
    notion_webhook_token: str = field(repr=False)
    test_emails: tuple[str, ...]
    topics: tuple[str, ...]
    configuration_set: str
    pinned_certificate: bool
    failpoint: str
    unknown_names: tuple[str, ...]
    known_names: tuple[str, ...]


class SettingsProbe:
    name = "settings"

    def __init__(self, configuration: Configuration) -> None:
        self._given = configuration

    async def examine(self) -> Sequence[Check]:
        given = self._given
        checks = [
            _transport(given),
            _footer(given),
            _unsubscribe_secret(given),
            _shared_secret(given),
            *_cron_secret(given),
            *_former_secrets(given),
            *_webhook_token(given),
            _base_url(given),
            _test_emails(given),
        ]
        if given.transport == "ses":
            checks += [_events(given), _doubt(given)]
            checks += [_pinned()] if given.pinned_certificate and given.leaves else []
        checks += [_failpoint(given)] if given.failpoint else []
        checks += [_unknown(name, given) for name in given.unknown_names]
        return checks


def _transport(given: Configuration) -> Check:
    name = "settings.transport"
    if given.missing:
        return stop(
            name,
            f"TRANSPORT is {given.transport}, and {listed(given.missing)} is not set.",
            f"Set {' and '.join(given.missing)}.",
        )
    if given.transport == "maildir":
        return warning(
            name,
            "TRANSPORT is maildir: letters become files on this machine, and nobody receives them.",
            "Fine for a trial. To send, set SES_FROM_EMAIL and AWS_REGION, or SMTP_HOST and SMTP_FROM_EMAIL.",
        )
    where = "" if given.leaves else ", to a stand-in on this machine"
    return ok(name, f"Letters leave by {given.transport}{where}.")


def _grave(given: Configuration, name: str, what: str, fix: str) -> Check:
    """A stop where nothing is sent without it; the maildir, from which nobody receives, takes letters so."""
    return warning(name, what, fix) if given.transport == "maildir" else stop(name, what, fix)


def _footer(given: Configuration) -> Check:
    name = "settings.footer"
    if given.footer_address.strip():
        return ok(name, f"Letters end with the postal address «{given.footer_address}».")
    return _grave(
        given,
        name,
        "MAIL_FOOTER_ADDRESS is not set, and the law of most countries wants a postal address in the letter.",
        "Set MAIL_FOOTER_ADDRESS, e.g., MAIL_FOOTER_ADDRESS=Example Ltd, 1 Example Street, Riga LV-1001",
    )


def _unsubscribe_secret(given: Configuration) -> Check:
    name = "settings.unsubscribe-secret"
    secret = given.unsubscribe_secret
    if not secret:
        return ok(name, "Unsubscribe links are signed with a secret that the database keeps.")
    if why := weakness(secret):
        what = f"UNSUBSCRIBE_SECRET {why}: who knows or guesses it can unsubscribe anybody."
        return stop(name, what, f"Set another before the first letter leaves. {_MAKE_ONE}")
    return ok(name, "Unsubscribe links are signed.")


def _shared_secret(given: Configuration) -> Check:
    name = "settings.shared-secret"
    secret = given.shared_secret
    if not secret:
        return warning(
            name,
            "EXECUTOR_SHARED_SECRET is not set: the HTTP service answers 401 to everybody who wants to send.",
            f"Set it, unless you send from the command line only. {_MAKE_ONE}",
        )
    if why := weakness(secret):
        what = f"EXECUTOR_SHARED_SECRET {why}: who knows or guesses it can send your mailouts."
        return stop(name, what, f"Set another. {_MAKE_ONE}")
    return ok(name, "The HTTP service asks for a secret.")


def _cron_secret(given: Configuration) -> list[Check]:
    name = "settings.cron-secret"
    if why := given.cron_secret and weakness(given.cron_secret):
        what = f"CRON_SECRET {why}: who knows or guesses it can make the service work when they like."
        return [stop(name, what, f"Set another. {_MAKE_ONE}")]
    return [ok(name, "The cron shows a secret.")] if given.cron_secret else []


def _webhook_token(given: Configuration) -> list[Check]:
    name = "settings.notion-webhook"
    if why := given.notion_webhook_token and weakness(given.notion_webhook_token):
        what = f"NOTION_WEBHOOK_TOKEN {why}: who knows or guesses it can start mailouts in Notion's name."
        return [stop(name, what, "Set it to the token that Notion sent: sendonce notion await-webhook.")]
    return []


def _former_secrets(given: Configuration) -> list[Check]:
    """Letters were signed with it, and their links must go on working: only to be known, not to be mended."""
    found = [why for secret in given.former_secrets if (why := weakness(secret))]
    return [
        warning(
            "settings.former-secrets",
            f"A secret in UNSUBSCRIBE_FORMER_SECRETS {why}: who knows or guesses it can unsubscribe anybody.",
            "Take it out when the letters that were signed with it are old.",
        )
        for why in found[:1]
    ]


def _base_url(given: Configuration) -> Check:
    name = "settings.base-url"
    url = given.base_url
    fix = "Set APP_BASE_URL to the https:// address at which the world reaches this service."
    if not given.base_url_given:
        return _grave(given, name, f"APP_BASE_URL is not set; unsubscribe links would begin with {url}.", fix)
    if not given.leaves:
        return ok(name, f"Links of letters begin with {url}.")
    if is_loopback_url(url):
        return stop(name, f"APP_BASE_URL is {url}: recipients cannot reach your own machine so.", fix)
    if not url.startswith("https://"):
        # RFC 8058 §3.1; Gmail and Yahoo show their unsubscribe button for an https link only.
        return stop(name, f"APP_BASE_URL is {url}: one-click unsubscription must be https.", fix)
    return ok(name, f"Links of letters begin with {url}.")


def _test_emails(given: Configuration) -> Check:
    name = "settings.test-emails"
    if given.test_emails:
        return ok(name, f"Test mode writes to {listed(given.test_emails)}.")
    return warning(
        name,
        "TEST_EMAILS is not set: a mailout cannot be tried on yourself first.",
        "Set TEST_EMAILS to your own addresses, by comma.",
    )


def _events(given: Configuration) -> Check:
    name = "settings.events"
    if given.topics:
        return ok(name, f"Events are believed from {listed(given.topics)}.")
    return warning(
        name,
        "SNS_ALLOWED_TOPIC_ARNS is not set: all events of SES are refused, so a bounce or a complaint "
        "stays unknown and the person is written to again.",
        "Set it to the topic that your configuration set publishes to (SNS console: Topics).",
    )


def _doubt(given: Configuration) -> Check:
    name = "settings.configuration-set"
    if given.configuration_set:
        return ok(name, f"Letters name the configuration set {given.configuration_set}.")
    return warning(
        name,
        "SES_CONFIGURATION_SET is not set: SES tells of no letter what became of it, so a letter in doubt "
        "stays in doubt until you decide.",
        "Make a configuration set with an SNS event destination and set SES_CONFIGURATION_SET to its name.",
    )


def _pinned() -> Check:
    return stop(
        "settings.sns-certificate",
        "SNS_SIGNING_CERT_FILE is set, and letters leave by the real SES: its events are signed by Amazon, "
        "so all of them would be refused, and who has the file's key could sign others.",
        "Take SNS_SIGNING_CERT_FILE out of the settings; it is for rehearsals with the sandbox.",
    )


def _failpoint(given: Configuration) -> Check:
    return stop(
        "settings.failpoint",
        f"FAILPOINT is {given.failpoint}: workers kill themselves there.",
        "Take FAILPOINT out of the settings; it is for tests.",
    )


def _unknown(unknown: str, given: Configuration) -> Check:
    close = get_close_matches(unknown.upper(), given.known_names, n=1, cutoff=0.75)
    hint = f"Did you mean {close[0]}?" if close else "Take it out if it is of no other program."
    return warning("settings.unknown", f"{unknown} in .env is none of our settings.", hint)
