"""Settings of the house: the service, its database, its logs and its alerts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sendonce.settings import kinds
from sendonce.settings.kinds import secret, setting, whole

LOG_LEVEL = kinds.choice("debug", "info", "warning", "error", "critical", warn="warning")


# ruff: noqa: RUF009 - setting() and secret() make dataclass fields
# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class HouseSettings:
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
    app_timezone: str = setting("service", kinds.time_zone, "Europe/Moscow",
        "The clock by which times are written and shown: when a mailout starts, working hours, the night "
        "window. Set it to your own. Unset it is Moscow's, by which Yandex bills its cheaper nights.")
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
        "Known from older setups, for a store over Supabase's REST API. Supabase: Project Settings, API "
        "keys. Not used yet.")
    state_dir: Path = setting("database", kinds.path, Path(),
        "Locks and journals of the workers of this machine; must be on a local disk and outlive restarts.",
        "/var/lib/sendonce", otherwise="$XDG_STATE_HOME/sendonce, or ~/.local/state/sendonce")
    events_keep_days: int = setting("database", whole(1, 36_500), 90,
        "How long the raw text of delivery events stays in the database. After that it goes to compressed "
        "files in the archive; what each event said stays.")
    archive_url: str = setting("database", kinds.archive, "",
        "Where the archive is: a directory, or a bucket of S3 with a prefix. In a bucket it is shared by all "
        "machines, and reports of mailouts are kept there, too.",
        "s3://my-bucket/sendonce", otherwise="STATE_DIR/archive")
    archive_keep_days: int = setting("database", whole(0, 36_500), 90,
        "How long files stay in the archive; 0 keeps them for ever. They hold addresses.")
    # Alerts
    telegram_bot_token: str = secret("alerts", "Telegram: write /newbot to @BotFather.")
    telegram_chat_id: str = setting("alerts", kinds.text, "",
        "Who gets the alerts: write to your bot, then open api.telegram.org/bot<token>/getUpdates.",
        "123456789")
    telegram_api_url: str = setting("alerts", kinds.url, "https://api.telegram.org",
        "Where Telegram's API is; a stand-in prints its own address.")
    alert_emails: tuple[str, ...] = setting("alerts", kinds.several(kinds.email), (),
        "Who gets alerts by e-mail. Your own addresses.", "me@example.com")
    alert_dead_letters: int = setting("alerts", whole(0), 10,
        "So many letters that died within a day are an alarm; 0: none is.")
    alert_queue_age_seconds: float = setting("alerts", kinds.seconds(zero=True), 7200.0,
        "A letter that has been due for longer is an alarm; 0: none is. Raise it if your largest mailout "
        "takes longer at your rate.")
    alert_event_silence_seconds: float = setting("alerts", kinds.seconds(zero=True), 3600.0,
        "Letters that left through SES, and then no event for so long, are an alarm; 0: they are not. Raise "
        "it if your configuration set tells of bounces and complaints only.")
    # Logs
    log_level: str = setting("logs", LOG_LEVEL, "info",
        "From which level on events are written.")
    log_format: str = setting("logs", kinds.choice("console", "json"), "console",
        "Lines for people, or JSON lines, on standard error.")
    log_file: Path | None = setting("logs", kinds.path, None,
        "A file that gets JSON lines as well.", "/var/log/sendonce.log")
    log_file_max_bytes: int = setting("logs", whole(0), 10_000_000,
        "From this size on it is moved to LOG_FILE.1, and a new one begun; 0 leaves that to logrotate.")
    log_file_keep: int = setting("logs", whole(0, 1000), 5,
        "How many former log files stay.")
    no_color: bool = setting("logs", kinds.presence, False,
        "Any text here keeps colours off (no-color.org).", "1", otherwise="colours on a terminal")
    # fmt: on
