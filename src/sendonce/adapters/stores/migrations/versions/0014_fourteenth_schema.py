"""The fourteenth schema: a job is two rows, one that is never written again and a narrow one that moves.

Every job is copied once, its moving half on PostgreSQL and both halves on SQLite, which rewrites a table for
each column that goes. One transaction: a process that is killed in it leaves the former schema as it was.
"""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Document, Identifier, Moment

revision = "0014"
down_revision = "0013"

_PLANNED = (
    *("id", "tenant_id", "dispatch_id", "recipient", "recipient_key", "suppression_key", "fields"),
    *("letter_id", "sender_id", "thread"),
)
_MOVING = (
    *("due_at", "attempt", "tries", "priority", "state", "code", "reason", "message_id"),
    *("accepted_attempt", "worker_id", "claim_token", "claimed_at", "settled_at"),
    *("death_proof", "death_proof_at", "absence_proof"),
    *("send_event_at", "delivered_at", "bounced_at", "complained_at", "rejected_at", "duplicate_at"),
)
_FORMER_INDEXES = ("scheduled", "retried", "sending", "in_doubt", "dead", "unheard")
# Both have the dispatch, so that a reader's condition on it can use the indexes of either.
_MESSAGE_JOBS = """
CREATE VIEW message_jobs AS SELECT
    planned_jobs.id, tenant_id, planned_jobs.dispatch_id, recipient, recipient_key, suppression_key, fields,
    letter_id, sender_id, thread,
    due_at, attempt, tries, priority, state, code, reason, message_id, accepted_attempt,
    worker_id, claim_token, claimed_at, settled_at, death_proof, death_proof_at, absence_proof,
    send_event_at, delivered_at, bounced_at, complained_at, rejected_at, duplicate_at
FROM planned_jobs
JOIN job_states ON job_states.id = planned_jobs.id AND job_states.dispatch_id = planned_jobs.dispatch_id
"""
_SEND_LOGS = """
CREATE VIEW send_logs AS SELECT id, dispatch_id AS mailout_id, recipient AS email, state AS status,
    reason AS error_message, settled_at AS created_at FROM message_jobs
"""
_OUTREACH_MESSAGES = """
CREATE VIEW outreach_messages AS SELECT w.id, w.company_id, w.contact_id, w.recipient AS email, w.subject,
    w.text AS body, 'email' AS channel,
    CASE WHEN w.status <> 'planned' THEN w.status ELSE s.state END AS status,
    s.reason AS last_error, s.settled_at AS sent_at, w.created_at, w.updated_at
FROM written_letters w LEFT JOIN job_states s ON s.id = w.job_id
"""


def upgrade() -> None:
    op.execute("DROP VIEW send_logs")
    op.execute("DROP VIEW outreach_messages")
    for name in _FORMER_INDEXES:
        op.drop_index(f"message_jobs_{name}", table_name="message_jobs")
    _create_job_states()
    moving = ", ".join(("id", "dispatch_id", *_MOVING))
    op.execute(f"INSERT INTO job_states ({moving}) SELECT {moving} FROM message_jobs ORDER BY id")  # noqa: S608
    _index_job_states()
    if op.get_bind().dialect.name == "sqlite":
        _copy_what_is_planned()
    else:
        _keep_what_is_planned()
    for view in (_MESSAGE_JOBS, _SEND_LOGS, _OUTREACH_MESSAGES):
        op.execute(view)


def _create_job_states() -> None:
    op.create_table(
        "job_states",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("dispatch_id", Identifier, nullable=False),
        sa.Column("due_at", Moment(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("tries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("priority", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("state", sa.Text(), nullable=False, server_default="scheduled"),
        sa.Column("code", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("message_id", sa.Text()),
        sa.Column("accepted_attempt", sa.Integer()),
        sa.Column("worker_id", Identifier),
        sa.Column("claim_token", sa.Text()),
        sa.Column("claimed_at", Moment()),
        sa.Column("settled_at", Moment()),
        sa.Column("death_proof", sa.Text()),
        sa.Column("death_proof_at", Moment()),
        sa.Column("absence_proof", sa.Text()),
        sa.Column("send_event_at", Moment()),
        sa.Column("delivered_at", Moment()),
        sa.Column("bounced_at", Moment()),
        sa.Column("complained_at", Moment()),
        sa.Column("rejected_at", Moment()),
        sa.Column("duplicate_at", Moment()),
        sa.CheckConstraint(
            "state IN ('scheduled', 'sending', 'sent', 'failed', 'skipped', 'dead', 'in_doubt')",
            name="job_states_state",
        ),
        sa.PrimaryKeyConstraint("id"),
    )


def _index_job_states() -> None:
    """After the copy, which is quicker so."""
    _index("scheduled", ["dispatch_id", "due_at", "priority", "id"], "state = 'scheduled'")
    _index("retried", ["dispatch_id", "due_at"], "state = 'scheduled' AND attempt > 0")
    _index("sending", ["dispatch_id", "worker_id"], "state = 'sending'")
    _index("in_doubt", ["id"], "state = 'in_doubt'")
    _index("dead", ["id"], "state = 'dead'")
    _index("unheard", ["claimed_at"], "state = 'sent' AND send_event_at IS NULL")


def _index(name: str, columns: list[str], where: str) -> None:
    held = sa.text(where)
    op.create_index(f"job_states_{name}", "job_states", columns, sqlite_where=held, postgresql_where=held)


def _keep_what_is_planned() -> None:
    """PostgreSQL takes a column away without a look at the rows."""
    op.drop_constraint("message_jobs_state", "message_jobs", type_="check")
    op.rename_table("message_jobs", "planned_jobs")
    for name in ("once", "pkey", "dispatch_id_fkey", "tenant_id_fkey"):
        op.execute(f"ALTER TABLE planned_jobs RENAME CONSTRAINT message_jobs_{name} TO planned_jobs_{name}")
    with op.batch_alter_table("planned_jobs") as batch:
        for name in _MOVING:
            batch.drop_column(name)


def _copy_what_is_planned() -> None:
    # The foreign key of attempts follows the table to its new name, and stays with it when it is replaced.
    op.rename_table("message_jobs", "planned_jobs")
    op.create_table(
        "new_planned_jobs",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("dispatch_id", Identifier, nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("recipient_key", sa.Text(), nullable=False),
        sa.Column("suppression_key", sa.Text(), nullable=False),
        sa.Column("fields", Document, nullable=False),
        sa.Column("letter_id", Identifier),
        sa.Column("sender_id", sa.Text()),
        sa.Column("thread", Document),
        sa.ForeignKeyConstraint(["dispatch_id"], ["dispatches.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("dispatch_id", "recipient_key", name="planned_jobs_once"),
    )
    planned = ", ".join(_PLANNED)
    op.execute(f"INSERT INTO new_planned_jobs ({planned}) SELECT {planned} FROM planned_jobs ORDER BY id")  # noqa: S608
    op.drop_table("planned_jobs")
    op.rename_table("new_planned_jobs", "planned_jobs")
