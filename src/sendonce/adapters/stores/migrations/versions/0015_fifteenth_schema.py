"""The fifteenth schema: suppressions in step with the lists of providers."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema.columns import Moment

revision = "0015"
down_revision = "0014"

_SHARED = sa.text("reason IN ('bounce', 'complaint') AND address IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "suppression_syncs",
        sa.Column("provider", sa.Text(), primary_key=True),
        sa.Column("theirs_from", Moment),
        sa.Column("ours_from", Moment),
        sa.Column("ours_key", sa.Text(), nullable=False, server_default=""),
    )
    op.create_index(
        "suppressions_to_share",
        "suppressions",
        ["created_at", "key"],
        sqlite_where=_SHARED,
        postgresql_where=_SHARED,
    )
