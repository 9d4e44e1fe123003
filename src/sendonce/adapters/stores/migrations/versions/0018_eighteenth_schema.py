"""The eighteenth schema: SQLite checks the state of a job by comparisons, not by a list."""

from alembic import op

revision = "0018"
down_revision = "0017"

_BY_LIST = "state IN ('scheduled', 'sending', 'sent', 'failed', 'skipped', 'dead', 'in_doubt')"
_BY_COMPARISONS = (
    "state = 'sent' OR state = 'sending' OR state = 'scheduled' OR state = 'failed' OR state = 'skipped'"
    " OR state = 'dead' OR state = 'in_doubt'"
)


def upgrade() -> None:
    """PostgreSQL is equally fast with both. SQLite can change a constraint only by a copy of the table, or,
    where the rows stay as they are, by an edit of the table's own text:
    https://sqlite.org/lang_altertable.html#otheralter
    """
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = 'job_states'",
        (_BY_LIST, _BY_COMPARISONS),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")  # other connections read it again
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")
