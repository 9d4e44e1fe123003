"""The third schema: dispatches, which are all that the engine knows of a mailout or of any other door.

No message job is copied: their column gets another name, and their foreign key another table. All of it is
one transaction, so that a process that is killed in it leaves the former schema as it was.
"""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Document, Identifier, Moment

revision = "0003"
down_revision = "0002"

_COPY_DISPATCHES = """
INSERT INTO dispatches (
    id, tenant_id, kind, owner_id, letter_id, phase, result, paused, cancelled, reason, is_test,
    planner, planner_until, created_at, updated_at, started_at, ended_at)
SELECT id, tenant_id, 'mailout', CAST(id AS TEXT), letter_id,
    CASE WHEN status IN ('sent', 'failed') THEN 'over'
         WHEN status IN ('draft', 'ready') OR phase = 'fetching' THEN 'preparing' ELSE phase END,
    CASE WHEN status IN ('sent', 'failed') THEN status END,
    paused, cancelled, CASE WHEN paused OR cancelled THEN reason END, is_test,
    planner, planner_until, created_at, updated_at, started_at, sent_at
FROM former_mailouts
"""
_COPY_MAILOUTS = """
INSERT INTO mailouts (
    id, tenant_id, letter_id, name, source, source_id, is_test, audience, warnings, reported, forced,
    plan_cursor, key_version, created_at, updated_at, send_at, scheduled, except_of, except_cursor,
    page_event, page_event_at, status, reason)
SELECT id, tenant_id, letter_id, name, source, source_id, is_test, audience, warnings, reported, forced,
    plan_cursor, key_version, created_at, updated_at, send_at, scheduled, except_of, except_cursor,
    page_event, page_event_at, CASE WHEN status = 'draft' THEN 'draft' ELSE 'ready' END,
    CASE WHEN NOT paused AND NOT cancelled THEN reason END
FROM former_mailouts
"""
_FIRST_DUE = """
UPDATE dispatches SET due_from = (
    SELECT min(j.due_at) FROM message_jobs j WHERE j.dispatch_id = dispatches.id AND j.state = 'scheduled')
WHERE phase IN ('planning', 'running')
"""
_SEND_LOGS = """
CREATE VIEW send_logs AS SELECT id, dispatch_id AS mailout_id, recipient AS email, state AS status,
    reason AS error_message, settled_at AS created_at FROM message_jobs
"""


def upgrade() -> None:
    op.execute("DROP VIEW send_logs")
    op.add_column("tenants", sa.Column("served", sa.Float(), nullable=False, server_default=sa.text("0")))
    _set_former_mailouts_aside()
    _create_dispatches()
    _create_mailouts()
    op.execute(_COPY_DISPATCHES)
    op.execute(_COPY_MAILOUTS)
    op.execute("DROP TABLE former_mailouts")
    _exclude_by_new_mailouts()
    _hang_jobs_on_dispatches()
    op.execute(_FIRST_DUE)
    _let_people_sign_up()
    _rename_in_outbox()
    op.execute(_SEND_LOGS)
    _create_senders()
    op.add_column("letters", sa.Column("language", sa.Text()))


def _on_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def _set_former_mailouts_aside() -> None:
    if _on_sqlite():
        # A foreign key cannot be changed there. It follows a table that gets another name, and stays with
        # that name when the table is replaced, which upgrades may do: they do not enforce foreign keys.
        op.rename_table("mailouts", "dispatches")
        op.execute("CREATE TABLE former_mailouts AS SELECT * FROM dispatches")
        op.drop_table("dispatches")
    else:
        op.drop_constraint("message_jobs_mailout_id_fkey", "message_jobs", type_="foreignkey")
        op.drop_constraint("excluded_recipients_mailout_id_fkey", "excluded_recipients", type_="foreignkey")
        op.execute("CREATE TABLE former_mailouts AS SELECT * FROM mailouts")
        op.drop_table("mailouts")


