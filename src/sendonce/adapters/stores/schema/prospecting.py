"""The tables of the room `prospecting`: from a search to a letter that a person has approved."""

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
    flag,
    metadata,
    moment,
    own_id,
    tenant,
    where,
)

# What to search for, where, and how many pages of the answer.
serp_queries = Table(
    "serp_queries",
    metadata,
    own_id(),
    tenant(),
    # None: letters to what it finds name their direction themselves.
    Column("direction_id", Text),
    Column("text", Text, nullable=False),
    Column("region", Text, nullable=False, server_default=""),
    Column("region_code", Text, nullable=False, server_default=""),
    Column("pages", Integer, nullable=False),
    # The same words in the same region and direction are one query, however often they are typed.
    Column("query_hash", Text, nullable=False),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("tenant_id", "query_hash", name="serp_queries_once"),
    ForeignKeyConstraint(["tenant_id", "direction_id"], ["directions.tenant_id", "directions.id"]),
)

# One request to the search provider: a page of a query. Submitting is not idempotent there, so "submitting"
# is committed before the request leaves: see domain/prospecting/searches.
serp_operations = Table(
    "serp_operations",
    metadata,
    own_id(),
    tenant(),
    Column("query_id", Identifier, ForeignKey("serp_queries.id"), nullable=False),
    Column("page", Integer, nullable=False),
    Column("request_hash", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False, server_default="queued"),
    # The provider's own name of it.
    Column("provider_id", Text),
    Column("submits", Integer, nullable=False, server_default=text("0")),
    # Submissions that were, or may have been, paid for and brought no answer.
    Column("losses", Integer, nullable=False, server_default=text("0")),
    Column("polls", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    # When to submit, to poll or to ingest next. Whoever takes it moves it on: that is the lease.
    moment("due_at", nullable=False),
    moment("submitted_at"),
    moment("settled_at"),
    Column("results", Integer),
    Column("answer_place", Text),
    Column("code", Text),
    Column("reason", Text),
    Column("leased_by", Text),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("query_id", "page", name="serp_operations_once"),
    CheckConstraint(
        "state IN ('queued', 'submitting', 'submitted', 'fetched', 'done', 'failed', 'expired', 'unknown')",
        name="serp_operations_state",
    ),
    Index("serp_operations_open", "state", "due_at", "id", **where("settled_at IS NULL")),
)

serp_results = Table(
    "serp_results",
    metadata,
    own_id(),
    tenant(),
    Column("operation_id", Identifier, ForeignKey("serp_operations.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("domain", Text),
    Column("kind", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("snippet", Text, nullable=False),
    Column("language", Text),
    Column("metadata", Document, nullable=False),
    moment("created_at", nullable=False),
    UniqueConstraint("operation_id", "url", name="serp_results_once"),
)

companies = Table(
    "companies",
    metadata,
    own_id(),
    tenant(),
    # The registrable domain, in A-labels: one company for each, ever.
    Column("domain", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("website_url", Text, nullable=False),
    Column("language", Text),
    Column("status", Text, nullable=False, server_default="new"),
    flag("opt_out"),
    # "duplicate" and "group" come and go with merges; any other reason is the company's own and stays.
    Column("opt_out_reason", Text),
    # The company that it is a duplicate of; a primary has none.
    Column("primary_id", Identifier),
    Column("inn", Text),
    Column("ogrn", Text),
    Column("city", Text),
    # What its own pages say of it: [{"fact", "value", "source"}].
    Column("facts", Document, nullable=False),
    Column("reason", Text),
    moment("crawled_at"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("tenant_id", "domain", name="companies_once"),
    CheckConstraint(
        "status IN ('new', 'enriched', 'no_contacts', 'unreachable', 'duplicate')", name="companies_status"
    ),
    Index("companies_new", "tenant_id", "id", **where("status = 'new'")),
    Index("companies_duplicates", "primary_id", **where("primary_id IS NOT NULL")),
)

# Every domain that leads to a company: its own, and those that its site has moved to. This key decides who
# makes the company's row, so it is written first, and has no foreign key: a deferred one would make SQLite
# look through all letters for every new company.
company_domains = Table(
    "company_domains",
    metadata,
    Column("tenant_id", Text, ForeignKey("tenants.id"), primary_key=True),
    Column("domain", Text, primary_key=True),
    Column("company_id", Identifier, nullable=False),
    # "own" or "redirect".
    Column("how", Text, nullable=False),
    moment("created_at", nullable=False),
    Index("company_domains_of", "company_id"),
)

# The queries, and so the regions, that found a company.
company_queries = Table(
    "company_queries",
    metadata,
    Column("company_id", Identifier, ForeignKey("companies.id"), primary_key=True),
    Column("query_id", Identifier, ForeignKey("serp_queries.id"), primary_key=True),
    moment("created_at", nullable=False),
)

# What its pages show that may tell that two companies are one: a tax number, a name, where its site moved to.
company_marks = Table(
    "company_marks",
    metadata,
    Column("company_id", Identifier, ForeignKey("companies.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("tenant_id", Text, ForeignKey("tenants.id"), nullable=False),
    moment("created_at", nullable=False),
    CheckConstraint("kind IN ('inn', 'ogrn', 'redirect', 'name')", name="company_marks_kind"),
    Index("company_marks_alike", "tenant_id", "kind", "value"),
)

# Two companies that are one, or may be: each pair once for each evidence, the older one as primary.
# Who is a duplicate of whom follows from the merged pairs, so undoing one needs no memory of what was before.
company_merges = Table(
    "company_merges",
    metadata,
    own_id(),
    tenant(),
    Column("primary_id", Identifier, ForeignKey("companies.id"), nullable=False),
    Column("duplicate_id", Identifier, ForeignKey("companies.id"), nullable=False),
    Column("evidence", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("actor", Text, nullable=False),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("primary_id", "duplicate_id", "evidence", "value", name="company_merges_once"),
    CheckConstraint("state IN ('nominated', 'merged', 'undone', 'rejected')", name="company_merges_state"),
    CheckConstraint(
        "evidence IN ('inn', 'ogrn', 'redirect', 'name', 'person')", name="company_merges_evidence"
    ),
    Index("company_merges_duplicate", "duplicate_id"),
    Index("company_merges_nominated", "tenant_id", "id", **where("state = 'nominated'")),
)

contacts = Table(
    "contacts",
    metadata,
    own_id(),
    tenant(),
    Column("company_id", Identifier, ForeignKey("companies.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("value", Text, nullable=False),
    # The address or number without what does not tell two of them apart.
    Column("value_key", Text, nullable=False),
    Column("quality", Float, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_url", Text, nullable=False),
    Column("role", Text),
    flag("freemail"),
    flag("is_primary"),
    # Whether its domain takes mail: "yes", "no", or "unknown" when DNS did not answer.
    Column("takes_mail", Text),
    # A permanent bounce or a reply in words: "bounced", "opted_out".
    Column("trouble", Text),
    Column("attributes", Document, nullable=False),
    moment("created_at", nullable=False),
    moment("last_seen_at", nullable=False),
    UniqueConstraint("company_id", "kind", "value_key", name="contacts_once"),
    CheckConstraint("kind IN ('email', 'phone')", name="contacts_kind"),
    Index("contacts_of_address", "tenant_id", "value_key", **where("kind = 'email'")),
)

# A letter to one company, with all that it was written from.
written_letters = Table(
    "written_letters",
    metadata,
    own_id(),
    tenant(),
    Column("direction_id", Text, nullable=False),
    Column("company_id", Identifier, ForeignKey("companies.id"), nullable=False),
    Column("contact_id", Identifier, ForeignKey("contacts.id"), nullable=False),
    Column("recipient", Text, nullable=False),
    Column("recipient_key", Text, nullable=False),
    # The page that the address is from: the letter may have to name it.
    Column("source_url", Text, nullable=False),
    Column("subject", Text, nullable=False),
    # Without the notices that the law wants: they are added when it is planned.
    Column("text", Text, nullable=False),
    Column("language", Text, nullable=False),
    # "llm", "template" or, once edited, "person".
    Column("written_by", Text, nullable=False),
    Column("brief", Document, nullable=False),
    Column("brief_hash", Text, nullable=False),
    Column("checks", Document, nullable=False),
    Column("model", Text),
    Column("price", Float),
    Column("status", Text, nullable=False, server_default="waiting"),
    Column("reviewer", Text),
    moment("reviewed_at"),
    Column("note", Text),
    # Once it is planned, the engine tells what became of it. Without a job it was planned by halves.
    Column("letter_id", Identifier),
    Column("dispatch_id", Identifier),
    Column("job_id", Identifier),
    moment("slot_at"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    # One first letter to a company in a direction, ever.
    UniqueConstraint("tenant_id", "direction_id", "company_id", name="written_letters_once"),
    CheckConstraint(
        "status IN ('waiting', 'approved', 'rejected', 'planned', 'skipped')", name="written_letters_status"
    ),
    # Two companies may share a mailbox: it gets one letter.
    Index(
        "written_letters_planned_once",
        "tenant_id",
        "direction_id",
        "recipient_key",
        unique=True,
        **where("status = 'planned'"),
    ),
    Index("written_letters_half_planned", "id", **where("status = 'planned' AND job_id IS NULL")),
    Index("written_letters_slots", "slot_at", **where("slot_at IS NOT NULL")),
    Index("written_letters_created", "created_at"),
    Index("written_letters_waiting", "tenant_id", "status", "id", **where("status <> 'planned'")),
    Index("written_letters_job", "job_id", **where("job_id IS NOT NULL")),
)

# Work of the pipeline that any worker may take, under a lease: nothing here touches a mailbox.
processing_jobs = Table(
    "processing_jobs",
    metadata,
    own_id(),
    tenant(),
    Column("kind", Text, nullable=False),
    # One open job for one piece of work.
    Column("dedupe_key", Text, nullable=False, unique=True),
    Column("payload", Document, nullable=False),
    # The lowest first.
    Column("priority", Integer, nullable=False, server_default=text("0")),
    # Not before, and not after. The lease of a taken one ends when it is due.
    moment("due_at", nullable=False),
    moment("window_until"),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("leased_by", Text),
    Column("reason", Text),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    CheckConstraint("state IN ('waiting', 'leased', 'done', 'failed')", name="processing_jobs_state"),
    Index(
        "processing_jobs_due", "kind", "priority", "due_at", "id", **where("state IN ('waiting', 'leased')")
    ),
)

# A line for every cycle of every step, whoever its rows belong to.
pipeline_journal = Table(
    "pipeline_journal",
    metadata,
    own_id(),
    Column("step", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("taken", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("note", Text, nullable=False, server_default=""),
    moment("at", nullable=False),
)

# What was used of a limit, and when: sliding windows that hold for all workers and over restarts. Of a
# month's money there is one row, at the beginning of the month.
quotas = Table(
    "quotas",
    metadata,
    Column("key", Text, primary_key=True),
    moment("at", primary_key=True),
    Column("used", Float, nullable=False),
)
