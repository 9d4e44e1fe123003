"""The ninth schema: a chain of hashes through the audit log. What is logged already stays outside of it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("audit_log", sa.Column("number", sa.BigInteger()))
    for name in ("salt", "digest", "hash"):
        op.add_column("audit_log", sa.Column(name, sa.Text()))
    op.create_index("audit_log_chain", "audit_log", ["number"], unique=True)
