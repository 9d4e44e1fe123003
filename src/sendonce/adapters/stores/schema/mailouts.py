"""The tables of the room `mailouts`."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from sendonce.adapters.stores.schema.columns import (
    Document,
    Identifier,
    flag,
    metadata,
    moment,
    own_id,
    tenant,
    where,
)

mailouts = Table(
    "mailouts",
    metadata,
    own_id(),
    tenant(),
    Column("letter_id", Identifier, ForeignKey("letters.id")),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_id", Text),
    flag("is_test"),
    Column("audience", Document),
    Column("warnings", Document, nullable=False),
    Column("reported", Text),
    # Until it is started. From then on its dispatch tells.
    Column("status", Text, nullable=False),
    Column("reason", Text),
    flag("forced"),
    # The last address planned.
    Column("plan_cursor", Text, nullable=False, server_default=""),
    Column("key_version", Integer, nullable=False, server_default=text("1")),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    # Told to start at send_at: only then does the clock start it.
    moment("send_at"),
    flag("scheduled"),
    Column("except_of", Document),
    # How far the recipients of those mailouts are gathered; null when there is nothing left to gather.
    Column("except_cursor", Text),
    # The last that its page asked for: what comes a second time, or late, starts nothing.
    Column("page_event", Text),
    moment("page_event_at"),
    CheckConstraint("status IN ('draft', 'ready')", name="mailouts_status"),
    Index("mailouts_scheduled", "send_at", **where("scheduled")),
    # One mailout a page: a button pressed twice finds the first. Tests may be many.
    Index(
        "mailouts_once_a_page",
        "tenant_id",
        "source",
        "source_id",
        unique=True,
        **where("source_id IS NOT NULL AND NOT is_test"),
    ),
)

# While a mailout is planned: who is left out of it, because another mailout went to them.
excluded_recipients = Table(
    "excluded_recipients",
    metadata,
    Column("mailout_id", Identifier, ForeignKey("mailouts.id"), primary_key=True),
    Column("suppression_key", Text, primary_key=True),
    Column("by_mailout_id", Identifier, nullable=False),
)

# Images of letters: the addresses that Notion gives die within the hour.
assets = Table(
    "assets",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("content_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    moment("created_at", nullable=False),
)
