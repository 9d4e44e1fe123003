"""Nobody reads the tables but their owner: row level security without policies, on PostgreSQL.

Supabase serves every table of the schema ``public`` to whoever has the project's public key, unless row
level security is on. The owner of a table passes it by, and so does a view of the owner's: a view must look
with the rights of whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import metadata

# The rest is made by migrations, not by the schema: views and the numbers of claims.
OURS = (
    *sorted(metadata.tables),
    "alembic_version",
    "message_jobs",
    "send_logs",
    "opt_out_registry",
    "outreach_messages",
    "campaign_jobs",
    "campaign_events",
    "claim_seq",
)
# What strangers are called on Supabase: anybody with the public key, and anybody who is signed in.
STRANGERS = ("anon", "authenticated")
# From this version on a view can look with the rights of whoever asks.
_INVOKER_VIEWS = 150_000


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or sequence of ours: ``guarded`` by row level security, or by the asker's rights."""

    name: str
    kind: str
    guarded: bool
    hides_rows_from_us: bool
    open_to: tuple[str, ...]


def lock_out_strangers(tx: Connection) -> None:
    """After every upgrade, for all that is there: later migrations need not think of it."""
    invoker_views = _server_version(tx) >= _INVOKER_VIEWS
    strangers = _strangers(tx)
    for relation in relations(tx):
        name = _quoted(tx, relation.name)
        if relation.kind == "table":
            tx.exec_driver_sql(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        elif relation.kind == "view" and invoker_views:
            tx.exec_driver_sql(f"ALTER VIEW {name} SET (security_invoker = true)")
        what = "SEQUENCE" if relation.kind == "sequence" else "TABLE"
        whom = ", ".join(["PUBLIC", *strangers])
        tx.exec_driver_sql(f"REVOKE ALL ON {what} {name} FROM {whom}")


def relations(tx: Connection) -> Sequence[Relation]:
    """What is ours in the schema that this connection uses."""
    values = {"ours": list(OURS), "strangers": list(STRANGERS)}
    rows = tx.execute(_RELATIONS, values)
    return [Relation(row[0], row[1], row[2], row[3], open_to=tuple(row[4])) for row in rows]


def hidden_from_us(tx: Connection) -> list[str]:
    """The tables whose rows row level security hides from our own role: they would look empty."""
    return [relation.name for relation in relations(tx) if relation.hides_rows_from_us]


def exposed(tx: Connection) -> list[str]:
    """What a stranger may read, as far as the database itself decides."""
    return [each.name for each in relations(tx) if each.open_to and not each.guarded]


def unguarded(tx: Connection) -> list[str]:
    """Tables without row level security: open to whomever somebody grants a right."""
    return [each.name for each in relations(tx) if each.kind == "table" and not each.guarded]


_RELATIONS = sa.text("""
    SELECT c.relname,
        CASE c.relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END,
        c.relrowsecurity OR coalesce('security_invoker=true' = ANY (c.reloptions), false),
        row_security_active(c.oid),
        ARRAY(
            SELECT r.rolname::text FROM pg_roles r
            WHERE r.rolname = ANY (:strangers) AND c.relkind <> 'S'
              AND has_table_privilege(r.oid, c.oid, 'SELECT')
        )
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace
      AND c.relname = ANY (:ours)
      AND c.relkind IN ('r', 'p', 'v', 'S')
    ORDER BY c.relname
""")


def _strangers(tx: Connection) -> list[str]:
    query = sa.text("SELECT rolname FROM pg_roles WHERE rolname = ANY (:names) ORDER BY rolname")
    return [str(row[0]) for row in tx.execute(query, {"names": list(STRANGERS)})]


def _server_version(tx: Connection) -> int:
    return int(tx.exec_driver_sql("SHOW server_version_num").scalar_one())


def _quoted(tx: Connection, name: str) -> str:
    return tx.dialect.identifier_preparer.quote(name)
