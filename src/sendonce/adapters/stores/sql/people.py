"""One person's data on SQL: all of it shown, or all of it erased in one transaction.

People are found by the suppression key, which folds the spellings that share a mailbox. The tables are
looked through before the transaction begins, so that nobody waits for the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    attempts,
    delivery_events,
    job_states,
    mailbox_messages,
    mailouts,
    message_jobs,
    planned_jobs,
    sign_ups,
    subscribers,
    suppressions,
    unreadable_events,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.books import Tally, counted
from sendonce.adapters.stores.sql.campaigns import erasure as campaigns
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.events import as_event
from sendonce.adapters.stores.sql.mentions import (
    contains,
    erase_mentions,
    found_spellings,
    mentions,
    portions,
    redacted_entries,
    rows_of,
)
from sendonce.adapters.stores.sql.peppers import pepper_in_force
from sendonce.adapters.stores.sql.person_index import add_shelf, jobs_of
from sendonce.adapters.stores.sql.prospecting import erasure as prospecting
from sendonce.adapters.stores.sql.rows import as_job
from sendonce.adapters.stores.sql.subscribers import PERSON, as_subscriber, shares_mailbox
from sendonce.adapters.stores.sql.suppressions import as_suppression, suppress
from sendonce.domain.engine.addresses import Address
from sendonce.domain.people.audit import ERASE, REDACTED
from sendonce.domain.people.privacy import (
    ERASED,
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
from sendonce.domain.people.suppression_keys import suppression_fold, suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.errors import Unavailable

A, E, J, P, S = attempts.c, delivery_events.c, message_jobs.c, subscribers.c, suppressions.c
M = mailbox_messages.c
_SPELLED = (
    *prospecting.SPELLED,
    *campaigns.SPELLED,
    *((sa.func.lower(column), column) for column in (M.sender, M.recipient)),
)


class SqlPeople:
    def __init__(self, database: Database) -> None:
        self._db = database

    def file_of(self, address: Address) -> PersonFile:
        with self._db.reading() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            people = tx.execute(PERSON.where(shares_mailbox(address, key))).all()
            denials = tx.execute(sa.select(suppressions).where(S.key == key).order_by(S.tenant_id)).all()
            jobs = jobs_of(tx, key)
            return PersonFile(
                [as_subscriber(row) for row in people],
                [as_suppression(row) for row in denials],
                [self._letter(tx, row) for row in rows_of(tx, message_jobs, jobs)],
                list(_traces(tx, address, key, jobs)),
            )

    def _letter(self, tx: Connection, job: Row[Any]) -> LetterTo:
        tried = tx.execute(sa.select(attempts).where(A.job_id == job.id).order_by(A.attempt))
        told = tx.execute(sa.select(delivery_events).where(E.job_id == job.id).order_by(E.occurred_at, E.id))
        return LetterTo(
            as_job(job),
            [Attempt(a.attempt, a.outcome, a.code, a.reason, a.claimed_at, a.ended_at) for a in tried],
            [as_event(event) for event in told],
        )

    def shelve(self) -> bool:
        return add_shelf(self._db)

    # -- erasing ------------------------------------------------------------------------------

    def erase(self, address: Address, actor: str) -> Erasure:
        with self._db.reading() as tx:
            pepper = pepper_in_force(self._db, tx)
            key, name = suppression_key(address.key, pepper), erased_name(address.key, pepper)
            jobs = jobs_of(tx, key)
            spellings = _all_spellings(tx, address, key, jobs)
            scrubber = Scrubber(spellings, name)
            events = _event_ids(tx, jobs, scrubber)
            texts = mentions(tx, scrubber)
        with self._db.writing() as tx, counted(self._db, tx) as tally:
            if pepper_in_force(self._db, tx) != pepper:
                raise Unavailable("The keys were rotated at this very moment: nothing was erased. Try again.")
            if self._db.is_sqlite:
                # Or else what was deleted stays readable in the file's free space.
                tx.exec_driver_sql("PRAGMA secure_delete = ON")
            now = self._db.now(tx)
            erasure = Erasure(
                letters=sum([_erase_job(tx, tally, row, scrubber, pepper, now) for row in _locked(tx, jobs)]),
                events=sum(
                    _erase_event(tx, row, name, erased_name(row.natural_key, pepper))
                    for row in rows_of(tx, delivery_events, events)
                )
                + _erase_unreadable(tx, scrubber),
                subscribers=tx.execute(subscribers.delete().where(shares_mailbox(address, key))).rowcount,
                suppressions=_erase_suppressions(tx, key, scrubber),
                suppressed=suppress(tx, key, EVERYBODY, None, SuppressionReason.MANUAL, ERASED_NOTE, now),
                notes=_erase_attempts(tx, jobs, scrubber)
                + _erase_mail(tx, spellings, jobs, name)
                + prospecting.erase_prospect(tx, spellings, scrubber, now)
                + campaigns.erase_lead(tx, spellings, scrubber, pepper, now)
                + erase_mentions(tx, texts, scrubber),
            )
            tx.execute(sign_ups.delete().where(sign_ups.c.mailbox == suppression_fold(address.key)))
            _erase_plan_cursors(tx, scrubber)
            if erasure.changed:
                details = {"letters": erasure.letters, REDACTED: redacted_entries(tx, texts)}
                insert_audit(tx, now, actor, ERASE, name, details)
            return erasure


def _erase_job(
    tx: Connection, tally: Tally, job: Row[Any], scrubber: Scrubber, pepper: bytes, now: datetime
) -> bool:
    """The row keeps its place under a hash. What was not sent yet never will be."""
    reason = scrubber.text(job.reason)
    if is_erased(job.recipient) and not job.fields and reason == job.reason and job.state != "scheduled":
        return False
    hashed = erased_name(job.recipient_key, pepper)
    nameless = {"recipient": hashed, "recipient_key": hashed, "fields": {}}
    tx.execute(planned_jobs.update().where(planned_jobs.c.id == job.id).values(nameless))
    changes: dict[str, Any] = {"reason": reason}
    if job.state == "scheduled":
        changes = {"state": "skipped", "reason": "erased", "settled_at": now}
    tx.execute(job_states.update().where(job_states.c.id == job.id).values(changes))
    tally.change(job, changes)
    return True


def _erase_unreadable(tx: Connection, scrubber: Scrubber) -> int:
    """Nothing but deletion helps with what cannot be read."""
    kept = tx.execute(sa.select(unreadable_events.c.id, unreadable_events.c.raw))
    named = [row.id for row in kept if scrubber.mentioned_in(row.raw)]
    tx.execute(unreadable_events.delete().where(unreadable_events.c.id.in_(named)))
    return len(named)


def _all_spellings(tx: Connection, address: Address, key: str, jobs: Sequence[str]) -> list[str]:
    written = [*_spellings(tx, address, key, jobs), *found_spellings(tx, address.key, _SPELLED)]
    return [text for text in (address.text, address.key, *written) if not is_erased(text)]


def _traces(tx: Connection, address: Address, key: str, job_ids: Sequence[str]) -> Iterator[Trace]:
    spellings = _all_spellings(tx, address, key, job_ids)
    yield from campaigns.lead_traces(tx, spellings)
    yield from prospecting.prospect_traces(tx, spellings)
    yield from _mail_traces(tx, spellings, job_ids)


def _mail_traces(tx: Connection, spellings: Sequence[str], job_ids: Sequence[str]) -> Iterator[Trace]:
    told = ("mailbox", "kind", "sender", "recipient", "code", "reason")
    for row in rows_of(tx, mailbox_messages, _mail_ids(tx, spellings, job_ids)):
        yield Trace("mail", None, row.sent_at or row.found_at, {name: getattr(row, name) for name in told})


def _mail_ids(tx: Connection, spellings: Sequence[str], job_ids: Sequence[str]) -> list[str]:
    """What names the person, and what came back to their letters: people answer from other addresses, too."""
    named = sa.or_(M.sender.in_(spellings), M.recipient.in_(spellings))
    found = set(tx.execute(sa.select(M.id).where(named)).scalars())
    for some in portions(job_ids):
        found.update(tx.execute(sa.select(M.id).where(M.job_id.in_(some))).scalars())
    return sorted(found)


def _erase_mail(tx: Connection, spellings: Sequence[str], job_ids: Sequence[str], name: str) -> int:
    """Kind and code stay for the statistics."""
    erased = 0
    for row in rows_of(tx, mailbox_messages, _mail_ids(tx, spellings, job_ids)):
        readable = [it for it in ("sender", "recipient") if not is_erased(getattr(row, it) or ERASED)]
        if readable or row.reason:
            gone = {"reason": None, **dict.fromkeys(readable, name)}
            erased += tx.execute(mailbox_messages.update().where(M.id == row.id).values(gone)).rowcount
    return erased


def _spellings(tx: Connection, address: Address, key: str, jobs: Sequence[str]) -> list[str]:
    """How the address is written in the rows that belong to the person."""
    queries = (
        sa.select(P.email).where(shares_mailbox(address, key)),
        sa.select(P.address_key).where(shares_mailbox(address, key)),
        *(sa.select(J.recipient).where(J.id.in_(some)) for some in portions(jobs)),
        *(sa.select(J.recipient_key).where(J.id.in_(some)) for some in portions(jobs)),
        sa.select(S.address).where(S.key == key, S.address.is_not(None)),
    )
    return [text for query in queries for text in tx.execute(query.distinct()).scalars() if text]


def _event_ids(tx: Connection, job_ids: Sequence[str], scrubber: Scrubber) -> list[str]:
    """The events of the person's letters, and those of unknown letters that name the person."""
    found = [
        event_id
        for some in portions(job_ids)
        for event_id in tx.execute(sa.select(E.id).where(E.job_id.in_(some))).scalars()
    ]
    named = sa.or_(*(contains(column, scrubber) for column in (E.recipient, E.raw)))
    return found + list(tx.execute(sa.select(E.id).where(E.job_id.is_(None), named)).scalars())


