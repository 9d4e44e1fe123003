"""The seventeenth schema: from when on the brakes judge, after a person let something go on."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Moment

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for table in ("campaigns", "sender_limits"):
        op.add_column(table, sa.Column("judged_from", Moment))
