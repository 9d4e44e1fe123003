"""The tables, once for SQLite and PostgreSQL. Migrations are written from them (see migrations/)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.types import TypeDecorator

# The newest migration. Compared with the database at every start, without importing Alembic.
HEAD = "0003"

metadata = MetaData()

SQLITE_TIME = "%Y-%m-%d %H:%M:%S.%f"


class Moment(TypeDecorator[datetime]):
    """A point in time in UTC: timestamptz on PostgreSQL, sortable text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).strftime(SQLITE_TIME)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002 (SQLAlchemy's signature)
        if value is None:
            return None
        if isinstance(value, str):
            return datetime.strptime(value, SQLITE_TIME).replace(tzinfo=UTC)
        assert isinstance(value, datetime)
        return value.astimezone(UTC)


class _Identifier(TypeDecorator[str]):
    """A UUID in its usual spelling, so that both databases and both kinds of SQL show the same text.

    Text from outside that is no UUID names no row. PostgreSQL would refuse the whole statement, so it
    gets the nil UUID instead, which is never issued.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else UUID(as_uuid=False))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or dialect.name == "sqlite" or _UUID.fullmatch(value):
            return value
        return "00000000-0000-0000-0000-000000000000"


_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
Identifier = _Identifier()
Document = JSON().with_variant(JSONB(), "postgresql")


def _id(*args: Any, **kwargs: Any) -> Column[str]:
    return Column("id", Identifier, *args, primary_key=True, **kwargs)


def _tenant() -> Column[str]:
    return Column("tenant_id", Text, ForeignKey("tenants.id"), nullable=False)


def _moment(name: str, **kwargs: Any) -> Column[datetime]:
    return Column(name, Moment, **kwargs)


def _where(condition: str) -> dict[str, Any]:
    """The rows that an index holds."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


ledger = Table(
    "ledger",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("ledger_id", Identifier, nullable=False),
    # Keys the hashes of suppressed addresses. It lives here and not in a setting: losing it would
    # make every suppressed address look new.
    Column("pepper", LargeBinary, nullable=False),
    Column("fingerprint", Text),
    Column("claim_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("halted", Text),
    # Keys of unsubscribe links where UNSUBSCRIBE_SECRET is not set, 32 bytes each, the newest last.
    Column("link_secrets", LargeBinary),
    # How often a restored or copied database was taken into use as this ledger.
    Column("adoptions", Integer, nullable=False, server_default=text("0")),
    _moment("adopted_at"),
    _moment("created_at", nullable=False),
    CheckConstraint("one = 1", name="ledger_has_one_row"),
)

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # The order of fair share between tenants: see domain/engine/dispatches.
    Column("served", Float, nullable=False, server_default=text("0")),
    _moment("created_at", nullable=False),
)

subscribers = Table(
    "subscribers",
    metadata,
    # No index and no foreign key that nobody asks: a million people arrive here at once. Every write goes
    # through import_people, which looks for the tenant.
    Column("id", Identifier, nullable=False),
    Column("tenant_id", Text, primary_key=True),
    Column("email", Text, nullable=False),
    Column("address_key", Text, primary_key=True),
    Column("suppression_key", Text, nullable=False),
    Column("from_name", Text),
    Column("attributes", Document, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    Column("bounce_type", Text),
    Column("bounce_subtype", Text),
    # When and how the person agreed, in the words of whoever added them.
    Column("consent", Text),
    _moment("status_updated_at"),
    _moment("created_at", nullable=False),
    _moment("updated_at", nullable=False),
    # SQLite looks through an IN of three in a table, which costs every row; one of two is two comparisons.
    CheckConstraint(
        "status = 'active' OR status IN ('unsubscribed', 'bounced') OR status = 'pending'",
        name="subscribers_status",
    ),
)

# Who asked for letters on a form, and what they agreed to: the record of consent once it is confirmed.
sign_ups = Table(
    "sign_ups",
    metadata,
    _id(),
    _tenant(),
    Column("email", Text, nullable=False),
    # The widest reading of the address: spellings of one mailbox share its few letters.
    Column("mailbox", Text, nullable=False),
    Column("name", Text),
    Column("source", Text, nullable=False),
    Column("wording", Text, nullable=False),
    _moment("requested_at", nullable=False),
    _moment("confirmed_at"),
    Index("sign_ups_of_mailbox", "mailbox", "requested_at"),
)

letters = Table(
    "letters",
    metadata,
    _id(),
    _tenant(),
    Column("subject", Text, nullable=False),
    Column("preheader", Text, nullable=False),
    Column("from_name", Text),
    Column("reply_to", Text),
    _flag("text_only"),
    Column("language", Text),
    Column("html", Text, nullable=False),
    Column("text", Text, nullable=False),
    _moment("created_at", nullable=False),
)

# A run of message jobs that start, pause, cancel and end together. A mailout's has the mailout's own id.
dispatches = Table(
    "dispatches",
    metadata,
    _id(),
    _tenant(),
    Column("kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("letter_id", Identifier, ForeignKey("letters.id")),
    # Empty for the environment's own sender.
    Column("sender_id", Text, nullable=False, server_default=""),
    Column("phase", Text, nullable=False),
    Column("result", Text),
    _flag("paused"),
    _flag("cancelled"),
    Column("reason", Text),
    _flag("is_test"),
    # The recipients want this very letter: an unsubscription does not keep it from them.
    _flag("asked_for"),
    Column("weight", Integer, nullable=False, server_default=text("1")),
    # No job is due before it; null where nothing is scheduled. Too early is harmless: a claim puts it right.
    _moment("due_from"),
    # Jobs are due, so it is claimed from in the order of "served": see domain/engine/dispatches.
    _flag("awake"),
    Column("served", Float, nullable=False, server_default=text("0")),
    # Planning touches nothing outside, so the planner's lease may expire by age.
    Column("planner", Text),
    _moment("planner_until"),
    _moment("created_at", nullable=False),
    _moment("updated_at", nullable=False),
    _moment("started_at"),
    _moment("ended_at"),
    CheckConstraint("phase IN ('preparing', 'planning', 'running', 'over')", name="dispatches_phase"),
    CheckConstraint("result IN ('sent', 'failed')", name="dispatches_result"),
    CheckConstraint("weight > 0", name="dispatches_weight"),
    Index("dispatches_awake", "sender_id", "id", **_where("awake")),
    Index(
        "dispatches_of_senders",
        "sender_id",
        "due_from",
        **_where("phase = 'running' AND NOT paused AND NOT cancelled AND sender_id <> ''"),
    ),
    Index("dispatches_open", "phase", "id", **_where("phase <> 'over'")),
    Index(
        "dispatches_in_turn", "tenant_id", "awake", "sender_id", "served", "id", **_where("phase = 'running'")
    ),
    Index(
        "dispatches_asleep",
        "due_from",
        **_where("phase = 'running' AND NOT awake AND NOT paused AND NOT cancelled"),
    ),
    Index("dispatches_to_finish", "id", **_where("phase = 'running' AND (due_from IS NULL OR cancelled)")),
)

mailouts = Table(
    "mailouts",
    metadata,
    _id(),
    _tenant(),
    Column("letter_id", Identifier, ForeignKey("letters.id")),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_id", Text),
    _flag("is_test"),
    Column("audience", Document),
    Column("warnings", Document, nullable=False),
    Column("reported", Text),
    # Until it is started. From then on its dispatch tells.
    Column("status", Text, nullable=False),
    Column("reason", Text),
    _flag("forced"),
    # The last address planned.
    Column("plan_cursor", Text, nullable=False, server_default=""),
    Column("key_version", Integer, nullable=False, server_default=text("1")),
    _moment("created_at", nullable=False),
    _moment("updated_at", nullable=False),
    # Told to start at send_at: only then does the clock start it.
    _moment("send_at"),
    _flag("scheduled"),
    Column("except_of", Document),
    # How far the recipients of those mailouts are gathered; null when there is nothing left to gather.
    Column("except_cursor", Text),
    # The last that its page asked for: what comes a second time, or late, starts nothing.
    Column("page_event", Text),
    _moment("page_event_at"),
    CheckConstraint("status IN ('draft', 'ready')", name="mailouts_status"),
    Index("mailouts_scheduled", "send_at", **_where("scheduled")),
    # One mailout a page: a button pressed twice finds the first. Tests may be many.
    Index(
        "mailouts_once_a_page",
        "tenant_id",
        "source",
        "source_id",
        unique=True,
        **_where("source_id IS NOT NULL AND NOT is_test"),
    ),
)

# While a mailout is planned: who is left out of it, because another mailout went to them.
excluded_recipients = Table(
    "excluded_recipients",
    metadata,
    Column("mailout_id", Identifier, ForeignKey("mailouts.id"), primary_key=True),
    Column("suppression_key", Text, primary_key=True),
    Column("by_mailout_id", Identifier, nullable=False),
)

message_jobs = Table(
    "message_jobs",
    metadata,
    _id(),
    _tenant(),
    Column("dispatch_id", Identifier, ForeignKey("dispatches.id"), nullable=False),
    Column("recipient", Text, nullable=False),
    Column("recipient_key", Text, nullable=False),
    Column("suppression_key", Text, nullable=False),
    Column("fields", Document, nullable=False),
    Column("state", Text, nullable=False, server_default="scheduled"),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    _moment("due_at", nullable=False),
    Column("code", Text),
    Column("reason", Text),
    Column("message_id", Text),
    # The newest attempt that is proven to be accepted; an operator's word is no such proof.
    Column("accepted_attempt", Integer),
    Column("worker_id", Identifier),
    Column("claim_token", Text),
    _moment("claimed_at"),
    _moment("settled_at"),
    Column("death_proof", Text),
    _moment("death_proof_at"),
    Column("absence_proof", Text),
    _moment("send_event_at"),
    _moment("delivered_at"),
    _moment("bounced_at"),
    _moment("complained_at"),
    _moment("rejected_at"),
    _moment("duplicate_at"),
    # Its own where it has one, else the dispatch's. No foreign key: a letter is removed without a look at
    # every job there ever was.
    Column("letter_id", Identifier),
    Column("sender_id", Text),
    Column("thread", Document),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    # The rule that gives the product its name: one row for a recipient of a dispatch, ever.
    UniqueConstraint("dispatch_id", "recipient_key", name="message_jobs_once"),
    CheckConstraint(
        "state IN ('scheduled', 'sending', 'sent', 'failed', 'skipped', 'dead', 'in_doubt')",
        name="message_jobs_state",
    ),
    Index(
        "message_jobs_scheduled",
        "dispatch_id",
        "due_at",
        "priority",
        "id",
        sqlite_where=text("state = 'scheduled'"),
        postgresql_where=text("state = 'scheduled'"),
    ),
    Index(
        "message_jobs_sending",
        "dispatch_id",
        "worker_id",
        sqlite_where=text("state = 'sending'"),
        postgresql_where=text("state = 'sending'"),
    ),
    Index(
        "message_jobs_in_doubt",
        "id",
        sqlite_where=text("state = 'in_doubt'"),
        postgresql_where=text("state = 'in_doubt'"),
    ),
    Index(
        "message_jobs_dead",
        "id",
        sqlite_where=text("state = 'dead'"),
        postgresql_where=text("state = 'dead'"),
    ),
    # Accepted letters that the provider has told nothing of yet: the neighbours that keep a doubt parked.
    Index(
        "message_jobs_unheard",
        "claimed_at",
        sqlite_where=text("state = 'sent' AND send_event_at IS NULL"),
        postgresql_where=text("state = 'sent' AND send_event_at IS NULL"),
    ),
)

# Attempts that did not end the job. The current one lives in the job's own row.
attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Identifier, ForeignKey("message_jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("worker_id", Identifier),
    _moment("claimed_at"),
    _moment("ended_at", nullable=False),
    Column("outcome", Text, nullable=False),
    Column("code", Text),
    Column("reason", Text),
    Column("death_proof", Text),
    Column("absence_proof", Text),
)

workers = Table(
    "workers",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("transport", Text, nullable=False),
    Column("route", Text, nullable=False, server_default=""),
    Column("sender_id", Text, nullable=False, server_default=""),
    Column("lock_domain", Text, nullable=False),
    Column("lock_file", Text, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    _moment("started_at", nullable=False),
    _moment("seen_at"),
    Column("rate", Float),
    Column("rests", Text),
    Column("rest_reason", Text),
    _moment("rests_until"),
    # Every claim counts here, under the token of the last: see domain/engine/claim_counts.
    Column("claims", BigInteger, nullable=False, server_default=text("0")),
    Column("claim_token", Text),
    _moment("ended_at"),
    Column("end", Text),
    Index(
        "workers_open",
        "lock_domain",
        sqlite_where=text("ended_at IS NULL"),
        postgresql_where=text("ended_at IS NULL"),
    ),
)

permits = Table(
    "permits",
    metadata,
    Column("key", Text, primary_key=True),
    Column("worker_id", Identifier, primary_key=True),
    Column("permits", Integer, nullable=False),
    _moment("expires_at", nullable=False),
)

# One row a key, locked while its permits are shared out.
permit_keys = Table("permit_keys", metadata, Column("key", Text, primary_key=True))

# The senders beside the environment's own. Secrets stay outside: secret_from names a variable or a file.
sender_identities = Table(
    "sender_identities",
    metadata,
    _id(),
    _tenant(),
    Column("address", Text, nullable=False),
    Column("address_key", Text, nullable=False, unique=True),
    Column("transport", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("name", Text),
    Column("reply_to", Text),
    Column("port", Integer),
    Column("security", Text),
    Column("username", Text),
    Column("secret_from", Text),
    Column("configuration_set", Text),
    Column("rate_limit", Integer),
    Column("rate_key", Text),
    Column("connections", Integer),
    _moment("created_at", nullable=False),
    _moment("removed_at"),
)

# Senders that their provider refuses: nobody claims for them before next_try_at.
sender_holds = Table(
    "sender_holds",
    metadata,
    Column("key", Text, primary_key=True),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    _moment("held_at", nullable=False),
    _moment("next_try_at", nullable=False),
    Column("tries", Integer, nullable=False),
)

delivery_events = Table(
    "delivery_events",
    metadata,
    _id(),
    Column("event_id", Text, nullable=False, unique=True),
    Column("natural_key", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("job_id", Identifier),
    Column("attempt", Integer),
    Column("message_id", Text),
    Column("recipient", Text),
    Column("bounce_type", Text),
    Column("bounce_subtype", Text),
    Column("code", Text),
    Column("reason", Text),
    _moment("occurred_at", nullable=False),
    _moment("received_at", nullable=False),
    Column("raw", Document, nullable=False),
    Index("delivery_events_received", "received_at"),
    Index("delivery_events_job", "job_id"),
)

# Images of letters: the addresses that Notion gives die within the hour.
assets = Table(
    "assets",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("content_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    _moment("created_at", nullable=False),
)

# The tenant '*' is the whole house: a global suppression.
suppressions = Table(
    "suppressions",
    metadata,
    Column("key", Text, primary_key=True),
    Column("tenant_id", Text, primary_key=True),
    Column("address", Text),
    Column("reason", Text, nullable=False),
    Column("note", Text),
    # The letter whose link was clicked; for a while, it alone can take the unsubscription back.
    Column("job_id", Identifier),
    _moment("created_at", nullable=False),
)

canaries = Table(
    "canaries",
    metadata,
    _id(),
    Column("route", Text, nullable=False, server_default=""),
    _moment("sent_at", nullable=False),
    Column("message_id", Text),
    _moment("event_at"),
    Index("canaries_sent", "sent_at"),
)

# Who received the provider's events, from when until when.
event_receivers = Table(
    "event_receivers",
    metadata,
    _id(),
    Column("receiver", Text, nullable=False),
    _moment("since", nullable=False),
    _moment("seen", nullable=False),
    Column("durable", Boolean, nullable=False),
    _flag("left"),
    Index("event_receivers_seen", "seen"),
)

# The SNS topics that deliver to us.
event_topics = Table(
    "event_topics",
    metadata,
    Column("topic", Text, primary_key=True),
    _moment("subscribed_at", nullable=False),
    _moment("ended_at"),
)

# Genuine messages that we cannot read, word for word; the newest thousand.
unreadable_events = Table(
    "unreadable_events",
    metadata,
    _id(),
    Column("event_id", Text, nullable=False, unique=True),
    Column("source", Text, nullable=False),
    Column("why", Text, nullable=False),
    _moment("received_at", nullable=False),
    Column("raw", LargeBinary, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    _id(),
    Column("topic", Text, nullable=False),
    Column("body", Document, nullable=False),
    _moment("created_at", nullable=False),
    _moment("done_at"),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    _moment("due_at", nullable=False),
    Column("error", Text),
)

audit_log = Table(
    "audit_log",
    metadata,
    _id(),
    _moment("at", nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Document, nullable=False),
)
