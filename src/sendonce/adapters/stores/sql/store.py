"""Opening a database: the schema checked or made, the identity read, the parts put together."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from sendonce.adapters.stores.schema import HEAD, ledger, tenants
from sendonce.adapters.stores.sql.assets import SqlAssets
from sendonce.adapters.stores.sql.audit import SqlAuditLog
from sendonce.adapters.stores.sql.campaigns.campaigns import SqlCampaigns
from sendonce.adapters.stores.sql.campaigns.found_contacts import SqlFoundContacts
from sendonce.adapters.stores.sql.campaigns.pools import SqlLeads, SqlLeases, SqlPools
from sendonce.adapters.stores.sql.clients import SqlDirections, SqlTenants
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.dispatches import SqlDispatches
from sendonce.adapters.stores.sql.event_route import SqlEventRoute
from sendonce.adapters.stores.sql.events import SqlEvents
from sendonce.adapters.stores.sql.jobs import SqlJobs
from sendonce.adapters.stores.sql.keys import SqlKeys
from sendonce.adapters.stores.sql.letters import SqlLetters
from sendonce.adapters.stores.sql.mailbox_log import SqlMailboxLog
from sendonce.adapters.stores.sql.mailouts import SqlMailouts
from sendonce.adapters.stores.sql.outbox import SqlOutbox
from sendonce.adapters.stores.sql.people import SqlPeople
from sendonce.adapters.stores.sql.prospecting.companies import SqlCompanies
from sendonce.adapters.stores.sql.prospecting.contacts import SqlContacts
from sendonce.adapters.stores.sql.prospecting.duplicates import SqlDuplicates
from sendonce.adapters.stores.sql.prospecting.funnels import SqlFunnels
from sendonce.adapters.stores.sql.prospecting.journal import SqlPipelineJournal
from sendonce.adapters.stores.sql.prospecting.quotas import SqlQuotas
from sendonce.adapters.stores.sql.prospecting.search_operations import SqlSearchOperations
from sendonce.adapters.stores.sql.prospecting.searches import SqlSearches
from sendonce.adapters.stores.sql.prospecting.tasks import SqlTasks
from sendonce.adapters.stores.sql.prospecting.written_letters import SqlWrittenLetters
from sendonce.adapters.stores.sql.quick_turns import ledger_of
from sendonce.adapters.stores.sql.row_security import exposed, hidden_from_us, lock_out_strangers, unguarded
from sendonce.adapters.stores.sql.rows import new_id
from sendonce.adapters.stores.sql.sender_holds import SqlSenderHolds
from sendonce.adapters.stores.sql.senders import SqlSenders
from sendonce.adapters.stores.sql.sign_ups import SqlSignUps
from sendonce.adapters.stores.sql.subscribers import SqlSubscribers
from sendonce.adapters.stores.sql.suppression_syncs import SqlSuppressionSyncs
from sendonce.adapters.stores.sql.suppressions import SqlSuppressions
from sendonce.adapters.stores.sql.watch import SqlAlarms, SqlGaugeLog
from sendonce.adapters.stores.sql.workers import SqlCanaries, SqlPermits, SqlWorkers
from sendonce.domain.people.peppers import LINK_LENGTH
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_LIMIT
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import RefusedByRule, SchemaMismatch, Unavailable
from sendonce.ports.campaigns import Campaigns, FoundContacts, Leads, Pools
from sendonce.ports.engine import (
    Alarms,
    Canaries,
    Dispatches,
    EventRoute,
    Events,
    GaugeLog,
    Jobs,
    Leases,
    Ledger,
    Letters,
    MailboxLog,
    Outbox,
    Permits,
    SenderHolds,
    Senders,
    Workers,
)
from sendonce.ports.mailouts import Assets, Mailouts
from sendonce.ports.people import (
    AuditLog,
    Directions,
    Keys,
    People,
    SignUps,
    Subscribers,
    Suppressions,
    SuppressionSyncs,
    Tenants,
)
from sendonce.ports.prospecting import (
    Companies,
    CompanyContacts,
    Duplicates,
    Funnels,
    PipelineJournal,
    Quotas,
    Searches,
    SearchOperations,
    Tasks,
    WrittenLetters,
)

if TYPE_CHECKING:
    from alembic.config import Config


class SqlStore:
    """All the parts over one database. Use ``open_store`` to get one that is fit for use."""

    ledger: Ledger
    jobs: Jobs
    dispatches: Dispatches
    letters: Letters
    canaries: Canaries
    event_route: EventRoute
    mailouts: Mailouts
    assets: Assets
    outbox: Outbox
    mailbox_log: MailboxLog
    subscribers: Subscribers
    sign_ups: SignUps
    suppressions: Suppressions
    suppression_syncs: SuppressionSyncs
    people: People
    keys: Keys
    audit_log: AuditLog
    tenants: Tenants
    directions: Directions
    campaigns: Campaigns
    leads: Leads
    found_contacts: FoundContacts
    pools: Pools
    leases: Leases
    gauge_log: GaugeLog
    alarms: Alarms
    events: Events
    workers: Workers
    permits: Permits
    senders: Senders
    sender_holds: SenderHolds
    companies: Companies
    contacts: CompanyContacts
    duplicates: Duplicates
    tasks: Tasks
    searches: Searches
    search_operations: SearchOperations
    quotas: Quotas
    pipeline_journal: PipelineJournal
    funnels: Funnels
    written_letters: WrittenLetters

    def __init__(self, database: Database, soft_bounce_limit: int = SOFT_BOUNCE_LIMIT) -> None:
        self.database = database
        self.ledger = ledger_of(database)
        self.jobs = SqlJobs(database)
        self.dispatches = SqlDispatches(database)
        self.letters = SqlLetters(database)
        self.canaries = SqlCanaries(database)
        self.event_route = SqlEventRoute(database)
        self.mailouts = SqlMailouts(database)
        self.assets = SqlAssets(database)
        self.outbox = SqlOutbox(database)
        self.mailbox_log = SqlMailboxLog(database)
        self.subscribers = SqlSubscribers(database)
        self.sign_ups = SqlSignUps(database)
        self.suppressions = SqlSuppressions(database)
        self.suppression_syncs = SqlSuppressionSyncs(database)
        self.people = SqlPeople(database)
        self.keys = SqlKeys(database)
        self.audit_log = SqlAuditLog(database)
        self.tenants = SqlTenants(database)
        self.directions = SqlDirections(database)
        self.campaigns = SqlCampaigns(database)
        self.leads = SqlLeads(database)
        self.found_contacts = SqlFoundContacts(database)
        self.pools = SqlPools(database)
        self.leases = SqlLeases(database)
        self.gauge_log = SqlGaugeLog(database)
        self.alarms = SqlAlarms(database)
        self.events = SqlEvents(database, soft_bounce_limit)
        self.workers = SqlWorkers(database)
        self.permits = SqlPermits(database)
        self.senders = SqlSenders(database)
        self.sender_holds = SqlSenderHolds(database)
        self.companies = SqlCompanies(database)
        self.contacts = SqlContacts(database)
        self.duplicates = SqlDuplicates(database)
        self.tasks = SqlTasks(database)
        self.searches = SqlSearches(database)
        self.search_operations = SqlSearchOperations(database)
        self.quotas = SqlQuotas(database)
        self.pipeline_journal = SqlPipelineJournal(database)
        self.funnels = SqlFunnels(database)
        self.written_letters = SqlWrittenLetters(database)

    def fingerprint(self) -> str | None:
        return self.database.fingerprint()

    def exposures(self) -> list[str]:
        """Tables that others could read through the database: none where row level security is on."""
        if self.database.is_sqlite:
            return []
        with self.database.reading() as tx:
            return sorted({*exposed(tx), *unguarded(tx)})

    def close(self) -> None:
        self.database.close()


def open_store(url: str, soft_bounce_limit: int = SOFT_BOUNCE_LIMIT, schema: str | None = None) -> SqlStore:
    """Open a database whose schema is right; an SQLite file is made and upgraded on the way."""
    database = Database(url, schema)
    try:
        if database.is_sqlite:
            _make_file(database)
        _check_that_rows_are_seen(database)
        version = schema_version(database)
        if version != HEAD:
            if version is not None and not _known_version(version):
                raise SchemaMismatch(
                    f"The database has schema {version}, newer than this program's ({HEAD}): "
                    "upgrade sendonce, or set DATABASE_URL to another database."
                )
            if not database.is_sqlite:
                raise SchemaMismatch(
                    f"The database has schema {version or 'none'}, this program needs {HEAD}: "
                    "run 'sendonce db upgrade'."
                )
            upgrade_schema(database)
        _check_durability(database)
        return SqlStore(database, soft_bounce_limit)
    except BaseException:
        database.close()
        raise


def schema_version(database: Database) -> str | None:
    with database.reading() as tx:
        if not sa.inspect(tx).has_table("alembic_version"):
            return None
        row = tx.exec_driver_sql("SELECT version_num FROM alembic_version").first()
        return str(row[0]) if row else None


def upgrade_schema(database: Database) -> str | None:
    """Bring the schema to this program's version; the version it had before."""
    from alembic import command
    from alembic.script import ScriptDirectory

    before = schema_version(database)
    config = migration_config()
    if before is not None and before not in {
        s.revision for s in ScriptDirectory.from_config(config).walk_revisions()
    }:
        raise SchemaMismatch(
            f"The database has schema {before}, which this program does not know: upgrade sendonce."
        )
    with database.migrating() as tx:
        if not database.is_sqlite:
            _make_schema(database, tx)
            # Two upgrades at once wait for each other; a transaction's lock passes a pooler too.
            tx.exec_driver_sql("SELECT pg_advisory_xact_lock(7365646)")
        config.attributes["connection"] = tx
        command.upgrade(config, HEAD)
        _first_rows(database, tx)
        if not database.is_sqlite:
            lock_out_strangers(tx)
    return before


