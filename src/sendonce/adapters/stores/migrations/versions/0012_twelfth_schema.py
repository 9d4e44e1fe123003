"""The twelfth schema: an index by which a person is found in the lists, however the address is written."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_FOLDED = sa.text(
    "(address_key LIKE '%+%' OR address_key LIKE '%.%@gmail.com' OR address_key LIKE '%@googlemail.com')"
)


def upgrade() -> None:
    op.create_index(
        "subscribers_folded",
        "subscribers",
        ["suppression_key"],
        sqlite_where=_FOLDED,
        postgresql_where=_FOLDED,
    )
