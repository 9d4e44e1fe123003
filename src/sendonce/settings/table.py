"""Everything that is set, as one value, and what a transport cannot do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from sendonce.errors import BadSetting
from sendonce.settings import kinds
from sendonce.settings.campaigns import CampaignSettings
from sendonce.settings.engine import EngineSettings
from sendonce.settings.house import HouseSettings
from sendonce.settings.kinds import Declaration, SettingView, passwords_in
from sendonce.settings.letters import LetterSettings
from sendonce.settings.mailouts import MailoutSettings
from sendonce.settings.pipeline import PipelineSettings
from sendonce.settings.prospecting import ProspectingSettings

# The sender of letters that stay on this machine: RFC 2606 keeps .invalid from ever existing.
NOWHERE = "sendonce@example.invalid"

GROUPS = {
    "service": "The HTTP service",
    "database": "Database and state",
    "sending": "Sending",
    "mailouts": "Mailouts",
    "AWS": "Amazon SES and SNS",
    "SMTP": "SMTP",
    "IMAP": "The mailbox that answers come to (IMAP)",
    "Notion": "Notion",
    "searching": "Searches",
    "crawling": "Visits to companies' sites",
    "letters": "Written letters",
    "pipeline": "The pipeline of prospecting",
    "campaigns": "Campaigns",
    "alerts": "Alerts",
    "logs": "Logs",
}
"""In this order people read them, whichever room a group belongs to."""

BEING_BUILT: tuple[str, ...] = ()
"""Groups of which nothing reads the settings yet. Their names are promised already."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(
    CampaignSettings,
    PipelineSettings,
    LetterSettings,
    ProspectingSettings,
    MailoutSettings,
    EngineSettings,
    HouseSettings,
):
    """All settings in force. Made by ``load_settings``, which also works out the defaults that depend."""

    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    sender_secrets: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The variables in which the secrets of added senders may be found: those that are called so (see
    ``domain.engine.sender_identities.may_hold_a_secret``)."""
    unknown_in_dotenv: tuple[str, ...] = ()  # names in .env that are none of ours: misspelt, perhaps

    @property
    def sender(self) -> str:
        """The address that letters come from."""
        return kinds.split_mailbox(self._from)[1]

    @property
    def sender_name(self) -> str:
        """The name beside it; empty if there is none."""
        return self.ses_from_name or kinds.split_mailbox(self._from)[0]

    @property
    def _from(self) -> str:
        if self.transport == "maildir":
            return self.ses_from_email or self.smtp_from_email or NOWHERE
        return self.ses_from_email if self.transport == "ses" else self.smtp_from_email

    def require_transport(self) -> str:
        """The transport, once all that it cannot do without is set. For commands that send."""
        missing = [DECLARED[name] for name in _NEEDED[self.transport] if not getattr(self, name.lower())]
        if missing:
            lines = (
                f"{it.name} is not set, and TRANSPORT={self.transport} needs it. {it.help}"
                f" Set it, e.g., {it.name}={it.example}."
                for it in missing
            )
            raise BadSetting("\n".join(lines))
        return self.transport

    def describe(self) -> list[SettingView]:
        """Every setting with its value in force and where that came from."""
        return [
            SettingView(
                name=it.name,
                value_shown=it.show(getattr(self, it.name.lower())),
                source=self.sources.get(it.name, "default"),
                secret=it.secret,
                group=it.group,
                help=it.help,
            )
            for it in DECLARED.values()
        ]

    def secrets(self) -> tuple[str, ...]:
        """All secret values in force, for the log to redact."""
        given = [getattr(self, it.name.lower()) for it in DECLARED.values() if it.secret]
        values = [one for value in given for one in (value if isinstance(value, tuple) else (value,))]
        values += (text for name, text in self.sender_secrets.items() if _is_worth_masking(name, text))
        return tuple(value for value in values if value) + tuple(passwords_in(self.database_url))

    def __repr__(self) -> str:
        given = (f"{view.name}={view.value_shown}" for view in self.describe() if view.source != "default")
        return f"Settings({', '.join(given)})"


def _declared() -> dict[str, Declaration]:
    every = [
        Declaration(name=it.name.upper(), default=it.default, **it.metadata)
        for it in fields(Settings)
        if it.metadata
    ]
    order = list(GROUPS)
    return {it.name: it for it in sorted(every, key=lambda it: order.index(it.group))}


DECLARED = _declared()

_NEEDED = {"ses": ("SES_FROM_EMAIL", "AWS_REGION"), "smtp": ("SMTP_HOST", "SMTP_FROM_EMAIL"), "maildir": ()}


def _is_worth_masking(name: str, text: str) -> bool:
    """A short word in a variable that is called a key by chance must not disappear from every line."""
    return name.startswith("SENDER_") or len(text) >= 8
