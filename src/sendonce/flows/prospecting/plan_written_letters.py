"""Plan approved letters: each gets a slot in working hours, and becomes a job of its direction's dispatch.

A letter is noted as planned before its job is made. Whoever is killed in between leaves it half planned, and
the next run makes its job: a dispatch takes an address once, so doing it twice makes no second letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob, ended_topic
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.people.directions import Direction
from sendonce.domain.people.legal_gate import require_footing
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.send_slots import LOOK_BACK, Slot, WorkingHours, slots_for
from sendonce.domain.prospecting.written_letters import KIND, ShownStatus, WrittenLetter, sent_text
from sendonce.flows.prospecting.ask_gate import why_stop
from sendonce.flows.prospecting.follow_answers import follow_answers
from sendonce.flows.prospecting.take_back_letters import take_back_letters
from sendonce.ports.prospecting import ProspectingStore

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class SendingRules:
    """``daily_limit`` holds for all tenants together: their letters leave from the same mailbox."""

    daily_limit: int
    hours: WorkingHours


def plan_written_letters(
    store: ProspectingStore, tenant_id: TenantId, direction: Direction, rules: SendingRules
) -> StepCount:
    """Raises RefusedByRule for a direction that the law blocks."""
    follow_answers(store)
    finish_half_planned(store)
    take_back_letters(store, direction)
    require_footing(direction)
    now = store.ledger.now()
    approved = _fit(store, tenant_id, direction)
    taken = store.written_letters.slots_taken(now - LOOK_BACK, now)
    slots = slots_for([letter.id for letter in approved], taken, now, rules.hours, rules.daily_limit)
    chosen = [(it, Slot(slots[it.id], rules.daily_limit)) for it in approved if it.id in slots]
    planned = _plan(store, direction, chosen) if chosen else 0
    waits = len(approved) - len(slots)
    note = f"{waits} wait for a slot within the daily limit of {rules.daily_limit}" if waits else ""
    return StepCount(taken=len(chosen), done=planned, note=note)


def finish_half_planned(store: ProspectingStore) -> None:
    """Make the jobs of letters that a process noted as planned before it died, if they may still leave."""
    left = [it for it in store.written_letters.half_planned(_CHUNK) if _may_still_leave(store, it)]
    for dispatch_id in sorted({letter.dispatch_id for letter in left if letter.dispatch_id}):
        _make_jobs(store, dispatch_id, [letter for letter in left if letter.dispatch_id == dispatch_id])
    for entry_id, _ in store.outbox.due(ended_topic(KIND), _CHUNK):
        store.outbox.done(entry_id)  # the letters' own rows say all that there is to know


def _may_still_leave(store: ProspectingStore, letter: WrittenLetter) -> bool:
    direction = store.directions.get(letter.tenant_id, letter.made.direction_id)
    reason = why_stop(store, direction, letter) if direction else "its direction is not known any more"
    return not (reason and store.written_letters.skip(letter.tenant_id, letter.id, reason))


def _fit(store: ProspectingStore, tenant_id: TenantId, direction: Direction) -> list[WrittenLetter]:
    """Approved letters whose company may still be written to; the others are skipped."""
    fit = []
    approved = store.written_letters.all(
        tenant_id, status=ShownStatus.APPROVED, direction_id=direction.id, limit=_CHUNK
    )
    for letter in approved:
        if reason := why_stop(store, direction, letter):
            store.written_letters.skip(tenant_id, letter.id, reason)
        else:
            fit.append(letter)
    return fit


def _plan(store: ProspectingStore, direction: Direction, chosen: Sequence[tuple[WrittenLetter, Slot]]) -> int:
    tenant_id = direction.tenant_id
    dispatch_id = store.written_letters.open_dispatch(tenant_id, direction.id)
    if dispatch_id is None:
        owner = f"{tenant_id}/{direction.id}"
        dispatch_id = store.dispatches.open(tenant_id, NewDispatch(KIND, owner)).id
    begun = []
    for letter, slot in chosen:
        engine_letter = store.letters.put(tenant_id, as_engine_letter(letter, direction))
        if store.written_letters.begin_plan(tenant_id, letter.id, dispatch_id, engine_letter, slot):
            begun.append(_job(letter, engine_letter, slot.at))
            failpoint("plan-begun")
    return _hand_over(store, dispatch_id, begun)


def _make_jobs(store: ProspectingStore, dispatch_id: DispatchId, letters: Sequence[WrittenLetter]) -> None:
    jobs = [
        _job(letter, letter.letter_id, letter.slot_at)
        for letter in letters
        if letter.letter_id is not None and letter.slot_at is not None
    ]
    _hand_over(store, dispatch_id, jobs)


def _hand_over(store: ProspectingStore, dispatch_id: DispatchId, jobs: Sequence[NewJob]) -> int:
    store.dispatches.plan(dispatch_id, jobs)
    store.dispatches.run(dispatch_id)
    return store.written_letters.link_jobs(dispatch_id)


def _job(letter: WrittenLetter, engine_letter: str, slot: datetime) -> NewJob:
    return NewJob(parse_address(letter.made.recipient), letter_id=engine_letter, due_at=slot)


def as_engine_letter(letter: WrittenLetter, direction: Direction) -> Letter:
    """Plain text alone: it is a letter, not a newsletter. The HTML is for previews."""
    text = sent_text(letter, direction)
    paragraphs = "".join(f"<p>{escape(it).replace(chr(10), '<br>')}</p>" for it in text.split("\n\n"))
    return Letter(
        subject=letter.made.subject,
        preheader="",
        html=paragraphs,
        text=text,
        text_only=True,
        language=letter.made.language,
    )
