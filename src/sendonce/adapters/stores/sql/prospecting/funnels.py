"""The funnel's numbers on SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from sendonce.adapters.stores.schema import companies, job_states, written_letters
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import CompanyStatus
from sendonce.domain.prospecting.funnel import OutreachTally
from sendonce.domain.prospecting.written_letters import LetterStatus

C = companies.c
W = written_letters.c
J = job_states.c


class SqlFunnels:
    def __init__(self, database: Database) -> None:
        self._db = database

    def outreach(self, tenant_id: TenantId, month: datetime) -> OutreachTally:
        count = sa.func.count()
        by_status = sa.select(C.status, count).where(C.tenant_id == tenant_id).group_by(C.status)
        fresh = (C.tenant_id == tenant_id) & (C.created_at >= month) & (C.status != CompanyStatus.DUPLICATE)
        letters = sa.select(W.status, count).where(W.tenant_id == tenant_id).group_by(W.status)
        bounced = sa.func.sum(sa.case((J.bounced_at.is_not(None), 1), else_=0))
        jobs = (
            sa.select(J.state, count, bounced)
            .join_from(written_letters, job_states, J.id == W.job_id)
            .where(W.tenant_id == tenant_id)
            .group_by(J.state)
        )
        with self._db.reading() as tx:
            states = tx.execute(jobs).all()
            return OutreachTally(
                companies={CompanyStatus(status): number for status, number in tx.execute(by_status)},
                found_in_month=tx.execute(sa.select(count).select_from(companies).where(fresh)).scalar_one(),
                letters={LetterStatus(status): number for status, number in tx.execute(letters)},
                jobs={JobState(state): number for state, number, _ in states},
                bounced=sum(number or 0 for *_, number in states),
            )
