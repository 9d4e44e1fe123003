"""The seventh schema: how far slow duties have come. It adds a table and changes none."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Identifier

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "duty_cursors",
        sa.Column("duty", sa.Text(), nullable=False),
        sa.Column("last_id", Identifier),
        sa.PrimaryKeyConstraint("duty"),
    )
