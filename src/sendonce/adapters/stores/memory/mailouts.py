"""Mailouts in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sendonce.adapters.stores.memory.dispatches import new_dispatch
from sendonce.adapters.stores.memory.state import DispatchRow, JobRow, MailoutRow, State
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import DispatchPhase, NewDispatch
from sendonce.domain.engine.ids import prefix_range, time_ordered_ids
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.letters import NAMELESS, Letter
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.mailouts.exclusions import got_already, was_reached
from sendonce.domain.mailouts.mailouts import (
    KIND,
    Mailout,
    MailoutId,
    MailoutStatus,
    NewMailout,
    PageEvent,
    Phase,
    PlanProgress,
)
from sendonce.domain.people.subscribers import Subscriber, SubscriberStatus
from sendonce.errors import NotFound

UNSTARTED = (MailoutStatus.DRAFT, MailoutStatus.READY)
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
                id=MailoutId(DispatchId(self._state.new_id(now))),
                tenant_id=tenant_id,
                letter_id=self._state.keep_letter(new.letter, now) if new.letter else None,
                name=new.name,
                source=new.source,
                source_id=new.source_id,
                status=MailoutStatus.DRAFT if new.draft else MailoutStatus.READY,
                is_test=new.is_test,
                audience=new.audience,
                warnings=new.warnings,
                reason=None,
                created_at=now,
                send_at=new.send_at,
            )
            own = NewDispatch(KIND, mailout.id, mailout.letter_id, new.sender_id, new.is_test)
            dispatch = new_dispatch(mailout.id, tenant_id, own, now)
            self._state.dispatches[mailout.id] = DispatchRow(dispatch)
            self._state.mailouts[mailout.id] = MailoutRow(mailout)
            return mailout

    def _seen(self, entry: MailoutRow) -> Mailout:
        return entry.mailout.seen_through(self._state.dispatches[entry.mailout.id].dispatch)

    def _every(self) -> list[Mailout]:
        return [self._seen(entry) for entry in self._state.mailouts.values()]

    def of_page(self, tenant_id: str, source: str, source_id: str) -> Mailout | None:
        with self._state.transaction():
            wanted = (tenant_id, source, source_id, False)
            for m in self._every():
                if (m.tenant_id, m.source, m.source_id, m.is_test) == wanted:
                    return m
            return None

    def get(self, tenant_id: TenantId, mailout_id: str) -> Mailout | None:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            return self._seen(entry) if entry and entry.mailout.tenant_id == tenant_id else None

    def letter(self, mailout_id: str) -> Letter:
        with self._state.transaction():
            entry = self._state.mailouts.get(mailout_id)
            letter = self._state.letters.get(entry.mailout.letter_id or "") if entry else None
            if letter is None:
                raise NotFound(
                    f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is."
                )
            return letter

    def all(self, tenant_id: TenantId, limit: int = 100) -> Sequence[Mailout]:
        everything = self.of_all_tenants(len(self._state.mailouts))
        return [mailout for mailout in everything if mailout.tenant_id == tenant_id][:limit]

    def of_all_tenants(self, limit: int = 100) -> Sequence[Mailout]:
        with self._state.transaction():
            return sorted(self._every(), key=lambda m: (m.created_at, m.id), reverse=True)[:limit]

    def with_status(self, status: MailoutStatus) -> Sequence[Mailout]:
        with self._state.transaction():
            return sorted((m for m in self._every() if m.status == status), key=lambda m: m.id)

    def being_prepared(self) -> Sequence[Mailout]:
        sending = self.with_status(MailoutStatus.SENDING)
        return [m for m in sending if m.phase in (Phase.FETCHING, Phase.PLANNING)]

    def running(self) -> int:
        with self._state.transaction():
            known = (entry.dispatch for entry in self._state.dispatches.values())
            return sum(dispatch.claimable and dispatch.kind == KIND for dispatch in known)

    def _with(self, mailout_id: str, *statuses: MailoutStatus) -> Mailout | None:
        entry = self._state.mailouts.get(mailout_id)
        mailout = self._seen(entry) if entry else None
        return mailout if mailout is not None and mailout.status in (statuses or MailoutStatus) else None

    def _change(self, mailout_id: str, **changes: Any) -> bool:
        entry = self._state.mailouts[mailout_id]
        entry.mailout = replace(entry.mailout, **changes)
        return True

    def _change_dispatch(self, mailout_id: str, **changes: Any) -> None:
        entry = self._state.dispatches[mailout_id]
        entry.dispatch = replace(entry.dispatch, **changes)

    def _set_letter(self, mailout_id: str, letter_id: str | None) -> None:
        self._change(mailout_id, letter_id=letter_id)
        self._change_dispatch(mailout_id, letter_id=letter_id)

    def replace_letter(self, mailout_id: str, new: NewMailout) -> bool:
        assert new.letter is not None
        with self._state.transaction() as now:
            m = self._with(mailout_id, *UNSTARTED)
            if m is None or m.source_id is not None:
                return False
            self._state.letters.pop(m.letter_id or "", None)
            self._set_letter(mailout_id, self._state.keep_letter(new.letter, now))
            send_at = m.send_at if m.scheduled else new.send_at
            said = {"name": new.name, "warnings": new.warnings, "reason": None}
            return self._change(mailout_id, **said, send_at=send_at)

    def delete(self, mailout_id: str) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id, *UNSTARTED)
            if m is None:
                return False
            self._state.letters.pop(m.letter_id or "", None)
            del self._state.mailouts[mailout_id]
            del self._state.dispatches[mailout_id]
            self._state.audit.append(("operator", "delete", mailout_id))
            return True

    def twins(self, tenant_id: str, letter: Letter) -> Sequence[Mailout]:
        def words(of: Letter) -> tuple[str, str, str]:
            return of.subject, of.html, of.text

        with self._state.transaction():
            every = [(m, self._state.letters.get(m.letter_id or "")) for m in self._every()]
            same = [m for m, own in every if own and words(own) == words(letter)]
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

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        with self._state.transaction():
            own = (m.id for m in self._every() if m.tenant_id == tenant_id)
            return sorted(known for known in own if first <= known <= last)[:limit]

    # -- starting and planning -----------------------------------------------------------------

    def make_ready(self, mailout_id: str) -> bool:
        with self._state.transaction():
            if self._with(mailout_id, MailoutStatus.DRAFT) is None:
                return False
            return self._change(mailout_id, status=MailoutStatus.READY)

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
            m = self._with(mailout_id, MailoutStatus.READY)
            if m is None or not m.is_still(checked):
                return False
            if event is not None and not self.hear(mailout_id, event):
                return False
            phase = DispatchPhase.PLANNING if m.letter_id else DispatchPhase.PREPARING
            self._change_dispatch(mailout_id, phase=phase, started_at=now)
            excepted = m.except_of if except_of is None else tuple(except_of)
            said = {"except_of": excepted, "forced": forced}
            return self._change(mailout_id, **said, scheduled=False, reason=None)

    def hear(self, mailout_id: str, event: PageEvent) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id)
            if m is None or not event.is_news_to(m.page_event):
                return False
            at = event.at or (m.page_event.at if m.page_event else None)
            return self._change(mailout_id, page_event=PageEvent(event.id, at))

    def note(self, mailout_id: str, reason: str) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id)
            if m is None or m.status == MailoutStatus.SENDING or m.cancelled or m.paused:
                return False
            return self._change(mailout_id, reason=reason)

    def schedule(
        self,
        mailout_id: str,
        send_at: datetime,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
    ) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id, MailoutStatus.READY)
            if m is None:
                return False
            excepted = m.except_of if except_of is None else tuple(except_of)
            said = {"except_of": excepted, "forced": forced, "reason": None}
            return self._change(mailout_id, **said, send_at=send_at, scheduled=True)

    def unschedule(self, mailout_id: str, reason: str | None = None) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id, MailoutStatus.READY)
            if m is None or not m.scheduled:
                return False
            return self._change(mailout_id, scheduled=False, reason=reason)

    def due(self) -> Sequence[Mailout]:
        with self._state.transaction() as now:
            ready = [m for m in self._every() if m.status == MailoutStatus.READY and m.scheduled]
            timed = [(m.send_at, m.id, m) for m in ready if m.send_at is not None]
            return [m for send_at, _, m in sorted(timed) if send_at <= now]

    def freeze(self, mailout_id: str, name: str, letter: Letter, warnings: Sequence[str]) -> bool:
        with self._state.transaction() as now:
            m = self._with(mailout_id, MailoutStatus.SENDING)
            if m is None or m.phase != Phase.FETCHING:
                return False
            self._set_letter(mailout_id, self._state.keep_letter(letter, now))
            self._change_dispatch(mailout_id, phase=DispatchPhase.PLANNING)
            return self._change(mailout_id, name=name, warnings=tuple(warnings))

    def stop_before_first(
        self,
        mailout_id: str,
        reason: str | None,
        warnings: Sequence[str] = (),
        *,
        send_at: datetime | None = None,
    ) -> bool:
        with self._state.transaction():
            m = self._with(mailout_id, MailoutStatus.SENDING)
            early = m is not None and m.phase in (Phase.FETCHING, Phase.PLANNING)
            if m is None or not early or self._state.jobs_of(mailout_id):
                return False
            self._change_dispatch(mailout_id, phase=DispatchPhase.PREPARING, started_at=None)
            if m.source_id is not None:
                self._set_letter(mailout_id, None)
            timed = {"scheduled": send_at is not None, "send_at": send_at or m.send_at}
            return self._change(mailout_id, reason=reason, warnings=tuple(warnings), **timed)

    def plan_chunk(self, mailout_id: str, planner: str, size: int) -> PlanProgress | None:
        with self._state.transaction() as now:
            m = self._with(mailout_id, MailoutStatus.SENDING)
            if m is None or m.phase != Phase.PLANNING:
                return None
            lease = self._state.dispatches[mailout_id]
            if lease.planner not in (None, planner) and lease.planner_until and lease.planner_until >= now:
                return None
            lease.planner, lease.planner_until = planner, now + PLANNER_LEASE
            entry = self._state.mailouts[mailout_id]
            people = [] if m.cancelled else self._next_people(entry, size)
            added = self._add_jobs(m, people, now)
            if people:
                entry.plan_cursor = people[-1][0]
            finished = len(people) < size or m.audience is not None
            if finished:
                self._change_dispatch(mailout_id, phase=DispatchPhase.RUNNING)
            return PlanProgress(added, finished)

    def _next_people(self, entry: MailoutRow, size: int) -> list[tuple[str, Subscriber]]:
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
        own = self._state.subscribers.get((mailout.tenant_id, address.key))
        now = mailout.created_at
        nobody = Subscriber(
            "", mailout.tenant_id, "", None, {}, SubscriberStatus.ACTIVE, None, None, None, now
        )
        if own is None and active:
            fields = {**active[0].attributes, NAMELESS: "yes"}
            return address.key, replace(active[0], email=address.text, attributes=fields)
        return address.key, replace(own or nobody, email=address.text)

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
            return [(self._seen(entry), entry.reported) for entry in found[:limit]]

    def set_reported(self, mailout_id: str, what: str) -> None:
        with self._state.transaction():
            self._state.mailouts[mailout_id].reported = what
