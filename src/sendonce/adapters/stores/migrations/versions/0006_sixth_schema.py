"""The sixth schema: the books of each dispatch as counters, made from the rows of its jobs.

One transaction: a process that is killed in it leaves the former schema as it was. Nobody may move a job
meanwhile, for it would be counted in its former state for ever.
"""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Identifier

revision = "0006"
down_revision = "0005"

_STATES = ("scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt")
_MARKS = {
    "delivered": "delivered_at",
    "bounced": "bounced_at",
    "complained": "complained_at",
    "rejected": "rejected_at",
    "duplicates": "duplicate_at",
}
_WHOLE_LEDGER = "00000000-0000-0000-0000-000000000000"


def upgrade() -> None:
    columns = [*_STATES, *_MARKS]
    op.create_table(
        "dispatch_books",
        sa.Column("dispatch_id", Identifier, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False) for name in columns),
        sa.PrimaryKeyConstraint("dispatch_id", "slot"),
        sqlite_with_rowid=False,
    )
    on_postgres = op.get_bind().dialect.name == "postgresql"
    if on_postgres:
        op.execute("LOCK TABLE message_jobs IN SHARE ROW EXCLUSIVE MODE")
    counted = [f"count(CASE WHEN state = '{state}' THEN 1 END)" for state in _STATES]
    counted += [f"count({moment})" for moment in _MARKS.values()]
    into = f"INSERT INTO dispatch_books (dispatch_id, slot, {', '.join(columns)})"
    rows = f"SELECT dispatch_id, 0, {', '.join(counted)} FROM message_jobs GROUP BY dispatch_id"  # noqa: S608
    op.execute(f"{into} {rows}")
    summed = ", ".join(f"coalesce(sum({name}), 0)" for name in columns)
    ledger = f"'{_WHOLE_LEDGER}'" + ("::uuid" if on_postgres else "")
    op.execute(f"{into} SELECT {ledger}, 0, {summed} FROM dispatch_books")  # noqa: S608