def _locked(tx: Connection, job_ids: Sequence[str]) -> Iterator[Row[Any]]:
    for some in portions(sorted(job_ids)):
        query = sa.select(message_jobs).where(J.id.in_(some)).order_by(J.id)
        yield from tx.execute(query.with_for_update(key_share=True)).all()


def _erase_event(tx: Connection, event: Row[Any], name: str, natural_key: str) -> bool:
    """Kind, type and code stay for the statistics. The natural key may hold a hash that anyone could test."""
    if event.recipient == name and not event.raw:
        return False
    erased: dict[str, Any] = {"recipient": name, "raw": {}, "reason": None, "natural_key": natural_key}
    tx.execute(delivery_events.update().where(E.id == event.id).values(erased))
    return True


def _erase_suppressions(tx: Connection, key: str, scrubber: Scrubber) -> int:
    erased = 0
    for row in tx.execute(sa.select(suppressions).where(S.key == key)).all():
        note = scrubber.text(row.note)
        if row.address is not None or note != row.note or row.job_id is not None:
            own = suppressions.update().where(S.key == key, S.tenant_id == row.tenant_id)
            erased += tx.execute(own.values(address=None, note=note, job_id=None)).rowcount
    return erased


def _erase_attempts(tx: Connection, job_ids: Sequence[str], scrubber: Scrubber) -> int:
    erased = 0
    for some in portions(job_ids):
        for row in tx.execute(sa.select(attempts).where(A.job_id.in_(some), A.reason.is_not(None))).all():
            reason = scrubber.text(row.reason)
            if reason != row.reason:
                own = attempts.update().where(A.job_id == row.job_id, A.attempt == row.attempt)
                erased += tx.execute(own.values(reason=reason)).rowcount
    return erased


def _erase_plan_cursors(tx: Connection, scrubber: Scrubber) -> None:
    """A planner that goes on from the first letter meets rows that are there already, and passes them by."""
    for cursor in (mailouts.c.plan_cursor, mailouts.c.except_cursor):
        shorter = mailouts.update().where(cursor.in_(scrubber.spellings))
        tx.execute(shorter.values({cursor: sa.func.substr(cursor, 1, 1)}))
