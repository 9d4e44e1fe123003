"""The fourth schema: prospecting, campaigns, directions, mailboxes. It adds tables and changes none."""

import sqlalchemy as sa
from alembic import op

from sendonce.adapters.stores.schema import Document, Identifier, Moment

revision = "0004"
down_revision = "0003"

# The seed's names for another view of the same rows.
_OUTREACH_MESSAGES = """
CREATE VIEW outreach_messages AS SELECT w.id, w.company_id, w.contact_id, w.recipient AS email, w.subject,
    w.text AS body, 'email' AS channel,
    CASE WHEN w.status <> 'planned' THEN w.status ELSE j.state END AS status,
    j.reason AS last_error, j.settled_at AS sent_at, w.created_at, w.updated_at
FROM written_letters w LEFT JOIN message_jobs j ON j.id = w.job_id
"""


def upgrade() -> None:
    _create_directions()
    _create_searches()
    _create_companies()
    _create_letters_and_work()
    _create_mailbox_reading()
    _create_campaigns()
    op.execute(_OUTREACH_MESSAGES)


def _create_directions() -> None:
    op.create_table(
        "directions",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("jurisdiction", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("offer", Document),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint("basis IN ('consent', 'legitimate-interest')", name="directions_basis"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )


def _create_searches() -> None:
    op.create_table(
        "serp_queries",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("direction_id", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), server_default="", nullable=False),
        sa.Column("region_code", sa.Text(), server_default="", nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("query_hash", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant_id", "query_hash", name="serp_queries_once"),
    )
    op.create_table(
        "serp_operations",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("query_id", Identifier, nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("provider_id", sa.Text()),
        sa.Column("submits", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("losses", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("polls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Moment(), nullable=False),
        sa.Column("submitted_at", Moment()),
        sa.Column("settled_at", Moment()),
        sa.Column("results", sa.Integer()),
        sa.Column("answer_place", sa.Text()),
        sa.Column("code", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("leased_by", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'submitting', 'submitted', 'fetched', "
            "'done', 'failed', 'expired', 'unknown')",
            name="serp_operations_state",
        ),
        sa.ForeignKeyConstraint(["query_id"], ["serp_queries.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("query_id", "page", name="serp_operations_once"),
        sa.UniqueConstraint("request_hash"),
    )
    _index("serp_operations_open", "serp_operations", ["state", "due_at", "id"], "settled_at IS NULL")
    op.create_table(
        "serp_results",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("operation_id", Identifier, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("snippet", sa.Text(), nullable=False),
        sa.Column("language", sa.Text()),
        sa.Column("metadata", Document, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["operation_id"], ["serp_operations.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("operation_id", "url", name="serp_results_once"),
    )


def _create_companies() -> None:
    op.create_table(
        "companies",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("website_url", sa.Text(), nullable=False),
        sa.Column("language", sa.Text()),
        sa.Column("status", sa.Text(), server_default="new", nullable=False),
        sa.Column("opt_out", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("opt_out_reason", sa.Text()),
        sa.Column("primary_id", Identifier),
        sa.Column("inn", sa.Text()),
        sa.Column("ogrn", sa.Text()),
        sa.Column("city", sa.Text()),
        sa.Column("facts", Document, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("crawled_at", Moment()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "status IN ('new', 'enriched', 'no_contacts', 'unreachable', 'duplicate')",
            name="companies_status",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant_id", "domain", name="companies_once"),
    )
    _index("companies_duplicates", "companies", ["primary_id"], "primary_id IS NOT NULL")
    _index("companies_new", "companies", ["tenant_id", "id"], "status = 'new'")
    op.create_table(
        "company_domains",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("company_id", Identifier, nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "domain"),
    )
    op.create_index("company_domains_of", "company_domains", ["company_id"])
    op.create_table(
        "company_queries",
        sa.Column("company_id", Identifier, nullable=False),
        sa.Column("query_id", Identifier, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["query_id"], ["serp_queries.id"]),
        sa.PrimaryKeyConstraint("company_id", "query_id"),
    )
    op.create_table(
        "company_marks",
        sa.Column("company_id", Identifier, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.CheckConstraint("kind IN ('inn', 'ogrn', 'redirect', 'name')", name="company_marks_kind"),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("company_id", "kind", "value"),
    )
    op.create_index("company_marks_alike", "company_marks", ["tenant_id", "kind", "value"])
    op.create_table(
        "company_merges",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("primary_id", Identifier, nullable=False),
        sa.Column("duplicate_id", Identifier, nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "evidence IN ('inn', 'ogrn', 'redirect', 'name', 'person')", name="company_merges_evidence"
        ),
        sa.CheckConstraint(
            "state IN ('nominated', 'merged', 'undone', 'rejected')", name="company_merges_state"
        ),
        sa.ForeignKeyConstraint(["duplicate_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["primary_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("primary_id", "duplicate_id", "evidence", "value", name="company_merges_once"),
    )
    op.create_index("company_merges_duplicate", "company_merges", ["duplicate_id"])
    _index("company_merges_nominated", "company_merges", ["tenant_id", "id"], "state = 'nominated'")
    op.create_table(
        "contacts",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("company_id", Identifier, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("value_key", sa.Text(), nullable=False),
        sa.Column("quality", sa.Float(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_url", sa.Text(), nullable=False),
        sa.Column("role", sa.Text()),
        sa.Column("freemail", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("is_primary", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("takes_mail", sa.Text()),
        sa.Column("trouble", sa.Text()),
        sa.Column("attributes", Document, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("last_seen_at", Moment(), nullable=False),
        sa.CheckConstraint("kind IN ('email', 'phone')", name="contacts_kind"),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("company_id", "kind", "value_key", name="contacts_once"),
    )
    _index("contacts_of_address", "contacts", ["tenant_id", "value_key"], "kind = 'email'")


def _create_letters_and_work() -> None:
    op.create_table(
        "written_letters",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("direction_id", sa.Text(), nullable=False),
        sa.Column("company_id", Identifier, nullable=False),
        sa.Column("contact_id", Identifier, nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("recipient_key", sa.Text(), nullable=False),
        sa.Column("source_url", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("written_by", sa.Text(), nullable=False),
        sa.Column("brief", Document, nullable=False),
        sa.Column("brief_hash", sa.Text(), nullable=False),
        sa.Column("checks", Document, nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("price", sa.Float()),
        sa.Column("status", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("reviewer", sa.Text()),
        sa.Column("reviewed_at", Moment()),
        sa.Column("note", sa.Text()),
        sa.Column("letter_id", Identifier),
        sa.Column("dispatch_id", Identifier),
        sa.Column("job_id", Identifier),
        sa.Column("slot_at", Moment()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "status IN ('waiting', 'approved', 'rejected', 'planned', 'skipped')",
            name="written_letters_status",
        ),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"]),
        sa.ForeignKeyConstraint(["contact_id"], ["contacts.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant_id", "direction_id", "company_id", name="written_letters_once"),
    )
    op.create_index("written_letters_created", "written_letters", ["created_at"])
    _index(
        "written_letters_planned_once",
        "written_letters",
        ["tenant_id", "direction_id", "recipient_key"],
        "status = 'planned'",
        unique=True,
    )
    _index("written_letters_half_planned", "written_letters", ["id"], "status = 'planned' AND job_id IS NULL")
    _index("written_letters_slots", "written_letters", ["slot_at"], "slot_at IS NOT NULL")
    _index("written_letters_job", "written_letters", ["job_id"], "job_id IS NOT NULL")
    _index("written_letters_waiting", "written_letters", ["tenant_id", "status", "id"], "status <> 'planned'")
    op.create_table(
        "processing_jobs",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=False),
        sa.Column("payload", Document, nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Moment(), nullable=False),
        sa.Column("window_until", Moment()),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("leased_by", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'leased', 'done', 'failed')", name="processing_jobs_state"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("dedupe_key"),
    )
    _index(
        "processing_jobs_due",
        "processing_jobs",
        ["kind", "priority", "due_at", "id"],
        "state IN ('waiting', 'leased')",
    )
    op.create_table(
        "pipeline_journal",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "quotas",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.Column("used", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key", "at"),
    )


def _create_mailbox_reading() -> None:
    op.create_table(
        "mailbox_cursors",
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("last_uid", sa.BigInteger(), nullable=False),
        sa.Column("read_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("mailbox", "folder"),
    )
    op.create_table(
        "mailbox_messages",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("message_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("job_id", Identifier),
        sa.Column("sender", sa.Text()),
        sa.Column("recipient", sa.Text()),
        sa.Column("bounce", sa.Text()),
        sa.Column("code", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("sent_at", Moment()),
        sa.Column("found_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("mailbox", "message_key", name="mailbox_messages_once"),
    )
    _index("mailbox_messages_job", "mailbox_messages", ["job_id"], "job_id IS NOT NULL")


def _create_campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("direction_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="ready", nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("window", Document, nullable=False),
        sa.Column("brakes", Document, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.Column("started_at", Moment()),
        sa.Column("ended_at", Moment()),
        sa.CheckConstraint(
            "status IN ('ready', 'running', 'paused', 'finished', 'stopped')", name="campaigns_status"
        ),
        sa.ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant_id", "name", name="campaigns_once"),
    )
    _index("campaigns_open", "campaigns", ["id"], "status IN ('running', 'paused')")
    op.create_table(
        "campaign_steps",
        sa.Column("campaign_id", Identifier, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("letter_id", Identifier, nullable=False),
        sa.Column("after_seconds", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["letter_id"], ["letters.id"]),
        sa.PrimaryKeyConstraint("campaign_id", "step"),
    )
    op.create_table(
        "leads",
        sa.Column("id", Identifier, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("direction_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("company", sa.Text()),
        sa.Column("company_key", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text()),
        sa.Column("receiver", sa.Text(), server_default="other", nullable=False),
        sa.Column("fields", Document, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("stopped", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant_id", "direction_id", "address_key", name="leads_once"),
    )
    op.create_index("leads_of_company", "leads", ["tenant_id", "direction_id", "company_key"])
    op.create_table(
        "campaign_leads",
        sa.Column("campaign_id", Identifier, nullable=False),
        sa.Column("lead_id", Identifier, nullable=False),
        sa.Column("step", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("sender_id", sa.Text()),
        sa.Column("due_at", Moment()),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("reason", sa.Text()),
        sa.CheckConstraint("state IN ('open', 'finished', 'stopped')", name="campaign_leads_state"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["lead_id"], ["leads.id"]),
        sa.PrimaryKeyConstraint("campaign_id", "lead_id"),
    )
    _index("campaign_leads_due", "campaign_leads", ["campaign_id", "due_at", "lead_id"], "state = 'open'")
    _index("campaign_leads_open", "campaign_leads", ["lead_id"], "state = 'open'", unique=True)
    op.create_table(
        "campaign_dispatches",
        sa.Column("campaign_id", Identifier, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("dispatch_id", Identifier, nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["dispatch_id"], ["dispatches.id"]),
        sa.PrimaryKeyConstraint("campaign_id", "step", "sender_id"),
    )
    op.create_table(
        "campaign_letters",
        sa.Column("campaign_id", Identifier, nullable=False),
        sa.Column("lead_id", Identifier, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("dispatch_id", Identifier, nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("slot_at", Moment(), nullable=False),
        sa.Column("state", sa.Text(), server_default="chosen", nullable=False),
        sa.CheckConstraint("state IN ('chosen', 'planned', 'over')", name="campaign_letters_state"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["lead_id"], ["leads.id"]),
        sa.PrimaryKeyConstraint("campaign_id", "lead_id", "step"),
    )
    op.create_index("campaign_letters_newest", "campaign_letters", ["campaign_id", "slot_at"])
    op.create_index("campaign_letters_of_sender", "campaign_letters", ["sender_id", "slot_at"])
    _index("campaign_letters_open", "campaign_letters", ["campaign_id", "state"], "state <> 'over'")
    op.create_index("campaign_letters_to_receiver", "campaign_letters", ["receiver", "slot_at"])
    op.create_table(
        "sender_limits",
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("direction_id", sa.Text(), nullable=False),
        sa.Column("daily", sa.Integer(), nullable=False),
        sa.Column("per_hour", sa.Integer()),
        sa.Column("ramp", Document, nullable=False),
        sa.Column("pace", sa.Float(), server_default=sa.text("1"), nullable=False),
        sa.Column("paced_at", Moment(), nullable=False),
        sa.Column("days_used", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_day", sa.Text(), server_default="", nullable=False),
        sa.Column("credit", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"]),
        sa.PrimaryKeyConstraint("sender_id"),
    )
    op.create_index("sender_limits_of_direction", "sender_limits", ["tenant_id", "direction_id"])
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    held = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=held, postgresql_where=held)
