"""Show a person: all that is known, and why each letter was or was not sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.mailouts.mailouts import KIND, Mailout
from sendonce.domain.people.privacy import ERASED_NOTE, LetterTo, PersonFile
from sendonce.domain.people.subscribers import Subscriber, SubscriberStatus
from sendonce.ports.mailouts import MailoutStore

MOST_MAILOUTS = 1_000


@dataclass(frozen=True, slots=True)
class Explained:
    """A mailout, or the kind of another dispatch; the letter if there is one; what became of it."""

    mailout: Mailout | None
    kind: str
    letter: LetterTo | None
    why: str


@dataclass(frozen=True, slots=True)
class PersonReport:
    address: str
    file: PersonFile
    mailouts: list[Explained]

    @property
    def known(self) -> bool:
        file = self.file
        return bool(file.subscribers or file.suppressions or file.letters or file.traces)

    @property
    def erased_at(self) -> datetime | None:
        """When the person was erased, if so."""
        return erased_at(self.file)


def erased_at(file: PersonFile) -> datetime | None:
    moments = [s.created_at for s in file.suppressions if s.address is None and s.note == ERASED_NOTE]
    return min(moments, default=None)


def show_person(store: MailoutStore, address: Address) -> PersonReport:
    file = store.people.file_of(address)
    mailouts = store.mailouts.of_all_tenants(MOST_MAILOUTS)
    return PersonReport(address.text, file, list(_explained(store, file, mailouts)))


def _explained(store: MailoutStore, file: PersonFile, recent: Iterable[Mailout]) -> Iterator[Explained]:
    letters: dict[str, list[LetterTo]] = {}
    for letter in file.letters:
        letters.setdefault(letter.job.dispatch_id, []).append(letter)
    for mailout in recent:
        found = letters.pop(mailout.id, [])
        for letter in found:
            yield Explained(mailout, KIND, letter, why_sent_or_not(letter.job))
        if not found and mailout.audience is None:
            yield Explained(mailout, KIND, None, why_no_letter(mailout, file))
    for mailout_id, found in letters.items():
        older = store.mailouts.get(found[0].job.tenant_id, mailout_id)
        for letter in found:
            yield Explained(older, _kind(store, letter), letter, why_sent_or_not(letter.job))


def _kind(store: MailoutStore, letter: LetterTo) -> str:
    dispatch = store.dispatches.get(letter.job.dispatch_id)
    return dispatch.kind if dispatch else KIND


_SKIPPED = {
    "suppressed": "not sent: the address was suppressed",
    "cancelled": "not sent: the mailout was cancelled",
    "erased": "not sent: the person was erased",
}


def why_sent_or_not(job: Job) -> str:
    told = " ".join(filter(None, (job.code, job.reason)))
    match job.state:
        case JobState.SENT:
            return "sent" + _marks(job)
        case JobState.SKIPPED:
            return _SKIPPED.get(job.reason or "", f"not sent: {job.reason or 'skipped'}")
        case JobState.FAILED:
            return f"not sent: the provider refused it for good ({told or 'no reason given'})"
        case JobState.DEAD:
            return f"not sent: put off {job.tries} times, the tries are used up ({told or 'no reason given'})"
        case JobState.IN_DOUBT:
            return f"in doubt: handed to the provider, the outcome is unknown ({told or 'no reply'})"
        case JobState.SENDING:
            return "on its way to the provider"
    put_off = f", put off before ({told})" if told else ""
    return f"not sent yet: waits for its turn{put_off}"


def _marks(job: Job) -> str:
    moments = {
        "delivered": job.delivered_at,
        "bounced": job.bounced_at,
        "rejected by the provider": job.rejected_at,
        "complained of": job.complained_at,
    }
    return "".join(f", {what} {moment:%Y-%m-%d %H:%M} UTC" for what, moment in moments.items() if moment)


def why_no_letter(mailout: Mailout, file: PersonFile) -> str:
    """Why a mailout has no job for the person. Jobs are planned when it starts, for who is active then."""
    mine = [person for person in file.subscribers if person.tenant_id == mailout.tenant_id]
    if mailout.started_at is None:
        return "not sent yet: the mailout has not been started"
    if not mine and erased_at(file) is not None:
        return "no letter: the person was erased, or was not among the subscribers"
    if not mine:
        return "not sent: not among the subscribers"
    return _why_not_planned(mailout, mine)


def _why_not_planned(mailout: Mailout, mine: list[Subscriber]) -> str:
    person = mine[0]
    if mailout.started_at is not None and person.created_at > mailout.started_at:
        return "not sent: subscribed after the mailout was started"
    if person.status != SubscriberStatus.ACTIVE:
        since = f" since {person.status_updated_at:%Y-%m-%d}" if person.status_updated_at else ""
        return f"not sent: {person.status}{since}"
    return "not sent: the mailout has planned no letter to this address"
