"""The settings: every one declared once, in the table that is the class ``Settings``.

This is the only file that reads the environment. The variable of a field is its name in capitals
(``rate_limit_per_sec`` is ``RATE_LIMIT_PER_SEC``). ``.env.example``, the reference page,
``sendonce settings`` and the error messages are all made from the declarations below.

The process environment wins over ``.env``; a value that is empty means the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sendonce import setting_kinds as kinds
from sendonce.domain.soft_bounces import SOFT_BOUNCE_LIMIT
from sendonce.errors import BadSetting
from sendonce.setting_kinds import (
    Declaration,
    SettingView,
    Unfit,
    display,
    passwords_in,
    secret,
    secret_list,
    setting,
    whole,
)

if TYPE_CHECKING:
    from dotenv.parser import Original

LOG_LEVEL = kinds.choice("debug", "info", "warning", "error", "critical", warn="warning")
# The sender of letters that stay on this machine: RFC 2606 keeps .invalid from ever existing.
NOWHERE = "sendonce@example.invalid"


# ruff: noqa: RUF009 - setting() and secret() make dataclass fields
# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """All settings in force. Made by ``load_settings``, which also works out the defaults that depend."""

    # The service
    executor_shared_secret: str = secret("service",
        "The token that callers of the HTTP service must show. Make one: openssl rand -hex 32.")
    app_base_url: str = setting("service", kinds.url, "",
        "Where the world reaches this service; unsubscribe links and images begin with it. Your own "
        "domain name.", "https://mail.example.com", otherwise="http://127.0.0.1 with PORT")
    host: str = setting("service", kinds.host, "127.0.0.1",
        "The address to listen on. 0.0.0.0 inside a container or where no proxy stands in front.")
    port: int = setting("service", kinds.port, 3000, "The port to listen on; 0 takes a free one.")
    cron_secret: str = secret("service",
        "The token that a serverless cron shows at /tick. Vercel sends the one you set in the project's "
        "environment.")
    metrics_port: int = setting("service", kinds.port, 0,
        "Where a standalone worker serves /metrics, with EXECUTOR_SHARED_SECRET as bearer token. "
        "Without that secret it listens on 127.0.0.1 only. 0 is off.", "9464")
    # The database
    database_url: str = setting("database", kinds.database_url, "sqlite:///sendonce.db",
        "The ledger: an SQLite file, relative to the working directory, or PostgreSQL. On Supabase: "
        "Connect, Transaction pooler.", "postgresql://user:password@db.example.com:5432/sendonce")
    database_schema: str = setting("database", kinds.database_schema, "",
        "The PostgreSQL schema that holds the tables; 'sendonce db upgrade' makes it. Set it once, before "
        "the first upgrade.", "sendonce", otherwise="the schema that the role uses, usually public")
    supabase_url: str = setting("database", kinds.url, "",
        "Known from older setups; DATABASE_URL is needed beside it. Supabase: Project Settings, API.",
        "https://abcdefgh.supabase.co")
    supabase_service_role_key: str = secret("database",
        "Known from older setups and not used while DATABASE_URL is. Supabase: Project Settings, API "
        "keys.")
    state_dir: Path = setting("database", kinds.path, Path(),
        "Locks and journals of the workers of this machine; must be on a local disk and outlive restarts.",
        "/var/lib/sendonce", otherwise="$XDG_STATE_HOME/sendonce, or ~/.local/state/sendonce")
    # Sending
    transport: str = setting("sending", kinds.choice("ses", "smtp", "maildir"), "",
        "How letters leave. maildir writes files: nothing leaves the machine.",
        "maildir", otherwise="ses if SES_FROM_EMAIL is set, smtp if SMTP_HOST is, maildir if neither is")
    rate_limit_per_sec: int = setting("sending", whole(0), 6,
        "Letters a second, of all processes that share the database together; 0 sets no limit of ours. "
        "SES console: Account dashboard, Maximum send rate.")
    concurrency: int = setting("sending", whole(1, 1000), 1,
        "Connections to the provider; as many letters can be in doubt after a crash.")
    batch_size: int = setting("sending", whole(1, 10_000), 50,
        "The most letters of a group. At most two groups are claimed at a time.")
    max_tries: int = setting("sending", whole(1, 1000), 6,
        "How often a letter is tried that the provider puts off, before it is dead.")
    retry_base_seconds: float = setting("sending", kinds.seconds(zero=True), 60.0,
        "The wait before the second try; it doubles from try to try.")
    retry_max_seconds: float = setting("sending", kinds.seconds(zero=True), 14400.0,
        "The longest wait between two tries.")
    in_doubt_quiet_seconds: float = setting("sending", kinds.seconds(zero=True), 1800.0,
        "How long after a proven death no evidence must have come before a letter in doubt may count as "
        "not taken.")
    doubt_canary: bool = setting("sending", kinds.flag, True,
        "May one letter go to Amazon's mailbox simulator to see that the event route works, before doubt "
        "is settled by absence.")
    bury_interval_seconds: float = setting("sending", kinds.seconds(zero=False), 10.0,
        "How often a worker looks for dead workers of its machine.")
    worker_name: str = setting("sending", kinds.text, "",
        "The name of this worker in lists and logs.",
        "mailer-1", otherwise="the host name and the process id")
    maildir_path: Path = setting("sending", kinds.path, Path("maildir"),
        "Where the maildir transport puts letters.")
    dns_server: str = setting("sending", kinds.name_server, "",
        "The name server that doctor asks about your domain, for networks where only one is allowed.",
        "192.0.2.53:53", otherwise="the system's")
    failpoint: str = setting("sending", kinds.text, "",
        "For tests only: the point in the code where the process kills itself.", "settle.before")
    # Mailouts
    mail_footer_address: str = setting("mailouts", kinds.text, "",
        "The postal address at the foot of every letter; the law of most countries asks for one.",
        "Example Ltd, 1 Example Street, Riga LV-1001")
    soft_bounce_limit: int = setting("mailouts", whole(0, 1000), SOFT_BOUNCE_LIMIT,
        "After so many letters in a row that came back for a passing reason (a full mailbox, say) a "
        "subscriber is bounced; 0 is never.")
    mail_language: str = setting("mailouts", kinds.choice("ru", "en"), "",
        "The language of footers and of the unsubscribe page.", "ru", otherwise="that of the letter")
    list_name: str = setting("mailouts", kinds.text, "",
        "What your readers know your letters by; the unsubscribe page names it.", "The Bakery",
        otherwise="the From name, or the domain of the From address")
    test_emails: tuple[str, ...] = setting("mailouts", kinds.several(kinds.email), (),
        "Who gets a mailout in test mode. Your own addresses.", "me@example.com,colleague@example.com")
    unsubscribe_secret: str = secret("mailouts",
        "Signs unsubscribe links. Leave it empty: one is made and kept in the database. If you set your own "
        "(openssl rand -hex 32), keep it: links in letters already sent work as long as it is here or in "
        "UNSUBSCRIBE_FORMER_SECRETS.")
    unsubscribe_former_secrets: tuple[str, ...] = secret_list("mailouts",
        "What UNSUBSCRIBE_SECRET was before, comma-separated: links signed with them still work. See the "
        "how-to about rotating keys.")
    view_in_browser: bool = setting("mailouts", kinds.flag, False,
        "Whether letters link to a page that shows them as their reader got them. Whoever has the link sees "
        "that page.")
    unsubscribe_confirm: bool = setting("mailouts", kinds.flag, False,
        "Whether the unsubscribe page asks first, for lists plagued by link scanners.")
    # AWS
    aws_region: str = setting("AWS", kinds.region, "",
        "The region of your SES identity. SES console: top right corner.",
        "eu-central-1", fallback="AWS_DEFAULT_REGION")
    aws_default_region: str = setting("AWS", kinds.region, "",
        "Taken where AWS_REGION is not set.", "eu-central-1")
    aws_access_key_id: str = secret("AWS",
        "IAM console: Users, Security credentials. Leave empty on a machine with a role.")
    aws_secret_access_key: str = secret("AWS", "Shown once, when the access key is made.")
    aws_session_token: str = secret("AWS", "Comes with temporary keys: aws sts assume-role, aws sso login.")
    aws_profile: str = setting("AWS", kinds.text, "",
        "A profile of ~/.aws/config to take the credentials from: aws configure list-profiles.", "mailer")
    aws_endpoint_url: str = setting("AWS", kinds.url, "",
        "A stand-in for all of AWS: the address of an emulator.", "http://127.0.0.1:4566")
    aws_endpoint_url_sesv2: str = setting("AWS", kinds.url, "",
        "A stand-in for SES: the sandbox prints its address.",
        "http://127.0.0.1:4566", fallback="AWS_ENDPOINT_URL")
    aws_endpoint_url_sns: str = setting("AWS", kinds.url, "",
        "A stand-in for SNS: the sandbox prints its address.",
        "http://127.0.0.1:4566", fallback="AWS_ENDPOINT_URL")
    ses_from_email: str = setting("AWS", kinds.mailbox, "",
        "The sender, with a name or without. An address or domain that is verified in SES console: "
        "Identities.", "The Bakery <news@example.com>")
    ses_from_name: str = setting("AWS", kinds.text, "",
        "The sender's name, whichever way letters leave; a letter may have another in its front matter.",
        "The Bakery", otherwise="the name in SES_FROM_EMAIL or SMTP_FROM_EMAIL")
    ses_reply_to: str = setting("AWS", kinds.email, "",
        "Where answers go; empty: to the sender. Any mailbox you read.", "hello@example.com")
    ses_configuration_set: str = setting("AWS", kinds.text, "",
        "The configuration set that publishes events to SNS. SES console: Configuration sets.", "sendonce")
    ses_account_shared: bool = setting("AWS", kinds.flag, False,
        "Whether other programs, or other databases of sendonce, send from this account and region. If not, "
        "a worker compares Amazon's count of the last 24 hours with the ledger's when it starts.")
    ses_timeout_seconds: float = setting("AWS", kinds.seconds(zero=False), 10.0,
        "How long SES may take to answer before a letter is in doubt.")
    ses_signature_window_seconds: float = setting("AWS", kinds.seconds(zero=False), 1200.0,
        "After this time AWS is sure to refuse a request signed earlier; shorter only against the "
        "sandbox.")
    sns_allowed_topic_arns: tuple[str, ...] = setting("AWS", kinds.several(kinds.topic_arn), (),
        "The topics whose events are believed; empty: /ses-events refuses everything. SNS console: "
        "Topics.", "arn:aws:sns:eu-central-1:123456789012:ses-events")
    ses_events_queue_url: str = setting("AWS", kinds.url, "",
        "An SQS queue that is subscribed to the topic; workers fetch the events from it, and no public "
        "address is needed. SQS console: the queue's page.",
        "https://sqs.eu-central-1.amazonaws.com/123456789012/ses-events")
    sns_signing_cert_file: Path | None = setting("AWS", kinds.path, None,
        "A certificate to check SNS signatures with instead of Amazon's; the sandbox writes one.",
        "sandbox/sns.pem")
    # SMTP
    smtp_host: str = setting("SMTP", kinds.host, "",
        "Your mail provider's outgoing server, from its help pages.", "smtp.example.com")
    smtp_port: int = setting("SMTP", whole(1, 65535), 587,
        "Its port: 587 with STARTTLS, 465 with TLS from the start.")
    smtp_security: str = setting("SMTP", kinds.choice("starttls", "tls", "plain"), "",
        "How the connection is protected.",
        "starttls", otherwise="tls on port 465, plain on a loopback host, else starttls")
    smtp_username: str = setting("SMTP", kinds.text, "",
        "The account; often the whole address. From your mail provider.", "news@example.com")
    smtp_password: str = secret("SMTP",
        "Its password, or the application password if the account has two-step sign-in. From your mail "
        "provider.")
    smtp_oauth_token: str = secret("SMTP",
        "An OAuth access token for XOAUTH2, instead of a password. From your mail provider.")
    smtp_from_email: str = setting("SMTP", kinds.mailbox, "",
        "The sender, with a name or without. An address this account may send from.",
        "The Bakery <news@example.com>")
    smtp_ca_file: Path | None = setting("SMTP", kinds.path, None,
        "Certificates to trust instead of the system's, for a server of your own.", "/etc/ssl/our-ca.pem")
    smtp_messages_per_connection: int = setting("SMTP", whole(1), 100,
        "After so many letters a new connection is made; some servers set a limit.")
    imap_host: str = setting("SMTP", kinds.host, "",
        "The same account's IMAP server: letters in its Sent folder settle doubt. From your mail "
        "provider.", "imap.example.com")
    # Notion
    notion_token: str = secret("Notion",
        "notion.so/my-integrations: New integration, Internal integration secret.")
    notion_letters_id: str = setting("Notion", kinds.text, "",
        "The «Письма» database: 32 digits in its link, or what sendonce notion setup prints.",
        "0123456789abcdef0123456789abcdef")
    notion_errors_id: str = setting("Notion", kinds.text, "",
        "The «Ошибки» database, found likewise.", "0123456789abcdef0123456789abcdef")
    notion_webhook_token: str = secret("Notion",
        "The verification token of the integration's webhook: sendonce notion await-webhook prints it.")
    notion_names: str = setting("Notion", kinds.json_object, "",
        "Your own names of columns and options, where they are not ours: a JSON object, as in the how-to "
        "about Notion.", '{"status": "State", "status.ready": "Go"}')
    notion_api_url: str = setting("Notion", kinds.url, "https://api.notion.com",
        "Where Notion's API is; a stand-in prints its own address.")
    # Prospecting
    yandex_cloud_folder_id: str = setting("prospecting", kinds.text, "",
        "console.yandex.cloud: the folder's page, Identifier.", "b1g0123456789abcdefg")
    yandex_cloud_api_key: str = secret("prospecting",
        "console.yandex.cloud: Service accounts, Create API key, scope yc.search-api.execute.")
    yandex_cloud_iam_token: str = secret("prospecting",
        "A token for half a day instead of a key: yc iam create-token.")
    yandex_cloud_sa_key_file: Path | None = setting("prospecting", kinds.path, None,
        "A service account's authorized key: yc iam key create --output key.json.", "key.json")
    yandex_cloud_sa_key_json: str = secret("prospecting",
        "The content of that file, where there is no disk to put it on.", kinds.json_object)
    yandex_search_url: str = setting("prospecting", kinds.url, "https://searchapi.api.cloud.yandex.net",
        "Where the Search API is; a stand-in prints its own address.")
    yandex_operation_url: str = setting("prospecting", kinds.url, "https://operation.api.cloud.yandex.net",
        "Where results of deferred searches are; a stand-in prints its own address.")
    yandex_iam_url: str = setting("prospecting", kinds.url, "https://iam.api.cloud.yandex.net",
        "Where IAM tokens are made; a stand-in prints its own address.")
    app_timezone: str = setting("prospecting", kinds.time_zone, "Europe/Moscow",
        "The clock by which times are written and shown: when a mailout starts, working hours, the night "
        "window. Yandex bills its night by Moscow time.")
    openai_api_key: str = secret("prospecting",
        "platform.openai.com/api-keys, or what your compatible service gives.")
    openai_base_url: str = setting("prospecting", kinds.url, "https://api.openai.com/v1",
        "Where the language model is; any service with the same API. From its documentation.")
    openai_model: str = setting("prospecting", kinds.text, "",
        "The model that writes letters; empty: letters come from templates. From the service's list of "
        "models.", "gpt-4.1-mini")
    letters_auto_approve: bool = setting("prospecting", kinds.flag, False,
        "Whether letters that pass all checks go without a person's review.")
    # Campaigns
    daily_send_limit: int = setting("campaigns", whole(0), 100,
        "Letters a day to people who did not subscribe.")
    # Alerts
    telegram_bot_token: str = secret("alerts", "Telegram: write /newbot to @BotFather.")
    telegram_chat_id: str = setting("alerts", kinds.text, "",
        "Who gets the alerts: write to your bot, then open api.telegram.org/bot<token>/getUpdates.",
        "123456789")
    telegram_api_url: str = setting("alerts", kinds.url, "https://api.telegram.org",
        "Where Telegram's API is; a stand-in prints its own address.")
    alert_emails: tuple[str, ...] = setting("alerts", kinds.several(kinds.email), (),
        "Who gets alerts by e-mail. Your own addresses.", "me@example.com")
    # Logs
    log_level: str = setting("logs", LOG_LEVEL, "info",
        "From which level on events are written.")
    log_format: str = setting("logs", kinds.choice("console", "json"), "console",
        "Lines for people, or JSON lines, on standard error.")
    log_file: Path | None = setting("logs", kinds.path, None,
        "A file that gets JSON lines as well.", "/var/log/sendonce.log")
    no_color: bool = setting("logs", kinds.presence, False,
        "Any text here keeps colours off (no-color.org).", "1", otherwise="colours on a terminal")
    # fmt: on

    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
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
        return tuple(value for value in values if value) + tuple(passwords_in(self.database_url))

    def __repr__(self) -> str:
        given = (f"{view.name}={view.value_shown}" for view in self.describe() if view.source != "default")
        return f"Settings({', '.join(given)})"


DECLARED: dict[str, Declaration] = {
    it.name.upper(): Declaration(name=it.name.upper(), default=it.default, **it.metadata)
    for it in fields(Settings)
    if it.metadata
}

_NEEDED = {"ses": ("SES_FROM_EMAIL", "AWS_REGION"), "smtp": ("SMTP_HOST", "SMTP_FROM_EMAIL"), "maildir": ()}


class _Found(NamedTuple):
    declared: Declaration
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class _Given:
    """What the two sources say."""

    process: Mapping[str, str]
    dotenv: Mapping[str, str]

    def find(self, name: str) -> _Found:
        """What is given for a variable, or for its fallback. An empty one in the process hides .env."""
        declared = DECLARED[name]
        if name in self.process:
            text, source = self.process[name], "environment"
        else:
            text, source = self.dotenv.get(name, ""), ".env"
        if text.strip():
            return _Found(declared, text, source)
        return self.find(declared.fallback) if declared.fallback else _Found(declared, "", "default")


def load_settings(environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
    """The settings in force, or BadSetting with everything that is wrong, one problem a line."""
    given = _Given(os.environ if environ is None else environ, _read_dotenv(dotenv))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    for name, declared in DECLARED.items():
        found = given.find(name)
        sources[name] = found.source
        try:
            values[name] = _parse(found) if found.text else declared.default
        except BadSetting as problem:
            values[name] = declared.default
            problems.append(str(problem))
    problems += _contradictions(values, given)
    if problems:
        raise BadSetting("\n".join(dict.fromkeys(problems)))  # a fallback's problem comes up twice
    _work_out_defaults(values, given)
    return Settings(
        **{name.lower(): value for name, value in values.items()},
        sources=sources,
        unknown_in_dotenv=tuple(sorted(given.dotenv.keys() - DECLARED.keys())),
    )


def _read_dotenv(path: Path | None) -> dict[str, str]:
    """The variables of the file; none if there is no file. ``$`` is an ordinary character in it."""
    if path is None:
        return {}
    if path.is_dir():
        raise BadSetting(f"{path} is a folder. Make it a file with lines like NAME=value.")
    if not path.is_file():
        return {}
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as stream:
            found = list(parse_stream(stream))
    except (OSError, UnicodeDecodeError) as exc:
        problem = f"{path} cannot be read ({type(exc).__name__}). Make it a readable UTF-8 file."
        raise BadSetting(problem) from exc
    # The line itself is not shown: it may be half of a secret.
    unread = [
        f"Line {_line(it.original)} of {path} must be like NAME=value. Mend it, or put # before it."
        for it in found
        if it.error or (it.key is not None and it.value is None)
    ]
    if unread:
        raise BadSetting("\n".join(unread))
    return {it.key: it.value or "" for it in found if it.key is not None}


def _line(original: Original) -> int:
    """The parser counts from the empty lines before."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _parse(found: _Found) -> Any:
    it = found.declared
    try:
        return it.kind.parse(found.text if it.secret else found.text.strip())
    except ValueError as exc:
        why = str(exc) if isinstance(exc, Unfit) else f"it must be {it.kind.must}"
        shown = "not usable" if it.secret else repr(it.kind.shown(found.text)[:80])
        example = it.example or display(it.default)
        fix = f" Set it, e.g., {it.name}={example}." if example else ""
        # The cause is left out on purpose: its message holds the value.
        raise BadSetting(f"{it.name} is {shown}: {why}.{fix}") from None


