"""The first schema: the ledger, mailouts, subscribers, suppressions, events, workers.

The views carry the names under which others know the same rows.
"""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Document, Identifier, Moment

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("details", Document, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "canaries",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("sent_at", Moment(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("event_at", Moment(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "event_receivers",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("since", Moment(), nullable=False),
        sa.Column("seen", Moment(), nullable=False),
        sa.Column("durable", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("event_receivers_seen", "event_receivers", ["seen"])
    op.create_table(
        "delivery_events",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("natural_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("job_id", Identifier, nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("recipient", sa.Text(), nullable=True),
        sa.Column("bounce_type", sa.Text(), nullable=True),
        sa.Column("bounce_subtype", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("occurred_at", Moment(), nullable=False),
        sa.Column("received_at", Moment(), nullable=False),
        sa.Column("raw", Document, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("event_id"),
        sa.UniqueConstraint("natural_key"),
    )
    op.create_index("delivery_events_job", "delivery_events", ["job_id"], unique=False)
    op.create_index("delivery_events_received", "delivery_events", ["received_at"], unique=False)
    op.create_table(
        "ledger",
        sa.Column("one", sa.Integer(), nullable=False),
        sa.Column("ledger_id", Identifier, nullable=False),
        sa.Column("pepper", sa.LargeBinary(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("claim_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("halted", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.CheckConstraint("one = 1", name="ledger_has_one_row"),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("body", Document, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("done_at", Moment(), nullable=True),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Moment(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "permit_keys", sa.Column("key", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("key")
    )
    op.create_table(
        "permits",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("worker_id", Identifier, nullable=False),
        sa.Column("permits", sa.Integer(), nullable=False),
        sa.Column("expires_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", "worker_id"),
    )
    op.create_table(
        "suppressions",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", "tenant_id"),
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "workers",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("lock_domain", sa.Text(), nullable=False),
        sa.Column("lock_file", sa.Text(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", Moment(), nullable=False),
        sa.Column("ended_at", Moment(), nullable=True),
        sa.Column("end", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "workers_open",
        "workers",
        ["lock_domain"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "letters",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("preheader", sa.Text(), nullable=False),
        sa.Column("from_name", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "subscribers",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("suppression_key", sa.Text(), nullable=False),
        sa.Column("from_name", sa.Text(), nullable=True),
        sa.Column("attributes", Document, nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("bounce_type", sa.Text(), nullable=True),
        sa.Column("bounce_subtype", sa.Text(), nullable=True),
        sa.Column("status_updated_at", Moment(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "status = 'active' OR status IN ('unsubscribed', 'bounced')", name="subscribers_status"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "address_key"),
    )
    op.create_table(
        "mailouts",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("letter_id", Identifier, nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("is_test", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("audience", Document, nullable=True),
        sa.Column("warnings", Document, nullable=False),
        sa.Column("reported", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("paused", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("cancelled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("plan_cursor", sa.Text(), server_default="", nullable=False),
        sa.Column("planner", sa.Text(), nullable=True),
        sa.Column("planner_until", Moment(), nullable=True),
        sa.Column("key_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.Column("started_at", Moment(), nullable=True),
        sa.Column("sent_at", Moment(), nullable=True),
        sa.CheckConstraint("phase IN ('fetching', 'planning', 'running', 'over')", name="mailouts_phase"),
        sa.CheckConstraint(
            "status IN ('draft', 'ready', 'sending', 'sent', 'failed')", name="mailouts_status"
        ),
        sa.ForeignKeyConstraint(
            ["letter_id"],
            ["letters.id"],
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("mailouts_open", "mailouts", ["status", "id"], unique=False)
    op.create_index(
        "mailouts_once_a_page",
        "mailouts",
        ["tenant_id", "source", "source_id"],
        unique=True,
        sqlite_where=sa.text("source_id IS NOT NULL AND NOT is_test"),
        postgresql_where=sa.text("source_id IS NOT NULL AND NOT is_test"),
    )
    op.create_table(
        "assets",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "message_jobs",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("mailout_id", Identifier, nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("recipient_key", sa.Text(), nullable=False),
        sa.Column("suppression_key", sa.Text(), nullable=False),
        sa.Column("fields", Document, nullable=False),
        sa.Column("state", sa.Text(), server_default="scheduled", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Moment(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("accepted_attempt", sa.Integer(), nullable=True),
        sa.Column("worker_id", Identifier, nullable=True),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("claimed_at", Moment(), nullable=True),
        sa.Column("settled_at", Moment(), nullable=True),
        sa.Column("death_proof", sa.Text(), nullable=True),
        sa.Column("death_proof_at", Moment(), nullable=True),
        sa.Column("absence_proof", sa.Text(), nullable=True),
        sa.Column("send_event_at", Moment(), nullable=True),
        sa.Column("delivered_at", Moment(), nullable=True),
        sa.Column("bounced_at", Moment(), nullable=True),
        sa.Column("complained_at", Moment(), nullable=True),
        sa.Column("rejected_at", Moment(), nullable=True),
        sa.Column("duplicate_at", Moment(), nullable=True),
        sa.CheckConstraint(
            "state IN ('scheduled', 'sending', 'sent', 'failed', 'skipped', 'dead', 'in_doubt')",
            name="message_jobs_state",
        ),
        sa.ForeignKeyConstraint(
            ["mailout_id"],
            ["mailouts.id"],
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("mailout_id", "recipient_key", name="message_jobs_once"),
    )
    op.create_index(
        "message_jobs_in_doubt",
        "message_jobs",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'in_doubt'"),
        postgresql_where=sa.text("state = 'in_doubt'"),
    )
    op.create_index(
        "message_jobs_scheduled",
        "message_jobs",
        ["mailout_id", "due_at", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'scheduled'"),
        postgresql_where=sa.text("state = 'scheduled'"),
    )
    op.create_index(
        "message_jobs_sending",
        "message_jobs",
        ["mailout_id", "worker_id"],
        unique=False,
        sqlite_where=sa.text("state = 'sending'"),
        postgresql_where=sa.text("state = 'sending'"),
    )
    op.create_table(
        "attempts",
        sa.Column("job_id", Identifier, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker_id", Identifier, nullable=True),
        sa.Column("claimed_at", Moment(), nullable=True),
        sa.Column("ended_at", Moment(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("death_proof", sa.Text(), nullable=True),
        sa.Column("absence_proof", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["message_jobs.id"],
        ),
        sa.PrimaryKeyConstraint("job_id", "attempt"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE claim_seq")
    op.execute(
        "CREATE VIEW send_logs AS SELECT id, mailout_id, recipient AS email, state AS status, "
        "reason AS error_message, settled_at AS created_at FROM message_jobs"
    )
    op.execute(
        "CREATE VIEW opt_out_registry AS "
        "SELECT address AS email, tenant_id, reason, created_at FROM suppressions"
    )
