"""The eighth schema: whose letters they are. It adds a table that workers fill, and changes none."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Identifier

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "person_index",
        sa.Column("shelf", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key_hash", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("job_id", Identifier, nullable=False),
        sa.PrimaryKeyConstraint("shelf", "key_hash", "job_id"),
        sqlite_with_rowid=False,
    )
