"""The tables of the room `people`."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text, text

from sendonce.adapters.stores.schema.columns import (
    Document,
    Identifier,
    metadata,
    moment,
    own_id,
    tenant,
    where,
)

FOLDED = "(address_key LIKE '%+%' OR address_key LIKE '%.%@gmail.com' OR address_key LIKE '%@googlemail.com')"
"""Of an address that ``suppression_fold`` writes in another way; all others are their own fold."""

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    moment("created_at", nullable=False),
    # Its share beside other tenants, and its letters of campaigns in any 24 hours.
    Column("weight", Integer, nullable=False, server_default=text("1")),
    Column("daily", Integer),
)

subscribers = Table(
    "subscribers",
    metadata,
    # Only the indexes that queries need, and no foreign key: a million people arrive here at once. Every
    # write goes through import_people, which looks for the tenant.
    Column("id", Identifier, nullable=False),
    Column("tenant_id", Text, primary_key=True),
    Column("email", Text, nullable=False),
    Column("address_key", Text, primary_key=True),
    Column("suppression_key", Text, nullable=False),
    Column("from_name", Text),
    Column("attributes", Document, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    Column("bounce_type", Text),
    Column("bounce_subtype", Text),
    # When and how the person agreed, in the words of whoever added them.
    Column("consent", Text),
    moment("status_updated_at"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    # SQLite looks through an IN of three in a table, which costs every row; one of two is two comparisons.
    CheckConstraint(
        "status = 'active' OR status IN ('unsubscribed', 'bounced') OR status = 'pending'",
        name="subscribers_status",
    ),
    # Keys are hashes, and each new one dirties a page of its own. So only those of people whom the primary
    # key does not find: see sql/subscribers.py.
    Index("subscribers_folded", "suppression_key", **where(FOLDED)),
)

# Who asked for letters on a form, and what they agreed to: the record of consent once it is confirmed.
sign_ups = Table(
    "sign_ups",
    metadata,
    own_id(),
    tenant(),
    Column("email", Text, nullable=False),
    # The widest reading of the address: spellings of one mailbox share its few letters.
    Column("mailbox", Text, nullable=False),
    Column("name", Text),
    Column("source", Text, nullable=False),
    Column("wording", Text, nullable=False),
    moment("requested_at", nullable=False),
    moment("confirmed_at"),
    Index("sign_ups_of_mailbox", "mailbox", "requested_at"),
)

# The tenant '*' is the whole house: a global suppression.
suppressions = Table(
    "suppressions",
    metadata,
    Column("key", Text, primary_key=True),
    Column("tenant_id", Text, primary_key=True),
    Column("address", Text),
    Column("reason", Text, nullable=False),
    Column("note", Text),
    # The letter whose link was clicked; for a while, it alone can take the unsubscription back.
    Column("job_id", Identifier),
    moment("created_at", nullable=False),
    # What providers' lists are told, in the order in which it came.
    Index(
        "suppressions_to_share",
        "created_at",
        "key",
        **where("reason IN ('bounce', 'complaint') AND address IS NOT NULL"),
    ),
)

# How far each provider's list of suppressed addresses was read, and how far ours was told to it.
suppression_syncs = Table(
    "suppression_syncs",
    metadata,
    Column("provider", Text, primary_key=True),
    moment("theirs_from"),
    moment("ours_from"),
    Column("ours_key", Text, nullable=False, server_default=""),
)

# What a tenant writes to strangers about: under which law, on which basis, in which language. Without it
# nothing goes to people who did not subscribe.
directions = Table(
    "directions",
    metadata,
    Column("tenant_id", Text, ForeignKey("tenants.id"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("jurisdiction", Text, nullable=False),
    Column("basis", Text, nullable=False),
    Column("note", Text),
    Column("language", Text, nullable=False),
    # What is offered: the part of a letter's brief that is the same for every company.
    Column("offer", Document),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    CheckConstraint("basis IN ('consent', 'legitimate-interest')", name="directions_basis"),
)
