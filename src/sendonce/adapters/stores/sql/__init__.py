"""The store on SQLite and PostgreSQL."""

from sendonce.adapters.stores.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
