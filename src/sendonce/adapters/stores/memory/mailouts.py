"""Mailouts in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.arrows import move
from sendonce.adapters.stores.memory.state import JobRow, MailoutRow, State
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.ids import prefix_range, time_ordered_ids
from sendonce.domain.engine.jobs import JobState, Move
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.exclusions import got_already, was_reached
from sendonce.domain.mailouts.mailouts import (
    Mailout,
    MailoutStatus,
    NewMailout,
    PageEvent,
    Phase,
    PlanProgress,
)
from sendonce.domain.people.subscribers import Subscriber, SubscriberStatus
from sendonce.errors import NotFound

PLANNER_LEASE = timedelta(seconds=30)


class MemoryMailouts:
    def __init__(self, state: State) -> None:
        self._state = state

    def create(self, tenant_id: TenantId, new: NewMailout) -> Mailout:
        with self._state.transaction() as now:
            known = new.source_id and not new.is_test and self.of_page(tenant_id, new.source, new.source_id)
            if known:
                return known
            mailout = Mailout(
                id=self._state.new_id(now),
                tenant_id=tenant_id,
                letter_id=self._state.new_id(now) if new.letter else None,
                name=new.name,
                source=new.source,
                source_id=new.source_id,
                status=MailoutStatus.DRAFT if new.draft else MailoutStatus.READY,
                phase=None,
                paused=False,
                cancelled=False,
                is_test=new.is_test,
                audience=new.audience,
                warnings=new.warnings,
                reason=None,
                created_at=now,
                started_at=None,
                sent_at=None,
                send_at=new.send_at,
            )
            self._state.mailouts[mailout.id] = MailoutRow(mailout, new.letter)
            return mailout

    def of_page(self, tenant_id: str, source: str, source_id: str) -> Mailout | None:
        with self._state.transaction():
            wanted = (tenant_id, source, source_id, False)
            for entry in self._state.mailouts.values():
                m = entry.mailout
                if (m.tenant_id, m.source, m.source_id, m.is_test) == wanted:
                    return m
            return None

    def get(self, mailout_id: str) -> Mailout | None:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            return entry.mailout if entry else None

    def letter(self, mailout_id: str) -> Letter:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            if entry is None or entry.letter is None:
                raise NotFound(
                    f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is."
                )
            return entry.letter

    def all(self, limit: int = 100) -> Sequence[Mailout]:
        with self._state.transaction():
            every = [entry.mailout for entry in self._state.mailouts.values()]
            return sorted(every, key=lambda m: (m.created_at, m.id), reverse=True)[:limit]

    def with_status(self, status: MailoutStatus) -> Sequence[Mailout]:
        with self._state.transaction():
            every = [entry.mailout for entry in self._state.mailouts.values()]
            return sorted((m for m in every if m.status == status), key=lambda m: m.id)

    def _with(self, mailout_id: str, *statuses: MailoutStatus) -> MailoutRow | None:
        entry = self._state.mailouts.get(mailout_id)
        return entry if entry is not None and entry.mailout.status in statuses else None

    def replace_letter(self, mailout_id: str, new: NewMailout) -> bool:
        assert new.letter is not None
        with self._state.transaction() as now:
            entry = self._with(mailout_id, MailoutStatus.DRAFT, MailoutStatus.READY)
            if entry is None or entry.mailout.source_id is not None:
                return False
            m = entry.mailout
            entry.letter = new.letter
            entry.mailout = replace(
                m,
                letter_id=self._state.new_id(now),
                name=new.name,
                warnings=new.warnings,
                send_at=m.send_at if m.scheduled else new.send_at,
                reason=m.reason if m.paused else None,
            )
            return True

    def delete(self, mailout_id: str) -> bool:
        with self._state.transaction():
            if self._with(mailout_id, MailoutStatus.DRAFT, MailoutStatus.READY) is None:
                return False
            del self._state.mailouts[mailout_id]
            self._state.audit.append(("operator", "delete", mailout_id))
            return True

    def twins(self, tenant_id: str, letter: Letter) -> Sequence[Mailout]:
        def words(of: Letter) -> tuple[str, str, str]:
            return of.subject, of.html, of.text

        with self._state.transaction():
            same = [
                e.mailout
                for e in self._state.mailouts.values()
                if e.letter and words(e.letter) == words(letter)
            ]
            out = [(m.started_at, m.id, m) for m in same if m.started_at and not m.is_test]
            return [m for _, _, m in sorted(out, reverse=True) if m.tenant_id == tenant_id]

    def count_excluded(self, tenant_id: str, except_of: Sequence[str]) -> int:
        with self._state.transaction():
            got = self._reached(except_of)
            people = [(t, key) for (t, key), p in self._state.subscribers.items() if p.status == "active"]
            return sum(t == tenant_id and self._state.suppression_key(key) in got for t, key in people)

    def _reached(self, earlier: Sequence[str]) -> dict[str, str]:
        """Suppression keys of those whom an earlier mailout went to, or may have, and which one it was."""
        return {
            self._state.suppression_key(row.recipient_key): mailout_id
            for mailout_id in reversed(earlier)
            for row in self._state.jobs_of(mailout_id)
            if was_reached(row.state, row.worker_id)
        }

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        with self._state.transaction():
            return sorted(known for known in self._state.mailouts if first <= known <= last)[:limit]

    # -- starting and planning -----------------------------------------------------------------

    def make_ready(self, mailout_id: str) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.DRAFT)
            if entry is None:
                return False
            entry.mailout = replace(entry.mailout, status=MailoutStatus.READY)
            return True

    def start(
        self,
        mailout_id: str,
        event: PageEvent | None = None,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
        checked: Mailout | None = None,
    ) -> bool:
        with self._state.transaction() as now:
            entry = self._with(mailout_id, MailoutStatus.READY)
            if entry is None or not entry.mailout.is_still(checked):
                return False
            if event is not None and not self.hear(mailout_id, event):
                return False
            m = entry.mailout
            reason = m.reason if m.paused else None
            entry.mailout = replace(
                m,
                status=MailoutStatus.SENDING,
                phase=Phase.PLANNING if entry.letter else Phase.FETCHING,
                started_at=now,
                reason=reason,
                scheduled=False,
                except_of=m.except_of if except_of is None else tuple(except_of),
                forced=forced,
            )
            return True

    def hear(self, mailout_id: str, event: PageEvent) -> bool:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            if entry is None or not event.is_news_to(entry.mailout.page_event):
                return False
            known = entry.mailout.page_event
            at = event.at or (known.at if known else None)
            entry.mailout = replace(entry.mailout, page_event=PageEvent(event.id, at))
            return True

    def note(self, mailout_id: str, reason: str) -> bool:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            m = entry.mailout if entry else None
            if entry is None or m is None or m.status == MailoutStatus.SENDING or m.cancelled or m.paused:
                return False
            entry.mailout = replace(m, reason=reason)
            return True

    def schedule(
        self,
        mailout_id: str,
        send_at: datetime,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
    ) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.READY)
            if entry is None:
                return False
            m = entry.mailout
            reason = m.reason if m.paused else None
            excepted = m.except_of if except_of is None else tuple(except_of)
            timed = replace(m, send_at=send_at, scheduled=True, forced=forced)
            entry.mailout = replace(timed, reason=reason, except_of=excepted)
            return True

    def unschedule(self, mailout_id: str, reason: str | None = None) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.READY)
            if entry is None or not entry.mailout.scheduled:
                return False
            entry.mailout = replace(entry.mailout, scheduled=False, reason=entry.mailout.because(reason))
            return True

    def due(self) -> Sequence[Mailout]:
        with self._state.transaction() as now:
            every = (entry.mailout for entry in self._state.mailouts.values())
            timed = [(m.send_at, m.id, m) for m in every if m.scheduled and m.send_at is not None]
            return [m for send_at, _, m in sorted(timed) if send_at <= now]

    def freeze(self, mailout_id: str, name: str, letter: Letter, warnings: Sequence[str]) -> bool:
        with self._state.transaction() as now:
            entry = self._with(mailout_id, MailoutStatus.SENDING)
            if entry is None or entry.mailout.phase != Phase.FETCHING:
                return False
            entry.letter = letter
            entry.mailout = replace(
                entry.mailout,
                letter_id=self._state.new_id(now),
                name=name,
                warnings=tuple(warnings),
                phase=Phase.PLANNING,
            )
            return True

    def stop_before_first(
        self,
        mailout_id: str,
        reason: str | None,
        warnings: Sequence[str] = (),
        *,
        send_at: datetime | None = None,
    ) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.SENDING)
            early = entry is not None and entry.mailout.phase in (Phase.FETCHING, Phase.PLANNING)
            if entry is None or not early or self._state.jobs_of(mailout_id):
                return False
            entry.mailout = replace(
                entry.mailout,
                status=MailoutStatus.READY,
                phase=None,
                started_at=None,
                reason=entry.mailout.because(reason),
                warnings=tuple(warnings),
                scheduled=send_at is not None,
                send_at=send_at or entry.mailout.send_at,
            )
            if entry.mailout.source_id is not None:
                entry.letter, entry.mailout = None, replace(entry.mailout, letter_id=None)
            return True

    def plan_chunk(self, mailout_id: str, planner: str, size: int) -> PlanProgress | None:
        with self._state.transaction() as now:
            entry = self._with(mailout_id, MailoutStatus.SENDING)
            if entry is None or entry.mailout.phase != Phase.PLANNING:
                return None
            if entry.planner not in (None, planner) and entry.planner_until and entry.planner_until >= now:
                return None
            entry.planner, entry.planner_until = planner, now + PLANNER_LEASE
            people = self._next_people(entry, size)
            added = self._add_jobs(entry.mailout, people, now)
            if people:
                entry.plan_cursor = people[-1][0]
            finished = len(people) < size or entry.mailout.audience is not None
            if finished:
                entry.mailout = replace(entry.mailout, phase=Phase.RUNNING)
            return PlanProgress(added, finished)

    def _next_people(self, entry: MailoutRow, size: int) -> list[tuple[str, Subscriber]]:
        if entry.mailout.cancelled:
            return []
        if entry.mailout.audience is not None:
            return [self._tester(entry.mailout, text) for text in entry.mailout.audience]
        waiting = sorted(
            (key, person)
            for (tenant_id, key), person in self._state.subscribers.items()
            if tenant_id == entry.mailout.tenant_id
            and key > entry.plan_cursor
            and person.status == SubscriberStatus.ACTIVE
        )
        return waiting[:size]

    def _tester(self, mailout: Mailout, text: str) -> tuple[str, Subscriber]:
        address = parse_address(text)
        active = [p for (t, _), p in sorted(self._state.subscribers.items()) if t == mailout.tenant_id]
        active = [p for p in active if p.status == SubscriberStatus.ACTIVE]
        example = self._state.subscribers.get((mailout.tenant_id, address.key)) or next(iter(active), None)
        now = mailout.created_at
        nobody = Subscriber(
            "", mailout.tenant_id, "", None, {}, SubscriberStatus.ACTIVE, None, None, None, now
        )
        return address.key, replace(example or nobody, email=address.text)

    def _add_jobs(self, mailout: Mailout, people: list[tuple[str, Subscriber]], now: datetime) -> int:
        planned = {row.recipient_key for row in self._state.jobs_of(mailout.id)}
        got = self._reached(mailout.except_of)
        # The first of two spellings of one address stays.
        new = {key: person for key, person in reversed(people) if key not in planned}
        ids = time_ordered_ids(len(new), int(now.timestamp() * 1000))
        for job_id, (key, person) in zip(ids, reversed(new.items()), strict=True):
            fields = {**person.attributes, **({"name": person.name} if person.name else {})}
            suppressed = self._state.suppression_of(mailout.tenant_id, key) is not None
            why = "suppressed" if suppressed else got_already(got.get(self._state.suppression_key(key)))
            state = JobState.SKIPPED if why else JobState.SCHEDULED
            row = JobRow(job_id, mailout.tenant_id, mailout.id, person.email, key, state, now, fields)
            row.reason = why
            self._state.jobs[job_id] = row
        return len(new)

    def with_stale_report(self, source: str, limit: int) -> Sequence[tuple[Mailout, str | None]]:
        with self._state.transaction():
            found = [e for e in self._state.mailouts.values() if e.mailout.source == source]
            return [(entry.mailout, entry.reported) for entry in found[:limit]]

    def set_reported(self, mailout_id: str, what: str) -> None:
        with self._state.transaction():
            self._state.mailouts[mailout_id].reported = what

    # -- pausing, cancelling, finishing --------------------------------------------------------

    def set_paused(self, mailout_id: str, paused: bool) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.SENDING)
            if entry is None or entry.mailout.cancelled:
                return False
            entry.mailout = replace(entry.mailout, paused=paused)
            return True

    def cancel(self, mailout_id: str) -> bool:
        with self._state.transaction():
            entry = self._with(mailout_id, MailoutStatus.DRAFT, MailoutStatus.READY, MailoutStatus.SENDING)
            if entry is None or entry.mailout.cancelled:
                return False
            entry.mailout = replace(entry.mailout, cancelled=True, reason="cancelled", scheduled=False)
            if entry.mailout.started_at is None:
                entry.mailout = replace(entry.mailout, status=MailoutStatus.FAILED, phase=Phase.OVER)
            elif entry.mailout.phase == Phase.FETCHING:
                entry.mailout = replace(entry.mailout, phase=Phase.RUNNING)
            self._state.audit.append(("operator", "cancel", mailout_id))
            return True

    def cancel_chunk(self, mailout_id: str, size: int) -> int:
        with self._state.transaction() as now:
            entry = self._state.mailouts.get(mailout_id)
            if entry is None or not entry.mailout.cancelled:
                return 0
            waiting = [row for row in self._state.jobs_of(mailout_id) if row.state == JobState.SCHEDULED]
            return sum(move(row, Move.SKIP, reason="cancelled", settled_at=now) for row in waiting[:size])

    def call_back_chunk(self, mailout_id: str, longest: timedelta, size: int) -> int:
        with self._state.transaction() as now:
            scheduled = [row for row in self._state.jobs_of(mailout_id) if row.state == JobState.SCHEDULED]
            far = [row for row in scheduled if row.due_at > now + longest][:size]
            for row in far:
                row.due_at = now
            return len(far)

    def complete(self, mailout_id: str) -> MailoutStatus | None:
        with self._state.transaction() as now:
            entry = self._with(mailout_id, MailoutStatus.SENDING)
            if entry is None or entry.mailout.phase != Phase.RUNNING:
                return None
            states = {row.state for row in self._state.jobs_of(mailout_id)}
            if states & {JobState.SCHEDULED, JobState.SENDING}:
                return None
            nothing_left = (states or entry.mailout.cancelled) and not states & {
                JobState.SENT,
                JobState.IN_DOUBT,
            }
            status = MailoutStatus.FAILED if nothing_left else MailoutStatus.SENT
            entry.mailout = replace(entry.mailout, status=status, phase=Phase.OVER, sent_at=now)
            self._state.outbox.append(("mailout.report", {"mailout_id": mailout_id, "status": str(status)}))
            return status
