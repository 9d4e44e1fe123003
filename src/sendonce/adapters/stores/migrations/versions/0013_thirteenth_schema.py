"""The thirteenth schema: when letters of campaigns left, and the terms of tenants."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema.columns import Moment

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("weight", sa.Integer(), nullable=False, server_default=sa.text("1")))
    op.add_column("tenants", sa.Column("daily", sa.Integer()))
    op.add_column("campaign_letters", sa.Column("left_at", Moment))
    op.execute("UPDATE campaign_letters SET left_at = slot_at WHERE state = 'over'")
    op.create_index("campaign_letters_left", "campaign_letters", ["tenant_id", "left_at"])
    op.create_index("campaign_letters_left_sender", "campaign_letters", ["sender_id", "left_at"])
