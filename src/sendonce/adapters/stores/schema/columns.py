"""What columns are made of, alike on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Column, DateTime, Dialect, ForeignKey, MetaData, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.types import TypeDecorator

metadata = MetaData()

SQLITE_TIME = "%Y-%m-%d %H:%M:%S.%f"


class Moment(TypeDecorator[datetime]):
    """A point in time in UTC: timestamptz on PostgreSQL, sortable text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).strftime(SQLITE_TIME)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002 (SQLAlchemy's signature)
        if value is None:
            return None
        if isinstance(value, str):
            return datetime.fromisoformat(value + "+00:00")  # a twentieth of the time that strptime takes
        assert isinstance(value, datetime)
        return value.astimezone(UTC)


class _Identifier(TypeDecorator[str]):
    """A UUID in its usual spelling, so that both databases and both kinds of SQL show the same text.

    Text from outside that is no UUID names no row. PostgreSQL would refuse the whole statement, so it
    gets the nil UUID instead, which is never issued.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else UUID(as_uuid=False))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or dialect.name == "sqlite" or _UUID.fullmatch(value):
            return value
        return "00000000-0000-0000-0000-000000000000"


_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
Identifier = _Identifier()
Document = JSON().with_variant(JSONB(), "postgresql")


def own_id(*args: Any, **kwargs: Any) -> Column[str]:
    return Column("id", Identifier, *args, primary_key=True, **kwargs)


def tenant() -> Column[str]:
    return Column("tenant_id", Text, ForeignKey("tenants.id"), nullable=False)


def moment(name: str, **kwargs: Any) -> Column[datetime]:
    return Column(name, Moment, **kwargs)


def where(condition: str) -> dict[str, Any]:
    """The rows that an index holds."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))
