"""The tables of the room `engine`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
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

from sendonce.adapters.stores.schema.columns import (
    Document,
    Identifier,
    flag,
    metadata,
    moment,
    own_id,
    tenant,
    where,
)

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
    moment("adopted_at"),
    moment("created_at", nullable=False),
    CheckConstraint("one = 1", name="ledger_has_one_row"),
)

letters = Table(
    "letters",
    metadata,
    own_id(),
    tenant(),
    Column("subject", Text, nullable=False),
    Column("preheader", Text, nullable=False),
    Column("from_name", Text),
    Column("reply_to", Text),
    flag("text_only"),
    Column("language", Text),
    Column("html", Text, nullable=False),
    Column("text", Text, nullable=False),
    moment("created_at", nullable=False),
)

# A run of message jobs that start, pause, cancel and end together. A mailout's has the mailout's own id.
dispatches = Table(
    "dispatches",
    metadata,
    own_id(),
    tenant(),
    Column("kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("letter_id", Identifier, ForeignKey("letters.id")),
    # Empty for the environment's own sender.
    Column("sender_id", Text, nullable=False, server_default=""),
    Column("phase", Text, nullable=False),
    Column("result", Text),
    flag("paused"),
    flag("cancelled"),
    Column("reason", Text),
    flag("is_test"),
    # The recipients want this very letter: an unsubscription does not keep it from them.
    flag("asked_for"),
    Column("weight", Integer, nullable=False, server_default=text("1")),
    # No job is due before it; null where nothing is scheduled. Too early is harmless: a claim puts it right.
    moment("due_from"),
    # Jobs are due, so it is claimed from in the order of "served": see domain/engine/dispatches.
    flag("awake"),
    Column("served", Float, nullable=False, server_default=text("0")),
    # Its door chose when jobs are due, so a time far ahead is no mistake of a clock.
    flag("own_times"),
    # Planning touches nothing outside, so the planner's lease may expire by age.
    Column("planner", Text),
    moment("planner_until"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    moment("started_at"),
    moment("ended_at"),
    CheckConstraint("phase IN ('preparing', 'planning', 'running', 'over')", name="dispatches_phase"),
    CheckConstraint("result IN ('sent', 'failed')", name="dispatches_result"),
    CheckConstraint("weight > 0", name="dispatches_weight"),
    Index("dispatches_awake", "sender_id", "id", **where("awake")),
    Index(
        "dispatches_of_senders",
        "sender_id",
        "due_from",
        **where("phase = 'running' AND NOT paused AND NOT cancelled AND sender_id <> ''"),
    ),
    Index("dispatches_open", "phase", "id", **where("phase <> 'over'")),
    Index(
        "dispatches_in_turn", "tenant_id", "awake", "sender_id", "served", "id", **where("phase = 'running'")
    ),
    Index(
        "dispatches_asleep",
        "due_from",
        **where("phase = 'running' AND NOT awake AND NOT paused AND NOT cancelled"),
    ),
    Index("dispatches_to_finish", "id", **where("phase = 'running' AND (due_from IS NULL OR cancelled)")),
)

# The order of fair share between the tenants of each sender: see domain/engine/dispatches. Whoever has a
# dispatch that is awake has a row.
tenant_turns = Table(
    "tenant_turns",
    metadata,
    Column("sender_id", Text, primary_key=True),
    Column("tenant_id", Text, ForeignKey("tenants.id"), primary_key=True),
    Column("served", Float, nullable=False),
)

# A job is two rows with one id. What is planned is never written again, but for an erasure and a rotation of
# keys; what moves is narrow, and only its table has indexes that name a state: see decision 59.
planned_jobs = Table(
    "planned_jobs",
    metadata,
    own_id(),
    tenant(),
    Column("dispatch_id", Identifier, ForeignKey("dispatches.id"), nullable=False),
    Column("recipient", Text, nullable=False),
    Column("recipient_key", Text, nullable=False),
    Column("suppression_key", Text, nullable=False),
    Column("fields", Document, nullable=False),
    # Its own where it has one, else the dispatch's. No foreign key: a letter is removed without a look at
    # every job there ever was.
    Column("letter_id", Identifier),
    Column("sender_id", Text),
    Column("thread", Document),
    # The rule that gives the product its name: one row for a recipient of a dispatch, ever.
    UniqueConstraint("dispatch_id", "recipient_key", name="planned_jobs_once"),
)

# No foreign keys: a row comes with that of planned_jobs, in one statement, and no job is ever deleted.
job_states = Table(
    "job_states",
    metadata,
    own_id(),
    Column("dispatch_id", Identifier, nullable=False),
    moment("due_at", nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("state", Text, nullable=False, server_default="scheduled"),
    Column("code", Text),
    Column("reason", Text),
    Column("message_id", Text),
    # The newest attempt that is proven to be accepted; an operator's word is no such proof.
    Column("accepted_attempt", Integer),
    Column("worker_id", Identifier),
    Column("claim_token", Text),
    moment("claimed_at"),
    moment("settled_at"),
    Column("death_proof", Text),
    moment("death_proof_at"),
    Column("absence_proof", Text),
    moment("send_event_at"),
    moment("delivered_at"),
    moment("bounced_at"),
    moment("complained_at"),
    moment("rejected_at"),
    moment("duplicate_at"),
    # Not IN: SQLite makes a table of the list, and to look there is a quarter of an update's cost. The usual
    # states come first.
    CheckConstraint(
        "state = 'sent' OR state = 'sending' OR state = 'scheduled' OR state = 'failed' OR state = 'skipped'"
        " OR state = 'dead' OR state = 'in_doubt'",
        name="job_states_state",
    ),
    Index("job_states_scheduled", "dispatch_id", "due_at", "priority", "id", **where("state = 'scheduled'")),
    # A job that was claimed before has its time from a retry.
    Index("job_states_retried", "dispatch_id", "due_at", **where("state = 'scheduled' AND attempt > 0")),
    Index("job_states_sending", "dispatch_id", "worker_id", **where("state = 'sending'")),
    Index("job_states_in_doubt", "id", **where("state = 'in_doubt'")),
    Index("job_states_dead", "id", **where("state = 'dead'")),
    # Accepted letters that the provider has told nothing of yet: the neighbours that keep a doubt parked.
    Index("job_states_unheard", "claimed_at", **where("state = 'sent' AND send_event_at IS NULL")),
)

# The view of both rows, for those who read.
message_jobs = Table(
    "message_jobs",
    MetaData(),
    *(Column(column.name, column.type) for column in planned_jobs.c),
    *(Column(column.name, column.type) for column in job_states.c if column.name not in planned_jobs.c),
)

# The books of a dispatch, and under BEFORE_ALL those of the whole ledger: see sql/books.py. The sum of its
# slots is what the rows of its jobs say, in every committed state.
dispatch_books = Table(
    "dispatch_books",
    metadata,
    Column("dispatch_id", Identifier, primary_key=True),
    Column("slot", BigInteger, primary_key=True, autoincrement=False),
    *(
        Column(name, BigInteger, nullable=False, server_default=text("0"))
        for name in (
            *("scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt"),
            *("delivered", "bounced", "complained", "rejected", "duplicates"),
        )
    ),
    sqlite_with_rowid=False,  # every turn writes here: one page in place of two
)

# Attempts that did not end the job. The current one lives in the job's own row.
attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Identifier, ForeignKey("planned_jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("worker_id", Identifier),
    moment("claimed_at"),
    moment("ended_at", nullable=False),
    Column("outcome", Text, nullable=False),
    Column("code", Text),
    Column("reason", Text),
    Column("death_proof", Text),
    Column("absence_proof", Text),
)

workers = Table(
    "workers",
    metadata,
    own_id(),
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
    moment("started_at", nullable=False),
    moment("seen_at"),
    Column("rate", Float),
    Column("rests", Text),
    Column("rest_reason", Text),
    moment("rests_until"),
    # Every claim counts here, under the token of the last: see domain/engine/claim_counts.
    Column("claims", BigInteger, nullable=False, server_default=text("0")),
    Column("claim_token", Text),
    moment("ended_at"),
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
    moment("expires_at", nullable=False),
)

# One row a key, locked while its permits are shared out.
permit_keys = Table("permit_keys", metadata, Column("key", Text, primary_key=True))

# The senders beside the environment's own. Secrets stay outside: secret_from names a variable or a file.
sender_identities = Table(
    "sender_identities",
    metadata,
    own_id(),
    tenant(),
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
    Column("second_region", Text),
    Column("second_configuration_set", Text),
    Column("rate_limit", Integer),
    Column("rate_key", Text),
    Column("connections", Integer),
    Column("imap_host", Text),
    Column("imap_port", Integer),
    moment("created_at", nullable=False),
    moment("removed_at"),
)

# Senders that their provider refuses: nobody claims for them before next_try_at. While one is elsewhere, its
# letters leave through its second region, under another key.
sender_holds = Table(
    "sender_holds",
    metadata,
    Column("key", Text, primary_key=True),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    moment("held_at", nullable=False),
    moment("next_try_at", nullable=False),
    Column("tries", Integer, nullable=False),
    flag("elsewhere"),
)

delivery_events = Table(
    "delivery_events",
    metadata,
    own_id(),
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
    moment("occurred_at", nullable=False),
    moment("received_at", nullable=False),
    Column("raw", Document, nullable=False),
    Index("delivery_events_received", "received_at"),
    Index("delivery_events_job", "job_id"),
)

# Whose letters they are, for those that were planned some time ago: see sql/person_index.py.
person_index = Table(
    "person_index",
    metadata,
    Column("shelf", Integer, primary_key=True, autoincrement=False),
    Column("key_hash", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", Identifier, primary_key=True),
    sqlite_with_rowid=False,
)

# How far a duty has come that goes through rows in the order of their ids.
duty_cursors = Table(
    "duty_cursors", metadata, Column("duty", Text, primary_key=True), Column("last_id", Identifier)
)

canaries = Table(
    "canaries",
    metadata,
    own_id(),
    Column("route", Text, nullable=False, server_default=""),
    moment("sent_at", nullable=False),
    Column("message_id", Text),
    moment("event_at"),
    Index("canaries_sent", "sent_at"),
)

# Who received the provider's events, from when until when.
event_receivers = Table(
    "event_receivers",
    metadata,
    own_id(),
    Column("receiver", Text, nullable=False),
    moment("since", nullable=False),
    moment("seen", nullable=False),
    Column("durable", Boolean, nullable=False),
    flag("left"),
    Index("event_receivers_seen", "seen"),
)

# The SNS topics that deliver to us.
event_topics = Table(
    "event_topics",
    metadata,
    Column("topic", Text, primary_key=True),
    moment("subscribed_at", nullable=False),
    moment("ended_at"),
)

# Genuine messages that we cannot read, word for word; the newest thousand.
unreadable_events = Table(
    "unreadable_events",
    metadata,
    own_id(),
    Column("event_id", Text, nullable=False, unique=True),
    Column("source", Text, nullable=False),
    Column("why", Text, nullable=False),
    moment("received_at", nullable=False),
    Column("raw", LargeBinary, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    own_id(),
    Column("topic", Text, nullable=False),
    Column("body", Document, nullable=False),
    moment("created_at", nullable=False),
    moment("done_at"),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    moment("due_at", nullable=False),
    Column("error", Text),
)

audit_log = Table(
    "audit_log",
    metadata,
    own_id(),
    moment("at", nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Document, nullable=False),
    # Its place in the chain of hashes (see domain/people/audit); null in entries older than the chain.
    Column("number", BigInteger),
    Column("salt", Text),
    Column("digest", Text),
    Column("hash", Text),
    Index("audit_log_chain", "number", unique=True),
)

# How far a mailbox was read. Another uid_validity means that the server numbers its messages anew.
mailbox_cursors = Table(
    "mailbox_cursors",
    metadata,
    Column("mailbox", Text, primary_key=True),
    Column("folder", Text, primary_key=True),
    Column("uid_validity", BigInteger, nullable=False),
    Column("last_uid", BigInteger, nullable=False),
    moment("read_at", nullable=False),
)

# What was found in a mailbox, once a message: bounces, replies, wishes to be left alone.
mailbox_messages = Table(
    "mailbox_messages",
    metadata,
    own_id(),
    Column("mailbox", Text, nullable=False),
    # Its Message-ID, or a hash of it where it has none: the server's numbers may change.
    Column("message_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job_id", Identifier),
    Column("sender", Text),
    Column("recipient", Text),
    Column("bounce", Text),
    Column("code", Text),
    Column("reason", Text),
    moment("sent_at"),
    moment("found_at", nullable=False),
    UniqueConstraint("mailbox", "message_key", name="mailbox_messages_once"),
    Index("mailbox_messages_job", "job_id", **where("job_id IS NOT NULL")),
)

# When each mailbox was last read, what was found in it so far, and what keeps it from being read.
mailbox_readings = Table(
    "mailbox_readings",
    metadata,
    Column("mailbox", Text, primary_key=True),
    moment("read_at"),
    Column("found", Document, nullable=False),
    moment("failed_at"),
    Column("trouble", Text),
)

# What is wrong now and its people should know: one row for each thing, gone when it is over.
alarms = Table(
    "alarms",
    metadata,
    Column("about", Text, primary_key=True),
    Column("text", Text, nullable=False),
    moment("began_at", nullable=False),
    flag("told"),
)

# The books of the whole ledger every few minutes, for the last day: see domain/engine/gauges.py.
gauge_readings = Table(
    "gauge_readings",
    metadata,
    moment("taken_at", primary_key=True),
    Column("gauges", Document, nullable=False),
)