def migration_config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent.parent / "migrations"))
    return config


def _known_version(version: str) -> bool:
    """Whether ``version`` is one of this program's own migrations (they are numbered)."""
    return version.isdigit() and int(version) <= int(HEAD)


def _first_rows(database: Database, tx: sa.Connection) -> None:
    if tx.execute(sa.select(ledger.c.one)).first() is not None:
        unknown = ledger.update().where(ledger.c.fingerprint.is_(None))
        tx.execute(unknown.values(fingerprint=database.fingerprint()))
        return
    now = database.now(tx)
    identity = {
        "ledger_id": new_id(now),
        "pepper": os.urandom(LINK_LENGTH),
        "fingerprint": database.fingerprint(),
    }
    tx.execute(ledger.insert().values(one=1, created_at=now, **identity))
    tx.execute(tenants.insert().values(id=DEFAULT_TENANT, name="default", created_at=now))


def _make_schema(database: Database, tx: sa.Connection) -> None:
    if database.schema is not None:
        tx.execute(sa.schema.CreateSchema(database.schema, if_not_exists=True))


def _make_file(database: Database) -> None:
    """A new file is its owner's alone: it holds the whole list. SQLite makes its log with the same rights."""
    file = database.sqlite_file
    assert file is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Unavailable(f"The folder of the database {file} cannot be made: {exc.strerror}.") from exc
    with suppress(OSError):  # it is there already, or SQLite says better why it cannot be made
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _check_that_rows_are_seen(database: Database) -> None:
    """A role that is not the owner sees no rows: all who said no would look as if they had not."""
    if database.is_sqlite:
        return
    with database.reading() as tx:
        hidden = hidden_from_us(tx)
        role = tx.exec_driver_sql("SELECT current_user").scalar_one() if hidden else ""
    if hidden:
        raise RefusedByRule(
            f"Row level security hides the rows of {', '.join(hidden[:3])} from the role '{role}', so "
            "suppressions would look empty. Connect in DATABASE_URL as the role that owns the tables, the "
            "one that ran 'sendonce db upgrade'."
        )


def _check_durability(database: Database) -> None:
    """PostgreSQL with fsync off forgets commits in a power cut, and a forgotten claim is sent twice."""
    if database.is_sqlite:
        return
    with database.reading() as tx:
        if tx.exec_driver_sql("SHOW fsync").scalar_one() != "on":
            raise RefusedByRule(
                "PostgreSQL runs with fsync = off: turn it on; sent letters would be forgotten."
            )
