"""Settings in, an open database and the state directory of this machine out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from sendonce.errors import NotFound
from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.adapters.stores.sql import SqlStore
    from sendonce.adapters.wire_journal import StateDirectory
    from sendonce.ports.campaigns import CampaignStore
    from sendonce.ports.prospecting import ProspectingStore
    from sendonce.ports.store import Store


def open_store(settings: Settings, *, make: bool = True) -> SqlStore:
    """Without ``make`` an SQLite file that is not there is NotFound, and stays so."""
    from sendonce.adapters.stores.sql import open_store

    file = sqlite_file(settings)
    if not make and file is not None and not file.exists():
        raise NotFound(
            f"There is no database at {file} yet: 'sendonce subscribers import' or 'sendonce db upgrade' "
            "makes it. If you have one elsewhere, go to its folder or set DATABASE_URL."
        )
    return open_store(settings.database_url, settings.soft_bounce_limit, settings.database_schema or None)


def open_store_at(url: str) -> Store:
    """The database of another environment than this one, such as a demonstration's."""
    from sendonce.adapters.stores.sql import open_store

    return open_store(url)


def sqlite_file(settings: Settings) -> Path | None:
    if not settings.database_url.startswith("sqlite"):
        return None
    return Path(settings.database_url.partition("?")[0].removeprefix("sqlite:///"))


def state_directory(settings: Settings, store: Store) -> StateDirectory:
    from sendonce.adapters.wire_journal import StateDirectory

    return StateDirectory(settings.state_dir, store.ledger.identity().ledger_id)


def upgrade_database(settings: Settings) -> tuple[str | None, str]:
    """Bring the database to this program's schema: which it had before, and which it has now."""
    from sendonce.adapters.stores.schema import HEAD
    from sendonce.adapters.stores.sql.database import Database
    from sendonce.adapters.stores.sql.store import upgrade_schema

    database = Database(settings.database_url, settings.database_schema or None)
    try:
        return upgrade_schema(database), HEAD
    finally:
        database.close()


def own_schema() -> str:
    """The schema that this program reads and writes."""
    from sendonce.adapters.stores.schema import HEAD

    return HEAD


def has_our_schema(store: Store) -> bool:
    """Whether the database still has this program's schema: somebody may have upgraded it since."""
    from sendonce.adapters.stores.schema import HEAD
    from sendonce.adapters.stores.sql import SqlStore
    from sendonce.adapters.stores.sql.store import schema_version

    return not isinstance(store, SqlStore) or schema_version(store.database) == HEAD


def has_campaigns(store: Store | CampaignStore) -> TypeGuard[CampaignStore]:
    """Only databases keep campaigns."""
    from sendonce.adapters.stores.sql import SqlStore

    return isinstance(store, SqlStore)


def has_prospects(store: Store | ProspectingStore) -> TypeGuard[ProspectingStore]:
    """Only databases keep companies and letters to them."""
    from sendonce.adapters.stores.sql import SqlStore

    return isinstance(store, SqlStore)


def renew_connections(store: Store) -> None:
    """Forget the open connections: the database may have closed them while this process was frozen."""
    from sendonce.adapters.stores.sql import SqlStore

    if isinstance(store, SqlStore):
        store.database.engine.dispose()
