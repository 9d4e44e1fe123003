"""The fifth schema: the turns of tenants at each sender."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _take_turns_at_each_sender()


def _take_turns_at_each_sender() -> None:
    op.create_table(
        "tenant_turns",
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("served", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("sender_id", "tenant_id"),
    )
    # Who wakes up gets a turn there.
    op.execute("UPDATE dispatches SET awake = false WHERE awake")
    op.drop_column("tenants", "served")
