"""Sign-ups on SQL: a wish, its letter of confirmation, and the consent that its link gives."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import sign_ups, subscribers, suppressions
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.adapters.stores.sql.subscribers import require_tenant, write_active
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.sign_ups import (
    Confirmation,
    SignUp,
    SignUpWish,
    confirmation_of,
    may_ask,
)
from sendonce.domain.people.subscribers import NewSubscriber, SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_fold, suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, RECIPIENT, SuppressionReason

P, S, U = subscribers.c, suppressions.c, sign_ups.c


class SqlSignUps:
    def __init__(self, database: Database) -> None:
        self._db = database

    def ask(self, tenant_id: TenantId, wish: SignUpWish) -> SignUp | None:
        with self._db.writing() as tx:
            key = suppression_key(wish.address.key, pepper_in_force(self._db, tx))
            require_tenant(tx, tenant_id)
            mailbox = suppression_fold(wish.address.key)
            self._one_at_a_time(tx, tenant_id, mailbox)
            now = self._db.now(tx)
            known = _status(tx, tenant_id, wish.address)
            before = sa.select(U.requested_at).where(U.tenant_id == tenant_id, U.mailbox == mailbox)
            asked = tx.execute(before.order_by(U.requested_at.desc()).limit(10)).scalars().all()
            if not may_ask(known, _denials(tx, tenant_id, key), asked, now):
                return None
            if known is None:
                self._note_pending(tx, tenant_id, wish, key)
            row = {
                "id": new_id(now),
                "tenant_id": tenant_id,
                "email": wish.address.text,
                "mailbox": mailbox,
                "name": wish.name,
                "source": wish.source,
                "wording": wish.wording,
                "requested_at": now,
            }
            tx.execute(sign_ups.insert().values(row))
            return _as_sign_up(tx.execute(sa.select(sign_ups).where(U.id == row["id"])).one())

    def confirm(self, sign_up_id: str) -> Confirmation | None:
        with self._db.writing() as tx:
            row = tx.execute(sa.select(sign_ups).where(U.id == sign_up_id).with_for_update()).one_or_none()
            if row is None:
                return None
            sign_up, address = _as_sign_up(row), parse_address(row.email)
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            now = self._db.now(tx)
            known = _status(tx, sign_up.tenant_id, address)
            denied = _denials(tx, sign_up.tenant_id, key)
            own = (S.key == key) & (S.tenant_id == sign_up.tenant_id)
            denied_at = tx.execute(sa.select(S.created_at).where(own)).scalar_one_or_none()
            verdict = confirmation_of(sign_up, known, denied, denied_at, now)
            if verdict == Confirmation.CONFIRMED and sign_up.confirmed_at is None:
                tx.execute(suppressions.delete().where(own))
                person = NewSubscriber(address, sign_up.name, consent=sign_up.consent)
                write_active(tx, self._db, sign_up.tenant_id, person, key, now)
                tx.execute(sign_ups.update().where(U.id == sign_up_id).values(confirmed_at=now))
                insert_audit(tx, now, RECIPIENT, "confirm sign-up", address.text, {"sign_up": sign_up_id})
            return verdict

    def _one_at_a_time(self, tx: Connection, tenant_id: TenantId, mailbox: str) -> None:
        """Wishes for one mailbox wait for each other, or each would be the first. On SQLite all do."""
        if not self._db.is_sqlite:
            number = sa.func.hashtextextended(f"sign-up {tenant_id} {mailbox}", 0)
            tx.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))

    def _note_pending(self, tx: Connection, tenant_id: TenantId, wish: SignUpWish, key: str) -> None:
        now = self._db.now(tx)
        given: dict[str, Any] = {
            "id": new_id(now),
            "tenant_id": tenant_id,
            "email": wish.address.text,
            "address_key": wish.address.key,
            "suppression_key": key,
            "from_name": wish.name,
            "attributes": {},
            "status": SubscriberStatus.PENDING,
            "created_at": now,
            "updated_at": now,
        }
        insert = insert_for(self._db)(subscribers).values(given)
        tx.execute(insert.on_conflict_do_nothing(index_elements=[P.tenant_id, P.address_key]))


def _status(tx: Connection, tenant_id: TenantId, address: Address) -> SubscriberStatus | None:
    own = (P.tenant_id == tenant_id) & (P.address_key == address.key)
    found = tx.execute(sa.select(P.status).where(own).with_for_update()).scalar_one_or_none()
    return SubscriberStatus(found) if found else None


def _denials(tx: Connection, tenant_id: TenantId, key: str) -> list[SuppressionReason]:
    """Why the person must not be written to. What holds for every tenant is nobody's to lift by a link."""
    both = sa.select(S.reason, S.tenant_id).where(S.key == key, S.tenant_id.in_([tenant_id, EVERYBODY]))
    return [
        SuppressionReason.MANUAL if row.tenant_id == EVERYBODY else SuppressionReason(row.reason)
        for row in tx.execute(both.with_for_update())
    ]


def _as_sign_up(row: Row[Any]) -> SignUp:
    return SignUp(
        id=row.id,
        tenant_id=row.tenant_id,
        email=row.email,
        name=row.name,
        source=row.source,
        wording=row.wording,
        requested_at=row.requested_at,
        confirmed_at=row.confirmed_at,
    )