def _create_dispatches() -> None:
    op.create_table(
        "dispatches",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("letter_id", Identifier),
        sa.Column("sender_id", sa.Text(), nullable=False, server_default=""),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("result", sa.Text()),
        _flag("paused"),
        _flag("cancelled"),
        sa.Column("reason", sa.Text()),
        _flag("is_test"),
        _flag("asked_for"),
        sa.Column("weight", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.Column("due_from", Moment()),
        _flag("awake"),
        sa.Column("served", sa.Float(), nullable=False, server_default=sa.text("0")),
        sa.Column("planner", sa.Text()),
        sa.Column("planner_until", Moment()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.Column("started_at", Moment()),
        sa.Column("ended_at", Moment()),
        sa.CheckConstraint("phase IN ('preparing', 'planning', 'running', 'over')", name="dispatches_phase"),
        sa.CheckConstraint("result IN ('sent', 'failed')", name="dispatches_result"),
        sa.CheckConstraint("weight > 0", name="dispatches_weight"),
        sa.ForeignKeyConstraint(["letter_id"], ["letters.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    _index("dispatches_awake", "dispatches", ["sender_id", "id"], "awake")
    _index("dispatches_open", "dispatches", ["phase", "id"], "phase <> 'over'")
    in_turn = ["tenant_id", "awake", "sender_id", "served", "id"]
    _index("dispatches_in_turn", "dispatches", in_turn, "phase = 'running'")
    of_senders = "phase = 'running' AND NOT paused AND NOT cancelled AND sender_id <> ''"
    _index("dispatches_of_senders", "dispatches", ["sender_id", "due_from"], of_senders)
    asleep = "phase = 'running' AND NOT awake AND NOT paused AND NOT cancelled"
    _index("dispatches_asleep", "dispatches", ["due_from"], asleep)
    _index(
        "dispatches_to_finish", "dispatches", ["id"], "phase = 'running' AND (due_from IS NULL OR cancelled)"
    )


def _create_mailouts() -> None:
    op.create_table(
        "mailouts",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("letter_id", Identifier),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text()),
        _flag("is_test"),
        sa.Column("audience", Document),
        sa.Column("warnings", Document, nullable=False),
        sa.Column("reported", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        _flag("forced"),
        sa.Column("plan_cursor", sa.Text(), nullable=False, server_default=""),
        sa.Column("key_version", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.Column("send_at", Moment()),
        _flag("scheduled"),
        sa.Column("except_of", Document),
        sa.Column("except_cursor", sa.Text()),
        sa.Column("page_event", sa.Text()),
        sa.Column("page_event_at", Moment()),
        sa.CheckConstraint("status IN ('draft', 'ready')", name="mailouts_status"),
        sa.ForeignKeyConstraint(["letter_id"], ["letters.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    _index("mailouts_scheduled", "mailouts", ["send_at"], "scheduled")
    _index(
        "mailouts_once_a_page",
        "mailouts",
        ["tenant_id", "source", "source_id"],
        "source_id IS NOT NULL AND NOT is_test",
        unique=True,
    )


def _exclude_by_new_mailouts() -> None:
    op.execute("CREATE TABLE former_exclusions AS SELECT * FROM excluded_recipients")
    op.drop_table("excluded_recipients")
    op.create_table(
        "excluded_recipients",
        sa.Column("mailout_id", Identifier, nullable=False),
        sa.Column("suppression_key", sa.Text(), nullable=False),
        sa.Column("by_mailout_id", Identifier, nullable=False),
        sa.ForeignKeyConstraint(["mailout_id"], ["mailouts.id"]),
        sa.PrimaryKeyConstraint("mailout_id", "suppression_key"),
    )
    op.execute(
        "INSERT INTO excluded_recipients (mailout_id, suppression_key, by_mailout_id) "
        "SELECT mailout_id, suppression_key, by_mailout_id FROM former_exclusions"
    )
    op.execute("DROP TABLE former_exclusions")


def _hang_jobs_on_dispatches() -> None:
    op.alter_column("message_jobs", "mailout_id", new_column_name="dispatch_id")
    if not _on_sqlite():
        op.create_foreign_key(None, "message_jobs", "dispatches", ["dispatch_id"], ["id"])
    op.add_column("message_jobs", sa.Column("letter_id", Identifier))
    op.add_column("message_jobs", sa.Column("sender_id", sa.Text()))
    op.add_column("message_jobs", sa.Column("thread", Document))
    op.add_column(
        "message_jobs",
        sa.Column("priority", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
    )
    op.drop_index("message_jobs_scheduled", table_name="message_jobs")
    order = ["dispatch_id", "due_at", "priority", "id"]
    _index("message_jobs_scheduled", "message_jobs", order, "state = 'scheduled'")
    _index("message_jobs_dead", "message_jobs", ["id"], "state = 'dead'")


def _let_people_sign_up() -> None:
    op.create_table(
        "sign_ups",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("wording", sa.Text(), nullable=False),
        sa.Column("requested_at", Moment(), nullable=False),
        sa.Column("confirmed_at", Moment()),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("sign_ups_of_mailbox", "sign_ups", ["mailbox", "requested_at"])
    known = "status = 'active' OR status IN ('unsubscribed', 'bounced') OR status = 'pending'"
    with op.batch_alter_table("subscribers") as batch:
        batch.drop_constraint("subscribers_status", type_="check")
        batch.create_check_constraint("subscribers_status", known)


def _rename_in_outbox() -> None:
    """What is still to be told of mailouts that ended."""
    outbox = sa.table(
        "outbox", sa.column("id", Identifier), sa.column("topic", sa.Text), sa.column("body", Document)
    )
    bind = op.get_bind()
    for entry in bind.execute(sa.select(outbox).where(outbox.c.topic == "mailout.report")).all():
        told = entry.body["mailout_id"]
        body = {"dispatch_id": told, "owner_id": told, "result": entry.body.get("status")}
        renamed = outbox.update().where(outbox.c.id == entry.id)
        bind.execute(renamed.values(topic="mailout.ended", body=body))


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.text("false"))


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    held = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=held, postgresql_where=held)


def _create_senders() -> None:
    op.add_column("workers", sa.Column("sender_id", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "sender_identities",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("reply_to", sa.Text()),
        sa.Column("port", sa.Integer()),
        sa.Column("security", sa.Text()),
        sa.Column("username", sa.Text()),
        sa.Column("secret_from", sa.Text()),
        sa.Column("configuration_set", sa.Text()),
        sa.Column("rate_limit", sa.Integer()),
        sa.Column("rate_key", sa.Text()),
        sa.Column("connections", sa.Integer()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("removed_at", Moment()),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("address_key"),
    )