def _contradictions(values: Mapping[str, Any], given: _Given) -> list[str]:
    """Settings that are fine one by one, but not together."""
    found = []
    if values["SUPABASE_URL"] and not given.find("DATABASE_URL").text:
        found.append(
            "SUPABASE_URL is set and DATABASE_URL is not: Supabase is reached as PostgreSQL. Set DATABASE_URL"
            " to its connection string (Supabase: Connect, Transaction pooler), e.g., DATABASE_URL="
            "postgresql://postgres.abcdefgh:password@aws-0-eu-central-1.pooler.supabase.com:6543/postgres."
        )
    if not values["TRANSPORT"] and values["SES_FROM_EMAIL"] and values["SMTP_HOST"]:
        found.append(
            "SES_FROM_EMAIL and SMTP_HOST are both set and TRANSPORT is not: say which way letters leave."
            " Set TRANSPORT=ses or TRANSPORT=smtp."
        )
    if bool(values["AWS_ACCESS_KEY_ID"]) != bool(values["AWS_SECRET_ACCESS_KEY"]):
        found.append(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together and one of them is not set."
            " Set both, or neither to use a profile or a role."
        )
    return found


def _work_out_defaults(values: dict[str, Any], given: _Given) -> None:
    """The defaults that depend on other settings, or on where we are."""
    if not values["TRANSPORT"]:
        values["TRANSPORT"] = (
            "ses" if values["SES_FROM_EMAIL"] else "smtp" if values["SMTP_HOST"] else "maildir"
        )
    if not values["APP_BASE_URL"]:
        values["APP_BASE_URL"] = f"http://127.0.0.1:{values['PORT']}"
    if not values["SMTP_SECURITY"]:
        plain = "plain" if _is_loopback(values["SMTP_HOST"]) else "starttls"
        values["SMTP_SECURITY"] = "tls" if values["SMTP_PORT"] == 465 else plain
    if not given.find("STATE_DIR").text:
        # The XDG specification: a relative path in the variable is to be ignored.
        xdg = Path(given.process.get("XDG_STATE_HOME", ""))
        home = Path(given.process.get("HOME") or Path.home())
        values["STATE_DIR"] = (xdg if xdg.is_absolute() else home / ".local" / "state") / "sendonce"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
