"""The fifth schema: the turns of tenants at each sender, and which dispatches have due times of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _take_turns_at_each_sender()
    _tell_the_times_of_doors()
    # Of the time before, nobody knows whether the door is still at it.
    op.execute(
        "UPDATE dispatches SET planner = 'door', planner_until = created_at "
        "WHERE phase = 'planning' AND kind <> 'mailout'"
    )


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


def _tell_the_times_of_doors() -> None:
    chosen = sa.Column("own_times", sa.Boolean, nullable=False, server_default=sa.text("false"))
    op.add_column("dispatches", chosen)
    # Mailouts leave the times to the engine. Of all else it is not known: what a door chose must stand.
    op.execute("UPDATE dispatches SET own_times = true WHERE kind <> 'mailout'")
    retried = sa.text("state = 'scheduled' AND attempt > 0")
    op.create_index(
        "message_jobs_retried",
        "message_jobs",
        ["dispatch_id", "due_at"],
        sqlite_where=retried,
        postgresql_where=retried,
    )
