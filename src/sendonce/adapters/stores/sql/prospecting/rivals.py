"""What speaks against a letter to a company: letters to its duplicates and to its mailbox, and their wishes.

The conditions are about the row of ``written_letters`` in the statement around them, joined with its company.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import companies, job_states, written_letters
from sendonce.domain.people.suppression_keys import suppression_fold
from sendonce.domain.prospecting.duplicates import DERIVED_REASONS

W, C = written_letters.c, companies.c
_OTHER, _THEIRS, _JOB = written_letters.alias(), companies.alias(), job_states.alias()
_HEAD = sa.func.coalesce(C.primary_id, C.id, type_=C.id.type)
_SAME_COMPANY = (_THEIRS.c.id == _HEAD) | (_THEIRS.c.primary_id == _HEAD)
_IN_DIRECTION = (
    (_OTHER.c.tenant_id == W.tenant_id)
    & (_OTHER.c.direction_id == W.direction_id)
    & (_OTHER.c.id != W.id)
    & (_OTHER.c.status == "planned")
)
_GMAIL = ("gmail.com", "googlemail.com")


def wish_of_group() -> sa.ColumnElement[bool]:
    """Whether one that is the same company asked for no letters, also where that was not passed on yet."""
    own = _THEIRS.c.opt_out & _THEIRS.c.opt_out_reason.not_in(DERIVED_REASONS)
    return sa.select(_THEIRS.c.id).where(_SAME_COMPANY, own).correlate(companies).exists()


def letter_to_group(*but_in: str) -> sa.ColumnElement[bool]:
    """Whether one that is the same company has a planned letter of this direction.

    Those with a job in one of the states ``but_in`` do not count.
    """
    counts = _JOB.c.state.is_(None) | _JOB.c.state.not_in(but_in)
    query = (
        sa.select(_OTHER.c.id)
        .join(_THEIRS, _THEIRS.c.id == _OTHER.c.company_id)
        .outerjoin(_JOB, _JOB.c.id == _OTHER.c.job_id)
        .where(_IN_DIRECTION, _SAME_COMPANY, counts)
    )
    return query.correlate(written_letters, companies).exists()


def mailbox_is_taken(tx: Connection, letter_id: str, recipient_key: str) -> bool:
    """Whether a planned letter of this direction goes to the same mailbox, however its address is spelled."""
    mailbox = suppression_fold(recipient_key)
    domain = mailbox.rpartition("@")[2]
    at = [_OTHER.c.recipient_key.endswith(f"@{it}", autoescape=True) for it in _spelled(domain)]
    query: sa.Select[Any] = (
        sa.select(_OTHER.c.recipient_key)
        .join_from(written_letters, _OTHER, _IN_DIRECTION)
        .where(W.id == letter_id, sa.or_(*at))
    )
    return any(suppression_fold(key) == mailbox for key in tx.execute(query).scalars())


def _spelled(domain: str) -> tuple[str, ...]:
    return _GMAIL if domain in _GMAIL else (domain,)
