"""Read the sending mailbox: what came back to letters of ours.

    new messages ─► what is it? ─► about which letter? ─► bounce, delay, complaint: a delivery event
                                                       ─► wish to unsubscribe: suppressed
                                                       ─► noted, and its door told ─► the cursor moves

The effect comes before the note: whoever dies between the two reads the message again, and an effect that is
there already does not happen twice. Messages are only looked at: none is marked, moved or deleted.

One process at a time reads a mailbox, by a lease that it renews from batch to batch.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol
from uuid import uuid4

from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind, EventVerdict
from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.mailbox.causes import Bounce, Cause
from sendonce.domain.engine.mailbox.classify import Classified, MailKind, classify
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor
from sendonce.domain.engine.mailbox.mime import Mail, read_mail
from sendonce.domain.engine.mailbox.references import References, date_of, message_key, references_of
from sendonce.errors import BadInput, Unavailable
from sendonce.ports.engine import EngineStore, Leases

log = logging.getLogger(__name__)

BATCH = 10
"""Messages that are in memory at a time: each may have a megabyte."""
MOST_AT_ONCE = 2_000
"""Messages of one round. What is left waits for the next."""
LEASE = timedelta(minutes=5)
"""More than a batch takes."""
FIRST_LOOK = timedelta(days=30)
"""How far back the first reading of a folder goes, and one after the server has numbered it anew."""


class MailFolder(Protocol):
    """A folder that is open for reading. Every call raises Unavailable where the server does not answer."""

    uid_validity: int
    uid_next: int

    def younger_than(self, age: timedelta) -> Sequence[int]:
        """The numbers of the messages that came since, rising."""

    def after(self, uid: int) -> Sequence[int]:
        """The numbers above this one, rising."""

    def fetch(self, uids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """The beginning of each message, a megabyte at most. What is gone by now is left out."""


class OpenAccount(Protocol):
    def folder(self, name: str) -> MailFolder: ...


class MailAccount(Protocol):
    """``name`` tells mailboxes apart."""

    name: str

    def opened(self) -> AbstractContextManager[OpenAccount]: ...


class OptOuts(Protocol):
    """How a wish is granted to get no more letters."""

    def of_letter(self, job_id: str) -> object: ...

    def of_address(self, address: Address) -> object: ...


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """``own`` are the keys of our own addresses: what we wrote ourselves is no answer.

    ``secrets`` prove that a token in a message is ours. ``doors`` are the kinds of dispatches whose doors
    want to be told.
    """

    folders: Sequence[str]
    own: frozenset[str]
    secrets: Sequence[bytes]
    doors: Collection[str] = ()


@dataclass(slots=True)
class Reading:
    """What a round found: how many messages of each kind, and how many of them are about letters of ours."""

    kinds: Counter[str] = field(default_factory=Counter)
    ours: int = 0
    elsewhere: bool = False
    """Another process reads this mailbox now, so this one has left it alone."""

    @property
    def messages(self) -> int:
        return self.kinds.total()


class MailboxReader:
    """Without ``leases`` whoever calls sees to it that nobody else reads the mailbox."""

    def __init__(
        self,
        account: MailAccount,
        store: EngineStore,
        opt_outs: OptOuts,
        rules: ReadingRules,
        leases: Leases | None = None,
    ) -> None:
        self._account = account
        self._store = store
        self._opt_outs = opt_outs
        self._rules = rules
        self._leases = leases
        self._lease, self._holder = f"mailbox/{account.name}", uuid4().hex

    def run(self) -> Reading:
        """One round over all folders, unless another process is at it. Raises Unavailable."""
        if not self._keep_lease():
            return Reading(elsewhere=True)
        try:
            return self._read_all()
        except Unavailable as exc:
            self._store.mailbox_log.note_trouble(self._account.name, str(exc))
            raise
        finally:
            if self._leases is not None:
                self._leases.leave(self._lease, self._holder)

    def _keep_lease(self) -> bool:
        return self._leases is None or self._leases.take(self._lease, self._holder, LEASE)

    def _read_all(self) -> Reading:
        reading = Reading()
        with self._account.opened() as account:
            for name in self._rules.folders:
                self._read(account.folder(name), name, reading)
        self._store.mailbox_log.note_read(self._account.name, reading.kinds)
        if reading.messages:
            facts = {"mailbox": self._account.name, **reading.kinds, "about_our_letters": reading.ours}
            log.info("mailbox read", extra={"fields": facts})
        return reading

    def _read(self, folder: MailFolder, name: str, reading: Reading) -> None:
        kept, mailbox = self._store.mailbox_log, self._account.name
        cursor = kept.cursor(mailbox, name)
        if cursor is not None and cursor.uid_validity == folder.uid_validity:
            uids = folder.after(cursor.last_uid)
        else:
            uids = folder.younger_than(FIRST_LOOK)
            if not uids:
                kept.keep(mailbox, name, MailCursor(folder.uid_validity, folder.uid_next - 1), ())
        uids = uids[:MOST_AT_ONCE]
        for start in range(0, len(uids), BATCH):
            if not self._keep_lease():
                raise Unavailable(f"Another process has gone on with {mailbox}: this one took too long.")
            batch = uids[start : start + BATCH]
            found = self._take([raw for _, raw in folder.fetch(batch)], reading)
            kept.keep(mailbox, name, MailCursor(folder.uid_validity, batch[-1]), found, self._rules.doors)

    def _take(self, messages: Sequence[bytes], reading: Reading) -> list[FoundMail]:
        read = [(read_mail(raw), raw) for raw in messages]
        keyed = {message_key(mail, raw): mail for mail, raw in read}
        known = self._store.mailbox_log.known(self._account.name, keyed)
        found = [self._apply(key, mail) for key, mail in keyed.items() if key not in known]
        for each in found:
            reading.kinds[each.kind] += 1
            reading.ours += each.job_id is not None
        return found

    def _apply(self, key: str, mail: Mail) -> FoundMail:
        """Do what follows from a message, and say what is to be noted of it."""
        told = self._classified(mail)
        by_machine = told.kind in _EVENTS or mail.content_type == "multipart/report"
        job = self._known_job(references_of(mail, self._rules.secrets), by_machine=by_machine)
        job_id = job.id if job is not None else None
        if told.kind is MailKind.OPT_OUT:
            self._opt_out(job, None if by_machine else _readable(told.recipient))
        elif job is not None and told.kind in _EVENTS:
            self._record(job, told, key, mail)
        said_by_server = told.kind in (MailKind.BOUNCE, MailKind.DELAY)
        return FoundMail(
            key=key,
            kind=told.kind,
            job_id=job_id,
            sender=None if said_by_server else told.recipient,
            recipient=told.recipient if said_by_server else None,
            bounce=told.bounce,
            code=told.code,
            reason=told.reason if said_by_server else None,
            sent_at=date_of(mail),
        )

    def _classified(self, mail: Mail) -> Classified:
        told = classify(mail)
        author = _readable(told.recipient)
        wrote_it_ourselves = author is not None and author.key in self._rules.own
        return replace(told, kind=MailKind.OTHER) if wrote_it_ourselves and told.kind in _ANSWERS else told

    def _known_job(self, about: References, *, by_machine: bool) -> Job | None:
        """What servers and complaint desks say counts with proof only; a thread is enough for an answer."""
        job_id = about.proven if by_machine else about.job_id
        return self._store.jobs.get(job_id) if job_id is not None else None

    def _opt_out(self, job: Job | None, author: Address | None) -> None:
        """Both are meant: whoever writes, and whom the letter was sent to, perhaps at another address."""
        if job is not None:
            self._opt_outs.of_letter(job.id)
        recipient = _readable(job.recipient) if job is not None else None
        if author is not None and (recipient is None or recipient.key != author.key):
            self._opt_outs.of_address(author)

    def _record(self, job: Job, told: Classified, key: str, mail: Mail) -> None:
        if job.attempt == 0:
            return
        kind = _EVENTS[told.kind]
        event = DeliveryEvent(
            event_id=f"mailbox:{key}",
            # Two reports of the same failure are one fact; a delay may be told again and again.
            natural_key=f"mailbox:{job.id}:{kind}:{key if kind is EventKind.DEFERRED else told.bounce}",
            kind=kind,
            occurred_at=date_of(mail) or self._store.ledger.now(),
            message_id=None,
            job_id=job.id,
            attempt=job.attempt,
            recipients=(job.recipient,),
            bounce_type=_bounce_type(told),
            bounce_subtype=str(told.cause) if told.cause else None,
            code=told.code,
            reason=told.reason,
            raw={"mailbox": self._account.name},
        )
        if self._store.events.record(event) is EventVerdict.DUPLICATE_SEND:
            log.error("a second copy of a letter left", extra={"fields": {"job": job.id}})


_EVENTS = {
    MailKind.BOUNCE: EventKind.BOUNCE,
    MailKind.DELAY: EventKind.DEFERRED,
    MailKind.COMPLAINT: EventKind.COMPLAINT,
}
_ANSWERS = (MailKind.REPLY, MailKind.AUTO_REPLY, MailKind.OPT_OUT)
_OF_THE_MAILBOX = (Cause.FULL, Cause.NO_MAILBOX, Cause.NO_DOMAIN, Cause.DISABLED)


def _bounce_type(told: Classified) -> BounceType | None:
    """A filter or a fault of ours says nothing about the mailbox: it must not count towards its end."""
    if told.bounce is None:
        return None
    if told.bounce is Bounce.HARD:
        return BounceType.PERMANENT
    return BounceType.TRANSIENT if told.cause in _OF_THE_MAILBOX else BounceType.UNDETERMINED


def _readable(text: str | None) -> Address | None:
    try:
        return parse_address(text) if text else None
    except BadInput:
        return None
