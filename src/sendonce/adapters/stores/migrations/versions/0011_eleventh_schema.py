"""The eleventh schema: a second region for senders on SES."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    away = sa.Column("elsewhere", sa.Boolean, nullable=False, server_default=sa.text("false"))
    op.add_column("sender_holds", away)
    for name in ("second_region", "second_configuration_set"):
        op.add_column("sender_identities", sa.Column(name, sa.Text()))
