"""Write letters to the companies of a direction that have none yet. Restartable: a company gets one, ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import Direction
from sendonce.domain.people.legal_gate import require_footing, why_not
from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.kept_contacts import ContactKind
from sendonce.domain.prospecting.letter_checks import passes
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.written_letters import (
    AUTOMATIC,
    LetterStatus,
    NewWrittenLetter,
    Prospect,
    brief_for,
)
from sendonce.errors import BadInput
from sendonce.flows.prospecting.write_letter import LetterWritten, write_letter
from sendonce.ports.prospecting import LetterModel, ProspectingStore

_NIGHT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WritingRules:
    """``budget`` is what the model may cost in 24 hours, over all tenants."""

    auto_approve: bool
    budget: float
    model: LetterModel | None


def write_letters(
    store: ProspectingStore, tenant_id: TenantId, direction: Direction, rules: WritingRules, limit: int
) -> StepCount:
    """Raises RefusedByRule for a direction that the law blocks, or that has no offer."""
    require_footing(direction)
    alone = len(store.directions.all(tenant_id)) == 1
    waiting = store.written_letters.unwritten(tenant_id, direction.id, of_any_search=alone, limit=limit)
    prospects = _prospects(store, tenant_id, waiting)
    written = sum(_write_to(store, direction, prospect, rules) for prospect in prospects)
    return StepCount(taken=len(waiting), done=written)


def _prospects(store: ProspectingStore, tenant_id: TenantId, company_ids: Sequence[str]) -> list[Prospect]:
    found_by = store.companies.found_by(tenant_id, company_ids)
    contacts = store.contacts.of(tenant_id, company_ids)
    prospects = []
    for company_id in company_ids:
        company = store.companies.get(tenant_id, company_id)
        emails = [it for it in contacts[company_id] if it.primary and it.seen.kind is ContactKind.EMAIL]
        if company is not None and emails:
            text = next((search.text for search in found_by.get(company_id, ())), "")
            prospects.append(Prospect(company, emails[0], text))
    return prospects


def _write_to(store: ProspectingStore, direction: Direction, prospect: Prospect, rules: WritingRules) -> bool:
    now = store.ledger.now()
    brief = brief_for(prospect, direction)
    reason = _why_skip(store, direction, prospect)
    spent = store.written_letters.spent_since(now - _NIGHT) if rules.model and not reason else 0.0
    letter = write_letter(brief, None if reason else rules.model, rules.budget - spent)
    new = _as_written(direction, prospect, brief, letter, rules.auto_approve, reason)
    added = store.written_letters.add(direction.tenant_id, new, now)
    failpoint("letter-written")
    return added is not None


def _why_skip(store: ProspectingStore, direction: Direction, prospect: Prospect) -> str | None:
    try:
        address = parse_address(prospect.contact.seen.value)
    except BadInput as exc:
        return str(exc)
    if denied := store.suppressions.covers(direction.tenant_id, address):
        return f"the address is suppressed: {denied.reason}"
    return why_not(direction, prospect.addressee)


def _as_written(
    direction: Direction,
    prospect: Prospect,
    brief: Brief,
    letter: LetterWritten,
    auto_approve: bool,
    reason: str | None,
) -> NewWrittenLetter:
    contact = prospect.contact
    approved = auto_approve and passes(letter.checks)
    status = LetterStatus.APPROVED if approved else LetterStatus.WAITING
    return NewWrittenLetter(
        direction_id=direction.id,
        company_id=prospect.company.id,
        contact_id=contact.id,
        recipient=contact.seen.value,
        recipient_key=contact.seen.key if reason else parse_address(contact.seen.value).key,
        source_url=contact.seen.source_url,
        subject=letter.subject,
        text=letter.text,
        language=letter.language,
        written_by=letter.by,
        brief=asdict(brief),
        brief_hash=brief.hash,
        checks=[asdict(check) for check in letter.checks],
        model=letter.model,
        price=letter.price,
        status=LetterStatus.SKIPPED if reason else status,
        reviewer=AUTOMATIC if approved and not reason else None,
        note=reason or letter.refused or None,
    )
