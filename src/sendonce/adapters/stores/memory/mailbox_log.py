"""What was found in mailboxes, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.mailbox.found import (
    FoundMail,
    MailboxReading,
    MailCursor,
    answer_body,
    answered_topic,
    sum_of_kinds,
)


class MemoryMailboxLog:
    def __init__(self, state: State) -> None:
        self._state = state

    def cursor(self, mailbox: str, folder: str) -> MailCursor | None:
        with self._state.transaction():
            return self._state.mail_cursors.get((mailbox, folder))

    def known(self, mailbox: str, keys: Collection[str]) -> set[str]:
        with self._state.transaction():
            return {key for key in keys if (mailbox, key) in self._state.found_mail}

    def keep(
        self,
        mailbox: str,
        folder: str,
        cursor: MailCursor,
        found: Sequence[FoundMail],
        doors: Collection[str] = (),
    ) -> int:
        with self._state.transaction() as now:
            new = [mail for mail in found if (mailbox, mail.key) not in self._state.found_mail]
            for mail in new:
                self._state.found_mail[mailbox, mail.key] = replace(mail, found_at=now)
                self._tell_door(mail, doors)
            before = self._state.mail_cursors.get((mailbox, folder), cursor)
            if before.uid_validity != cursor.uid_validity or before.last_uid <= cursor.last_uid:
                self._state.mail_cursors[mailbox, folder] = cursor
            return len(new)

    def _tell_door(self, mail: FoundMail, doors: Collection[str]) -> None:
        job = self._state.jobs.get(mail.job_id or "")
        if job is None:
            return
        dispatch = self._state.dispatches[job.dispatch_id].dispatch
        if dispatch.kind in doors:
            body = answer_body(mail, dispatch.id, dispatch.owner_id)
            self._state.outbox.append((answered_topic(dispatch.kind), body))

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[FoundMail]:
        with self._state.transaction():
            newest_first = reversed(self._state.found_mail.values())
            return [mail for mail in newest_first if job_id in (None, mail.job_id)][:limit]

    def note_read(self, mailbox: str, found: Mapping[str, int]) -> None:
        with self._state.transaction() as now:
            before = self._state.mailbox_readings.get(mailbox, MailboxReading(mailbox, None, {}))
            found_so_far = sum_of_kinds(before.found, found)
            self._state.mailbox_readings[mailbox] = MailboxReading(mailbox, now, found_so_far)

    def note_trouble(self, mailbox: str, trouble: str) -> None:
        with self._state.transaction() as now:
            before = self._state.mailbox_readings.get(mailbox, MailboxReading(mailbox, None, {}))
            self._state.mailbox_readings[mailbox] = replace(before, failed_at=now, trouble=trouble)

    def readings(self) -> Sequence[MailboxReading]:
        with self._state.transaction():
            return [self._state.mailbox_readings[name] for name in sorted(self._state.mailbox_readings)]
