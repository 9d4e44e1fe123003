"""The tables, once for SQLite and PostgreSQL, a file a room.

Migrations are written from them (see migrations/).
"""

from __future__ import annotations

from sendonce.adapters.stores.schema.campaigns import (
    campaign_leads,
    campaign_letters,
    campaign_steps,
    campaigns,
    leads,
    leases,
    sender_limits,
)
from sendonce.adapters.stores.schema.columns import SQLITE_TIME, Document, Identifier, Moment, metadata
from sendonce.adapters.stores.schema.engine import (
    attempts,
    audit_log,
    canaries,
    delivery_events,
    dispatches,
    event_receivers,
    event_topics,
    ledger,
    letters,
    mailbox_cursors,
    mailbox_messages,
    message_jobs,
    outbox,
    permit_keys,
    permits,
    sender_holds,
    sender_identities,
    unreadable_events,
    workers,
)
from sendonce.adapters.stores.schema.mailouts import (
    assets,
    excluded_recipients,
    mailouts,
)
from sendonce.adapters.stores.schema.people import (
    directions,
    sign_ups,
    subscribers,
    suppressions,
    tenants,
)
from sendonce.adapters.stores.schema.prospecting import (
    companies,
    company_domains,
    company_marks,
    company_merges,
    company_queries,
    contacts,
    pipeline_journal,
    processing_jobs,
    quotas,
    serp_operations,
    serp_queries,
    serp_results,
    written_letters,
)

# The newest migration. Compared with the database at every start, without importing Alembic.
HEAD = "0004"

__all__ = [
    "HEAD",
    "SQLITE_TIME",
    "Document",
    "Identifier",
    "Moment",
    "assets",
    "attempts",
    "audit_log",
    "campaign_leads",
    "campaign_letters",
    "campaign_steps",
    "campaigns",
    "canaries",
    "companies",
    "company_domains",
    "company_marks",
    "company_merges",
    "company_queries",
    "contacts",
    "delivery_events",
    "directions",
    "dispatches",
    "event_receivers",
    "event_topics",
    "excluded_recipients",
    "leads",
    "leases",
    "ledger",
    "letters",
    "mailbox_cursors",
    "mailbox_messages",
    "mailouts",
    "message_jobs",
    "metadata",
    "outbox",
    "permit_keys",
    "permits",
    "pipeline_journal",
    "processing_jobs",
    "quotas",
    "sender_holds",
    "sender_identities",
    "sender_limits",
    "serp_operations",
    "serp_queries",
    "serp_results",
    "sign_ups",
    "subscribers",
    "suppressions",
    "tenants",
    "unreadable_events",
    "workers",
    "written_letters",
]
