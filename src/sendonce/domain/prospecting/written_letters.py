"""Written letters: one to a company in a direction, ever, kept with all that it was written from.

waiting ──► approved ──► planned     the engine tells what became of it
   │  ▲         │
   │  └─ edited ┘
   ├──► rejected                     a person said no
   └──► skipped                      the law, an opt-out or a letter to the same mailbox or company said no
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.people.directions import Direction
from sendonce.domain.people.legal_gate import Addressee
from sendonce.domain.people.legal_notices import notices
from sendonce.domain.prospecting.brief_reading import activities_in, read_brief
from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.companies import Company, CompanyStatus
from sendonce.domain.prospecting.kept_contacts import Contact
from sendonce.domain.prospecting.letter_templates import with_notices
from sendonce.domain.prospecting.readings import FactKind
from sendonce.domain.prospecting.sites import shown_domain
from sendonce.errors import RefusedByRule

KIND = "prospecting"
"""The kind of dispatch that written letters leave by."""

BY_PERSON = "person"
AUTOMATIC = "LETTERS_AUTO_APPROVE"
"""The reviewer of letters that nobody reviewed."""


class LetterStatus(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    PLANNED = "planned"
    SKIPPED = "skipped"


class ShownStatus(StrEnum):
    """What people see: of a planned letter the state of its job. ``PLANNED`` has a slot and has not left."""

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    PLANNED = "planned"
    SCHEDULED = "scheduled"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"
    DEAD = "dead"
    IN_DOUBT = "in_doubt"

    @property
    def covers(self) -> tuple[str, ...]:
        """A job is made a moment after its letter is planned: nobody wants to tell these two apart."""
        return (self, self.SCHEDULED) if self is ShownStatus.PLANNED else (self,)


_SAY_WHAT_IS_DONE = (FactKind.HEADING, FactKind.TITLE, FactKind.DESCRIPTION)

OPEN = (LetterStatus.WAITING, LetterStatus.APPROVED, LetterStatus.REJECTED)
"""A person may still change their mind about these."""


UNWANTED = "the company does not want letters"


@dataclass(frozen=True, slots=True)
class Prospect:
    """A company that may be written to, and whom to write to there. ``found_by`` is the text of a search."""

    company: Company
    contact: Contact
    found_by: str

    @property
    def addressee(self) -> Addressee:
        return Addressee(self.contact.seen.role, self.contact.seen.freemail)


@dataclass(frozen=True, slots=True)
class NewWrittenLetter:
    """``written_by`` is "llm", "template" or, once edited, "person". ``text`` is without the notices."""

    direction_id: str
    company_id: str
    contact_id: str
    recipient: str
    recipient_key: str
    source_url: str
    subject: str
    text: str
    language: str
    written_by: str
    brief: Mapping[str, Any]
    brief_hash: str
    checks: Sequence[Mapping[str, Any]]
    model: str | None = None
    price: float = 0.0
    status: LetterStatus = LetterStatus.WAITING
    reviewer: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a planned letter, by its job."""

    state: str
    reason: str | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class WrittenLetter:
    """``unfit`` says why its company is not to be written to any more. ``slot_at`` is when it is to leave.

    ``addressee`` is whose mailbox it goes to, as far as is known now.
    """

    id: str
    tenant_id: TenantId
    made: NewWrittenLetter
    domain: str
    company_name: str
    unfit: str | None
    addressee: Addressee
    reviewed_at: datetime | None
    letter_id: str | None
    dispatch_id: DispatchId | None
    job_id: str | None
    slot_at: datetime | None
    outcome: Outcome | None
    created_at: datetime

    @property
    def status(self) -> str:
        """In one word: once it is planned, the state of its job."""
        return self.outcome.state if self.outcome else str(self.made.status)


def brief_for(prospect: Prospect, direction: Direction) -> Brief:
    """The name, the city and the activity come from the company's pages; the rest is data for the model.

    Raises RefusedByRule for a direction without an offer.
    """
    if not direction.offer:
        raise RefusedByRule(
            f"The direction {direction.id} has no offer, so there is nothing to write about: add one with "
            f"'sendonce direction add {direction.id} --offer offer.toml …'."
        )
    company, contact = prospect.company, prospect.contact
    stated = {fact.fact: fact.value for fact in company.facts}
    said = [{"url": fact.source, "text": fact.value} for fact in company.facts]
    does = activities_in((stated.get(kind, "") for kind in _SAY_WHAT_IS_DONE), prospect.found_by)
    return read_brief(
        {
            "company": {
                "name": company.name,
                "domain": shown_domain(company.domain),
                "city": company.city or stated.get(FactKind.CITY),
                "activity": does[0] if does else "",
                "facts": does[1:],
                "found_by": prospect.found_by,
            },
            "offer": direction.offer,
            "contact": {"email": contact.seen.value, "role": contact.seen.role},
            "pages": said,
        },
        direction.language,
    )


def why_unfit(status: str, opt_out: bool, trouble: str | None) -> str | None:
    """Why a company is not to be written to at a contact; None if it may be."""
    if status == CompanyStatus.DUPLICATE:
        return "the company is a duplicate of another"
    if opt_out:
        return UNWANTED
    return f"the contact is {trouble.replace('_', ' ')}" if trouble else None


def sent_text(letter: WrittenLetter, direction: Direction) -> str:
    """The text as it leaves, with what the law wants it to say."""
    return with_notices(letter.made.text, notices(direction, letter.made.language, letter.made.source_url))
