"""The second schema: counted claims, held senders, kept events, and more about letters and people."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Document, Identifier, Moment

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _workers_and_claims()
    _held_senders()
    _events()
    _letters_and_mailouts()
    _people()


def _workers_and_claims() -> None:
    op.add_column("workers", sa.Column("seen_at", Moment()))
    op.add_column("workers", sa.Column("rate", sa.Float()))
    op.add_column("workers", sa.Column("rests", sa.Text()))
    op.add_column("workers", sa.Column("rest_reason", sa.Text()))
    op.add_column("workers", sa.Column("rests_until", Moment()))
    op.add_column(
        "workers", sa.Column("claims", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
    op.add_column("workers", sa.Column("claim_token", sa.Text()))
    op.add_column("ledger", sa.Column("adoptions", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("ledger", sa.Column("adopted_at", Moment()))
    op.add_column("workers", sa.Column("route", sa.Text(), nullable=False, server_default=""))
    # One transport and one route is all that a database of the first schema is known to have had.
    op.execute("UPDATE workers SET route = transport")


def _held_senders() -> None:
    op.add_column(
        "mailouts", sa.Column("forced", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.create_table(
        "sender_holds",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("held_at", Moment(), nullable=False),
        sa.Column("next_try_at", Moment(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )


def _events() -> None:
    unheard = sa.text("state = 'sent' AND send_event_at IS NULL")
    op.create_index(
        "message_jobs_unheard",
        "message_jobs",
        ["claimed_at"],
        sqlite_where=unheard,
        postgresql_where=unheard,
    )
    op.add_column("canaries", sa.Column("route", sa.Text(), nullable=False, server_default=""))
    op.create_index("canaries_sent", "canaries", ["sent_at"])
    op.add_column(
        "event_receivers", sa.Column("left", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.create_table(
        "event_topics",
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("subscribed_at", Moment(), nullable=False),
        sa.Column("ended_at", Moment()),
        sa.PrimaryKeyConstraint("topic"),
    )
    op.create_table(
        "unreadable_events",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("received_at", Moment(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("event_id"),
    )


def _letters_and_mailouts() -> None:
    op.add_column("letters", sa.Column("reply_to", sa.Text()))
    op.add_column(
        "letters", sa.Column("text_only", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.add_column("mailouts", sa.Column("send_at", Moment()))
    op.add_column(
        "mailouts", sa.Column("scheduled", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.add_column("mailouts", sa.Column("except_of", Document))
    op.add_column("mailouts", sa.Column("except_cursor", sa.Text()))
    op.add_column("mailouts", sa.Column("page_event", sa.Text()))
    op.add_column("mailouts", sa.Column("page_event_at", Moment()))
    op.create_index(
        "mailouts_scheduled",
        "mailouts",
        ["send_at"],
        sqlite_where=sa.text("scheduled"),
        postgresql_where=sa.text("scheduled"),
    )
    op.create_table(
        "excluded_recipients",
        sa.Column("mailout_id", Identifier, nullable=False),
        sa.Column("suppression_key", sa.Text(), nullable=False),
        sa.Column("by_mailout_id", Identifier, nullable=False),
        sa.ForeignKeyConstraint(["mailout_id"], ["mailouts.id"]),
        sa.PrimaryKeyConstraint("mailout_id", "suppression_key"),
    )
    op.add_column("ledger", sa.Column("link_secrets", sa.LargeBinary()))


def _people() -> None:
    op.add_column("subscribers", sa.Column("consent", sa.Text()))
    op.add_column("suppressions", sa.Column("job_id", Identifier))
