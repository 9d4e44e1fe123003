"""Sign-ups in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.sign_ups import Confirmation, SignUp, SignUpWish, confirmation_of, may_ask
from sendonce.domain.people.subscribers import Subscriber, SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_fold
from sendonce.domain.people.suppressions import EVERYBODY, RECIPIENT, SuppressionReason


class MemorySignUps:
    def __init__(self, state: State) -> None:
        self._state = state

    def ask(self, tenant_id: TenantId, wish: SignUpWish) -> SignUp | None:
        with self._state.transaction() as now:
            place = (tenant_id, wish.address.key)
            known = self._state.subscribers.get(place)
            mailbox = suppression_fold(wish.address.key)
            asked = [
                each.requested_at
                for each in self._state.sign_ups.values()
                if each.tenant_id == tenant_id and suppression_fold(parse_address(each.email).key) == mailbox
            ]
            status = known.status if known else None
            if not may_ask(status, self._denials(tenant_id, wish.address), asked, now):
                return None
            if known is None:
                pending = self._subscriber(tenant_id, wish.address, wish.name, now)
                self._state.subscribers[place] = replace(pending, status=SubscriberStatus.PENDING)
            sign_up = SignUp(
                self._state.new_id(now),
                tenant_id,
                wish.address.text,
                wish.name,
                wish.source,
                wish.wording,
                now,
            )
            self._state.sign_ups[sign_up.id] = sign_up
            return sign_up

    def confirm(self, sign_up_id: str) -> Confirmation | None:
        with self._state.transaction() as now:
            sign_up = self._state.sign_ups.get(sign_up_id)
            if sign_up is None:
                return None
            address = parse_address(sign_up.email)
            place = (sign_up.tenant_id, address.key)
            known = self._state.subscribers.get(place)
            denied = self._denials(sign_up.tenant_id, address)
            own = (self._state.suppression_key(address.key), sign_up.tenant_id)
            denial = self._state.suppressions.get(own)
            denied_at = denial.created_at if denial else None
            verdict = confirmation_of(sign_up, known.status if known else None, denied, denied_at, now)
            if verdict == Confirmation.CONFIRMED and sign_up.confirmed_at is None:
                self._state.suppressions.pop(own, None)
                person = known or self._subscriber(sign_up.tenant_id, address, sign_up.name, now)
                self._state.subscribers[place] = replace(
                    person,
                    name=sign_up.name or person.name,
                    status=SubscriberStatus.ACTIVE,
                    status_updated_at=now,
                    consent=sign_up.consent,
                )
                self._state.sign_ups[sign_up_id] = replace(sign_up, confirmed_at=now)
                self._state.audit.append((RECIPIENT, "confirm sign-up", address.text))
            return verdict

    def _subscriber(
        self, tenant_id: TenantId, address: Address, name: str | None, now: datetime
    ) -> Subscriber:
        active = SubscriberStatus.ACTIVE
        return Subscriber(
            self._state.new_id(now), tenant_id, address.text, name, {}, active, None, None, None, now
        )

    def _denials(self, tenant_id: TenantId, address: Address) -> list[SuppressionReason]:
        key = self._state.suppression_key(address.key)
        own = self._state.suppressions.get((key, tenant_id))
        everybody = [SuppressionReason.MANUAL] if (key, EVERYBODY) in self._state.suppressions else []
        return [own.reason, *everybody] if own else everybody
