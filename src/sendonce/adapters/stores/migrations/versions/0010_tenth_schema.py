"""The tenth schema: mailboxes of senders and their readings, alarms, and gauges of the last day."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema.columns import Document, Moment

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("sender_identities", sa.Column("imap_host", sa.Text()))
    op.add_column("sender_identities", sa.Column("imap_port", sa.Integer()))
    op.create_table(
        "mailbox_readings",
        sa.Column("mailbox", sa.Text(), primary_key=True),
        sa.Column("read_at", Moment),
        sa.Column("found", Document, nullable=False),
        sa.Column("failed_at", Moment),
        sa.Column("trouble", sa.Text()),
    )
    op.create_table(
        "alarms",
        sa.Column("about", sa.Text(), primary_key=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("began_at", Moment, nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False, server_default=sa.text("false")),
    )
    op.create_table(
        "gauge_readings",
        sa.Column("taken_at", Moment, primary_key=True),
        sa.Column("gauges", Document, nullable=False),
    )
