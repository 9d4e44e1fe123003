"""One person's data in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sendonce.adapters.stores.memory.arrows import move
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.jobs import JobState, Move
from sendonce.domain.engine.mailbox.found import FoundMail
from sendonce.domain.people.privacy import (
    ERASED_NOTE,
    Attempt,
    Erasure,
    LetterTo,
    PersonFile,
    Scrubber,
    Trace,
    erased_name,
    is_erased,
)
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, GRAVITY, Suppression, SuppressionReason


class MemoryPeople:
    def __init__(self, state: State) -> None:
        self._state = state

    def file_of(self, address: Address) -> PersonFile:
        with self._state.transaction():
            key = self._state.suppression_key(address.key)
            people = [self._state.subscribers[place] for place in self._places(key)]
            denials = [s for place, s in sorted(self._state.suppressions.items()) if place[0] == key]
            jobs = self._jobs(key)
            letters = [self._letter(row) for row in jobs]
            return PersonFile(people, denials, letters, self._mail(key, {row.id for row in jobs}))

    def _mail(self, key: str, job_ids: set[str]) -> list[Trace]:
        return [
            Trace(
                "mail",
                None,
                mail.sent_at or mail.found_at,
                {
                    "mailbox": mailbox,
                    "kind": mail.kind,
                    "sender": mail.sender,
                    "recipient": mail.recipient,
                    "code": mail.code,
                    "reason": mail.reason,
                },
            )
            for (mailbox, _), mail in sorted(self._state.found_mail.items())
            if mail.job_id in job_ids or self._names(key, mail)
        ]

    def _names(self, key: str, mail: FoundMail) -> bool:
        written = filter(None, (mail.sender, mail.recipient))
        return any(self._state.suppression_key(address.lower()) == key for address in written)

    def _letter(self, row: JobRow) -> LetterTo:
        tried = [
            Attempt(a.attempt, a.outcome, None, None, None, None)
            for a in self._state.attempts
            if a.job_id == row.id
        ]
        told = [event for event, own_id, _ in self._state.events if own_id == row.id]
        return LetterTo(row.as_job(), tried, sorted(told, key=lambda event: event.occurred_at))

    def _places(self, key: str) -> list[tuple[str, str]]:
        return [place for place in self._state.subscribers if self._state.suppression_key(place[1]) == key]

    def _jobs(self, key: str) -> list[JobRow]:
        rows = self._state.jobs.values()
        mine = (row for row in rows if self._state.suppression_key(row.recipient_key) == key)
        return sorted(mine, key=lambda row: row.id)

    def shelve(self) -> bool:
        return False

    def erase(self, address: Address, actor: str) -> Erasure:
        with self._state.transaction() as now:
            key = suppression_key(address.key, self._state.pepper)
            name = erased_name(address.key, self._state.pepper)
            places, jobs = self._places(key), self._jobs(key)
            written = [*(key for _, key in places), *(row.recipient for row in jobs)]
            scrubber = Scrubber([address.text, address.key, *written], name)
            job_ids = {row.id for row in jobs}
            self._state.sign_ups = {
                each.id: each
                for each in self._state.sign_ups.values()
                if self._state.suppression_key(parse_address(each.email).key) != key
            }
            for place in places:
                del self._state.subscribers[place]
            erasure = Erasure(
                subscribers=len(places),
                letters=sum([self._erase_job(row, key, scrubber, now) for row in jobs]),
                events=self._erase_events(job_ids, scrubber, name) + self._erase_unreadable(scrubber),
                suppressions=self._erase_suppressions(key, scrubber),
                suppressed=self._suppress(key, now),
                notes=self._erase_notes(scrubber) + self._erase_mail(key, job_ids, name),
            )
            if erasure.changed:
                self._state.audit.append((actor, "erase", name))
            return erasure

    def _erase_job(self, row: JobRow, key: str, scrubber: Scrubber, now: datetime) -> bool:
        before = replace(row)
        row.recipient = row.recipient_key = erased_name(row.recipient_key, self._state.pepper)
        self._state.erased[row.recipient_key] = key
        row.fields, row.reason = {}, scrubber.text(row.reason)
        if row.state == JobState.SCHEDULED:
            move(row, Move.SKIP, reason="erased", settled_at=now)
        return row != before

    def _erase_events(self, job_ids: set[str], scrubber: Scrubber, name: str) -> int:
        erased = 0
        for index, (event, own_id, at) in enumerate(self._state.events):
            named = any((scrubber.text(text) or "") != text for text in event.recipients)
            if own_id not in job_ids and not (own_id is None and named):
                continue
            bare = replace(event, recipients=(name,), destinations=(), raw={}, reason=None)
            bare = replace(bare, natural_key=erased_name(event.natural_key, self._state.pepper))
            erased += bare != event
            self._state.events[index] = (bare, own_id, at)
        return erased

    def _erase_unreadable(self, scrubber: Scrubber) -> int:
        kept = self._state.unreadable
        self._state.unreadable = [event for event in kept if not scrubber.mentioned_in(event.raw)]
        return len(kept) - len(self._state.unreadable)

    def _erase_suppressions(self, key: str, scrubber: Scrubber) -> int:
        erased = 0
        for place, known in self._state.suppressions.items():
            if place[0] == key:
                bare = replace(known, address=None, note=scrubber.text(known.note), job_id=None)
                erased += bare != known
                self._state.suppressions[place] = bare
        return erased

    def _suppress(self, key: str, now: datetime) -> bool:
        place = (key, EVERYBODY)
        known = self._state.suppressions.get(place)
        reason = SuppressionReason.MANUAL
        if known is None:
            self._state.suppressions[place] = Suppression(key, EVERYBODY, None, reason, ERASED_NOTE, now)
            return True
        if GRAVITY[known.reason] < GRAVITY[reason]:
            self._state.suppressions[place] = replace(known, reason=reason, note=ERASED_NOTE)
        return False

    def _erase_notes(self, scrubber: Scrubber) -> int:
        audit = [
            (actor, action, scrubber.text(subject) or "") for actor, action, subject in self._state.audit
        ]
        outbox = [(topic, scrubber.document(body)) for topic, body in self._state.outbox]
        erased = sum(new != old for new, old in zip(audit, self._state.audit, strict=True))
        erased += sum(new != old for new, old in zip(outbox, self._state.outbox, strict=True))
        self._state.audit, self._state.outbox = audit, outbox
        for entry in self._state.mailouts.values():
            if entry.plan_cursor in scrubber.spellings:
                entry.plan_cursor = entry.plan_cursor[:1]
            testers = entry.mailout.audience
            if testers:
                stay = tuple(tester for tester in testers if not is_erased(scrubber.text(tester) or ""))
                entry.mailout = replace(entry.mailout, audience=stay)
        return erased

    def _erase_mail(self, key: str, job_ids: set[str], name: str) -> int:
        erased = 0
        for place, mail in self._state.found_mail.items():
            if mail.job_id in job_ids or self._names(key, mail):
                sender, recipient = (
                    name if it and not is_erased(it) else it for it in (mail.sender, mail.recipient)
                )
                bare = replace(mail, sender=sender, recipient=recipient, reason=None)
                self._state.found_mail[place] = bare
                erased += bare != mail
        return erased
