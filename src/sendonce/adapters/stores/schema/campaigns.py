"""The tables of the room `campaigns`: leads, campaigns of several steps, and their planned letters."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from sendonce.adapters.stores.schema.columns import (
    Document,
    Identifier,
    metadata,
    moment,
    own_id,
    tenant,
    where,
)

campaigns = Table(
    "campaigns",
    metadata,
    own_id(),
    tenant(),
    Column("direction_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="ready"),
    Column("reason", Text),
    # The window and the brakes, as the file says them.
    Column("window", Document, nullable=False),
    Column("brakes", Document, nullable=False),
    # Letters with earlier slots were what a brake stopped it for.
    moment("judged_from"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    moment("started_at"),
    moment("ended_at"),
    CheckConstraint(
        "status IN ('ready', 'running', 'paused', 'finished', 'stopped')", name="campaigns_status"
    ),
    ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
    UniqueConstraint("tenant_id", "name", name="campaigns_once"),
    Index("campaigns_open", "id", **where("status IN ('running', 'paused')")),
)

campaign_steps = Table(
    "campaign_steps",
    metadata,
    Column("campaign_id", Identifier, ForeignKey("campaigns.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("letter_id", Identifier, ForeignKey("letters.id"), nullable=False),
    Column("after_seconds", Integer, nullable=False),
)

# People whom a direction may write to: one row for each of its addresses, ever.
leads = Table(
    "leads",
    metadata,
    own_id(),
    tenant(),
    Column("direction_id", Text, nullable=False),
    Column("email", Text, nullable=False),
    Column("address_key", Text, nullable=False),
    Column("name", Text),
    # Its colleagues have the same: a reply of one stops the letters to all.
    Column("company", Text),
    Column("company_key", Text, nullable=False),
    Column("timezone", Text),
    # Who receives its mail: google, microsoft, yahoo, mailru, yandex, other.
    Column("receiver", Text, nullable=False, server_default="other"),
    Column("fields", Document, nullable=False),
    Column("source", Text, nullable=False),
    Column("stopped", Text),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("tenant_id", "direction_id", "address_key", name="leads_once"),
    ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
    Index("leads_of_company", "tenant_id", "direction_id", "company_key"),
)

# How far a campaign got with a lead.
campaign_leads = Table(
    "campaign_leads",
    metadata,
    Column("campaign_id", Identifier, ForeignKey("campaigns.id"), primary_key=True),
    Column("lead_id", Identifier, ForeignKey("leads.id"), primary_key=True),
    # The steps that are planned or done.
    Column("step", Integer, nullable=False, server_default=text("0")),
    # Follow-ups leave from where the first letter did.
    Column("sender_id", Text),
    # No next step before it; null where no more is to come, or its letter is still under way.
    moment("due_at"),
    Column("state", Text, nullable=False, server_default="open"),
    Column("reason", Text),
    CheckConstraint("state IN ('open', 'finished', 'stopped')", name="campaign_leads_state"),
    Index("campaign_leads_due", "campaign_id", "due_at", "lead_id", **where("state = 'open'")),
    # A lead is in one open campaign at a time.
    Index("campaign_leads_open", "lead_id", unique=True, **where("state = 'open'")),
)

# The letters of a step that leave from one sender.
campaign_dispatches = Table(
    "campaign_dispatches",
    metadata,
    Column("campaign_id", Identifier, ForeignKey("campaigns.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("sender_id", Text, primary_key=True),
    Column("dispatch_id", Identifier, ForeignKey("dispatches.id"), nullable=False),
)

# One letter of a step to a lead, ever: written before the engine hears of it, so that a process that dies
# between the two plans the same letter again, from the same sender.
campaign_letters = Table(
    "campaign_letters",
    metadata,
    Column("campaign_id", Identifier, ForeignKey("campaigns.id"), primary_key=True),
    Column("lead_id", Identifier, ForeignKey("leads.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column("sender_id", Text, nullable=False),
    Column("dispatch_id", Identifier, nullable=False),
    Column("address_key", Text, nullable=False),
    Column("receiver", Text, nullable=False),
    # By the campaigns' clock.
    moment("slot_at", nullable=False),
    Column("state", Text, nullable=False, server_default="chosen"),
    # When its job was settled, by the campaigns' clock: a limit counts it from then on by this.
    moment("left_at"),
    CheckConstraint("state IN ('chosen', 'planned', 'over')", name="campaign_letters_state"),
    Index("campaign_letters_open", "campaign_id", "state", **where("state <> 'over'")),
    Index("campaign_letters_of_sender", "sender_id", "slot_at"),
    Index("campaign_letters_to_receiver", "receiver", "slot_at"),
    Index("campaign_letters_newest", "campaign_id", "slot_at"),
    Index("campaign_letters_left", "tenant_id", "left_at"),
    Index("campaign_letters_left_sender", "sender_id", "left_at"),
)

# What a sender of a pool may do, and how it does.
sender_limits = Table(
    "sender_limits",
    metadata,
    Column("sender_id", Text, primary_key=True),
    Column("tenant_id", Text, ForeignKey("tenants.id"), nullable=False),
    Column("direction_id", Text, nullable=False),
    Column("daily", Integer, nullable=False),
    Column("per_hour", Integer),
    Column("ramp", Document, nullable=False),
    # The share of its rate that deferrals have left it.
    Column("pace", Float, nullable=False, server_default=text("1")),
    moment("paced_at", nullable=False),
    # Letters with earlier slots were what a brake blocked it for.
    moment("judged_from"),
    # The days on which it sent, for its warm-up, and the last of them.
    Column("days_used", Integer, nullable=False, server_default=text("0")),
    Column("last_day", Text, nullable=False, server_default=""),
    # Its standing in the rotation.
    Column("credit", Float, nullable=False, server_default=text("0")),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    Index("sender_limits_of_direction", "tenant_id", "direction_id"),
)

# Work that one process at a time may do, as long as it says that it lives.
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    moment("until", nullable=False),
)
