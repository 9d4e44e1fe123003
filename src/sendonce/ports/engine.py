"""What the engine needs from outside: the ledger and what carries letters. (Death has a port of its own.)

Each port is as small as its consumer needs, so that SQLite, PostgreSQL, DynamoDB and the in-memory
fake can all be it. Stores are plain synchronous code; transports wait on many sockets and are async.
Every store method raises ``Unavailable`` when the database does not answer.

What sending may rely on is what the weakest store can keep, one that writes a row at a time:

- Each settlement, each claimed job and every other move of a job is atomic, conditional on that job's state
  and attempt, and durable when the verb returns. A group as a whole is not: where a verb raises
  ``Unavailable`` or its process dies, any part of the group may have been done. Asked again, it does the
  rest and nothing twice.
- A row that is asked for by its id, and what a worker has claimed, are as the last write left them. Listings
  may lag: for a moment they miss what has just come and show what has just gone. So they only nominate, the
  row decides, and whoever works by a listing comes back to it.
- No verb reads more than what it gives back. Only those that say so look at all jobs of a dispatch.

A database with transactions keeps more; nothing in the flows asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from sendonce.domain.engine.dispatches import Dispatch, DispatchResult, NewDispatch, NewJob
from sendonce.domain.engine.doubts import Doubt, Surroundings
from sendonce.domain.engine.event_route import Listening
from sendonce.domain.engine.events import (
    DeliveryEvent,
    EventKind,
    EventVerdict,
    RawEvent,
    UnreadableEvent,
)
from sendonce.domain.engine.jobs import BEFORE_ALL, Books, ClaimRequest, Job, JobState, Settlement, Turn
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor
from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.parcels import Parcel, Quota
from sendonce.domain.engine.reports import RecipientOutcome
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity, WaitingSender
from sendonce.domain.engine.senders import HoldOrder, SenderHold
from sendonce.domain.engine.sent_folder import AcceptedNear
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.engine.workers import LedgerIdentity, Pulse, WorkerRecord, WorkerStatus

JobRef = tuple[str, int]
"""A job and one of its attempts."""


class Ledger(Protocol):
    """The message jobs and the only ways to move them."""

    def identity(self) -> LedgerIdentity: ...

    def now(self) -> datetime:
        """The store's clock; due times and claims go by it."""

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        """Settle outcomes, then claim the next group; durable on return, in one commit where the store can.

        Claimed are due jobs of dispatches that are running, neither paused nor cancelled, in the order of
        their due time; a suppressed one becomes skipped instead. For a held sender nothing
        is claimed until its next try is due, and then one job, by one worker: the turn tells the hold.

        Dispatches with due jobs share the claims: a group is filled from the one that was served least, by
        weight (``domain.engine.dispatches``), then from the next; tenants with due jobs share them likewise.
        So a dispatch that wakes up is in the second group at the latest beside one other, however long
        that is. Workers that claim at the same moment may serve the same dispatch.

        Settlements are idempotent. The claim counts in its worker's row (domain/engine/claim_counts) before
        the first job is taken; one that was cut off is found again by its token, as far as it got. Raises
        LedgerRolledBack when the ledger is halted, and when the database is found to have gone back: a
        settlement's claim or the worker's own count is unknown here; then it is halted first, in a
        transaction of its own. Raises WorkerBuried when the worker's row has ended, and StoreLost when it
        is unknown whether the commit happened: then nothing may be sent, and the same turn is asked again
        with ``claim.retry``.
        """

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        """Whether a claimed attempt may still leave: not suppressed, paused, cancelled or fenced since."""

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        """The attempts that a worker had claimed and not settled: all of them, for it is buried by this."""

    def oldest_claim(self) -> datetime | None:
        """When the oldest attempt that is still sending was claimed. A listing."""

    def fence(self, transport: str, claimed_before: datetime, proof: str) -> int:
        """sending → in_doubt, with a death proof, for what was claimed (and signed) before a time.

        Goes by a listing: what it misses is there at the next look.
        """

    def doubts(
        self,
        limit: int,
        *,
        after: str = BEFORE_ALL,
        transport: str | None = None,
        dispatch_id: str | None = None,
    ) -> Sequence[Doubt]:
        """Jobs in doubt, in the order of their ids, from behind ``after`` on. A listing.

        With ``transport`` only those that its workers claimed and that have a death proof.
        """

    def surroundings(self, doubt: Doubt) -> Surroundings:
        """What was accepted around a doubt that has a claim and a death proof.

        Reads a bounded number of rows. What was not found in them counts against absence. A listing, which
        must not lag by as much as the quiet time: a letter that was accepted and is not shown yet would not
        be missed.
        """

    def prove_absence(self, refs: Sequence[JobRef], proof: str) -> int:
        """in_doubt → scheduled (or skipped, if cancelled) where the death proof is there too."""

    def resolve(self, job_ids: Sequence[str], *, sent: bool, actor: str, note: str) -> int:
        """An operator's word on jobs in doubt: it fills both proofs and is written to the audit log."""

    def retry(self, job_ids: Sequence[str], actor: str, *, not_sent_elsewhere: bool = False) -> int:
        """Another life for dead and failed jobs, in the audit log too.

        A job that ended before the database was adopted stays as it is, unless the operator knows that it was
        ``not_sent_elsewhere``: see ``domain.engine.jobs.ended_before_adoption``.
        """

    def bury(self, worker_id: str, actor: str) -> int:
        """End a worker by an operator's word: sending → in_doubt for what it had claimed; how many.

        The word is a death proof, no more, and is written to the audit log. Raises RefusedByRule for a worker
        that is over.
        """

    def halt(self, reason: str) -> None:
        """Stop all claims until ``adopt``. The first reason stays."""

    def adopt(self, fingerprint: str | None, claim_seq: int, actor: str) -> int:
        """Take a restored or copied database into use: what may have been sent becomes in doubt.

        Scheduled and sending jobs of started dispatches go to in_doubt, open workers end, and last of all the
        halt is lifted: whoever was cut off before that asks again. Looks at every job that has not ended.
        Failed and dead jobs stay so, but may have been retried elsewhere: see ``retry``.
        """

    def vouch(self, fingerprint: str | None, actor: str) -> None:
        """An operator's word that this other database has lost nothing: the halt is lifted, nothing else.

        It is written to the audit log. Where claims are missing all the same, they halt the ledger again.
        """


class BegunTurn(Protocol):
    """A turn whose effects nobody may act upon yet."""

    def commit(self) -> Turn:
        """Make it durable. Raises StoreLost when it is unknown whether that happened."""


@runtime_checkable
class QuickTurns(Protocol):
    """What a ledger may have beside its verbs, if it lives inside this process.

    Its statements take a millisecond there, while handing each of them to a thread and back costs more, and
    the disk is what is worth waiting for beside the wire.
    """

    def begin_turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> BegunTurn | None:
        """A turn but for its commit, which may run in another thread; None where it would have to wait."""


class Queue(Protocol):
    """What sending asks about jobs beside the ledger. Listings."""

    def oldest_due(self, sender_id: str | None = None) -> datetime | None:
        """The due time of the job that has waited longest, if any is claimable; of one sender, or of all."""

    def handed_over_since(self, moment: datetime) -> int:
        """At most how many letters a provider was given since then: claimed jobs, and canaries.

        Reads the jobs of dispatches that were open since, so not for every turn.
        """


class Jobs(Queue, Protocol):
    """Looking at the ledger, for people. All are listings, except ``get``."""

    def books(self, dispatch_id: DispatchId) -> Books: ...

    def count_by_state(self) -> dict[str, int]: ...

    def count_unsubscribed(self, dispatch_id: DispatchId) -> int:
        """Recipients of a dispatch who unsubscribed after it was sent to them."""

    def troubles(
        self, dispatch_id: DispatchId, limit: int, *, among: Sequence[str] | None = None
    ) -> tuple[Sequence[Job], int]:
        """Jobs that are errors (``RecipientOutcome.is_error``): the first, and how many there are.

        With ``among`` only jobs of these ids count.
        """

    def next_due(self, dispatch_id: DispatchId) -> Job | None:
        """The scheduled job of a dispatch that comes due first."""

    def list(
        self,
        *,
        states: Sequence[JobState] = (),
        dispatch_id: DispatchId | None = None,
        worker_id: str | None = None,
        code: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Sequence[Job]:
        """Jobs in the order of their ids, for people; page with ``after``."""

    def get(self, job_id: str) -> Job | None: ...

    def accepted_near(self, doubt: Doubt, sender_id: str, limit: int) -> AcceptedNear:
        """The jobs of a sender that were accepted on the doubt's route nearest to it, at most ``limit`` on
        each side: claimed up to five minutes before it (or in the same moment), and up to five after it.
        Those that have a Send event already are left out."""

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so (see ``domain.ids.is_prefix``), at most ``limit``."""

    def outcomes(
        self, dispatch_id: DispatchId, *, after: str = "", limit: int = 5000, only_errors: bool = False
    ) -> Sequence[RecipientOutcome]:
        """What became of each recipient, in the order of their keys; page with ``after``."""


class Dispatches(Protocol):
    """Runs of message jobs that start, pause, cancel and end together."""

    def open(self, tenant_id: TenantId, new: NewDispatch) -> Dispatch:
        """A new dispatch, started and being planned. ``abandoned`` tells of it if that takes too long."""

    def plan(self, dispatch_id: DispatchId, jobs: Sequence[NewJob]) -> int:
        """Add scheduled jobs to it, also while it runs, and reopen one that is over; how many are new.

        A recipient who has a job in this dispatch gets no second one. Raises RefusedByRule for a cancelled
        dispatch, NotFound for an unknown one.
        """

    def run(self, dispatch_id: DispatchId) -> bool:
        """All is planned: its jobs may be claimed. False when it is not being planned."""

    def abandoned(self) -> Sequence[DispatchId]:
        """Dispatches that a door began to plan and has not touched for ``PLANNED_WITHIN``."""

    def get(self, dispatch_id: DispatchId) -> Dispatch | None: ...

    def running(self, after: str, limit: int) -> Sequence[DispatchId]:
        """Running dispatches in the order of their ids, from behind ``after`` on."""

    def to_finish(self, *, among: Sequence[DispatchId] = ()) -> Sequence[Dispatch]:
        """Running dispatches that may be over: nothing is scheduled, or they were cancelled.

        What else may have ended them (an event, an erasure) shows only for those ``among`` these, whose jobs
        are looked for.
        """

    def put_off_beyond(self, longest: timedelta, among: Sequence[DispatchId]) -> Sequence[DispatchId]:
        """Those of these that run and have a job that the engine put off for more than ``longest``.

        A due time that a door chose stands, however far ahead: see ``NewJob``.
        """

    def set_paused(self, dispatch_id: DispatchId, paused: bool) -> bool:
        """False when it is over, cancelled or not started."""

    def cancel(self, dispatch_id: DispatchId) -> bool:
        """Final: sets the flag, in the audit log too. The scheduled jobs are skipped by ``cancel_chunk``.

        What has not been started is over at once. False when it is over already.
        """

    def cancel_chunk(self, dispatch_id: DispatchId, size: int) -> int: ...

    def take_back(self, dispatch_id: DispatchId, job_ids: Sequence[str], reason: str) -> int:
        """scheduled → skipped for these jobs of a dispatch; how many. What is under way or settled stays."""

    def call_back_chunk(self, dispatch_id: DispatchId, longest: timedelta, size: int) -> int:
        """Jobs as in ``put_off_beyond`` are due now; how many of at most ``size``."""

    def complete(self, dispatch_id: DispatchId) -> DispatchResult | None:
        """running → over when nothing is scheduled or sending.

        In the same write the outbox gets an entry under ``<kind>.ended`` with the dispatch's id, its owner's
        and the result: so its door learns of the end. Where listings lag, a job that has just come in may be
        missed; then the claim that finds it opens the dispatch again, as ``plan`` would have done.
        """


class Letters(Protocol):
    """The letters that jobs are made from."""

    def put(self, tenant_id: TenantId, letter: Letter) -> str:
        """Keep a letter; its id."""

    def get(self, letter_id: str) -> Letter | None: ...


class Canaries(Protocol):
    """Letters to the provider's own test mailbox, sent to see that the event route works."""

    def launch(self, canary_id: str, route: str) -> None: ...

    def accepted(self, canary_id: str, message_id: str) -> None: ...

    def last(self, route: str) -> tuple[datetime, bool] | None:
        """When the newest accepted canary of a route was launched, and whether its event came back."""


class EventRoute(Protocol):
    """Who receives the provider's events, and since when."""

    def attend(self, receiver: str, *, durable: bool, anew: bool = False) -> None:
        """The receiver takes events now. After too long a silence, or ``anew``, it begins a new row."""

    def leave(self, receiver: str) -> None:
        """The receiver signs off: it lost nothing, and takes no more events."""

    def listening(self) -> Listening:
        """The notes of all receivers, of the last days."""

    def subscribed(self, topic: str) -> None:
        """The topic delivers to us: its subscription was confirmed, or a message of it came."""

    def unsubscribed(self, topic: str) -> None:
        """The topic told that it delivers no more."""

    def is_subscribed(self, topics: Collection[str]) -> bool:
        """Whether one of these topics delivers to us."""


class Outbox(Protocol):
    """What is still to be told to the world outside, put there in the transaction that made it true."""

    def due(self, topic: str, limit: int) -> Sequence[tuple[str, dict[str, Any]]]:
        """The oldest entries of a topic that are not done: id and body."""

    def done(self, entry_id: str) -> None: ...

    def put(self, topic: str, body: dict[str, Any]) -> None: ...


class Leases(Protocol):
    """Work that one process at a time may do, as long as it says that it lives. No letter goes by it."""

    def take(self, name: str, holder: str, lasting: timedelta) -> bool:
        """Take or keep a lease, by the store's clock; False while somebody else has it."""

    def leave(self, name: str, holder: str) -> None: ...


class MailboxLog(Protocol):
    """How far each folder of each mailbox was read, and what was found there, once a message."""

    def cursor(self, mailbox: str, folder: str) -> MailCursor | None: ...

    def known(self, mailbox: str, keys: Collection[str]) -> set[str]:
        """Which of these keys were found in it before, in whichever folder."""

    def keep(
        self,
        mailbox: str,
        folder: str,
        cursor: MailCursor,
        found: Sequence[FoundMail],
        doors: Collection[str] = (),
    ) -> int:
        """Note what is new of ``found`` and move the cursor, in one transaction; how many were new.

        For a message about a job whose dispatch is of a kind in ``doors``, the outbox gets an entry under
        ``<kind>.answered``. The cursor never goes back under the same validity.
        """

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[FoundMail]:
        """The newest first."""


class EventIntake(Protocol):
    """Where delivery events are taken in."""

    def record(self, event: DeliveryEvent) -> EventVerdict:
        """Keep the event and apply its effect; the second copy changes nothing.

        Both are durable on return. A store that cannot write them together keeps the event as done only after
        its effect, so that one that was cut off is applied when the provider tells it again.
        """

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        """The same as ``record`` for one after the other, in fewer commits; all are durable on return.

        Raises Unavailable: then any of them may have been recorded, and recording it again is harmless.
        """

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        """Keep a genuine message that cannot be read, of which the newest thousand stay; False for a copy."""


class Events(EventIntake, Protocol):
    """The events that were taken in, for people."""

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        """The newest first."""

    def count_unreadable(self) -> int: ...

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]: ...

    def raw_before(self, moment: datetime, limit: int) -> Sequence[RawEvent]:
        """The oldest events whose raw text was not looked at yet, if they came before then."""

    def drop_raw(self, events: Sequence[RawEvent]) -> bool:
        """Remove the raw texts of events that ``raw_before`` has just given; all else of them stays.

        False if somebody else did so meanwhile.
        """


class Roster(Protocol):
    """The workers, as they and those who bury them need it."""

    def register(self, worker: WorkerRecord) -> None: ...

    def end(self, worker_id: str, how: str) -> None:
        """The worker is over; its permits return. Raises RefusedByRule while it has jobs in sending."""

    def open(self) -> Sequence[WorkerRecord]:
        """Those that are not over. A listing."""

    def see(self, worker_id: str, pulse: Pulse) -> None:
        """A sign of life: the worker is at work now."""

    def claims_of(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many claims are counted for each of these workers, open or not; unknown ones are left out."""


class Workers(Roster, Protocol):
    """The same with what people look at."""

    def find(self, worker_id: str) -> WorkerStatus | None: ...

    def statuses(self, *, ended: int = 0) -> Sequence[WorkerStatus]:
        """All open workers, the oldest first, then the last ``ended`` of those that are over."""


class Permits(Protocol):
    def renew(self, key: str, worker_id: str, rate: int, held: int) -> int:
        """Renew the lease on this worker's permits: how many it may hold, their sum over all ≤ ``rate``.

        ``held`` is how many it holds now. The answer may be lower: then it retires permits as they
        come home, and tells so at its next renewal.
        """

    def release(self, key: str, worker_id: str) -> None: ...


class Senders(Protocol):
    """The senders that were added beside the environment's own."""

    def add(self, tenant_id: TenantId, new: NewSender, actor: str) -> SenderIdentity:
        """A new sender, in the audit log too. Raises RefusedByRule for an address that another sender has.

        The address of a removed sender of the same tenant brings that one back, as it is described now: the
        letters that waited for it go on.
        """

    def get(self, sender_id: str) -> SenderIdentity | None:
        """Also a removed one."""

    def all(self, *, removed: bool = False) -> Sequence[SenderIdentity]:
        """In the order of their addresses."""

    def remove(self, sender_id: str, actor: str) -> bool:
        """No worker serves it any more. False for one that is removed already, or unknown."""

    def waiting(self) -> Sequence[WaitingSender]:
        """The added senders, known or not, of dispatches that have jobs to claim now or later.

        It costs the same however many dispatches there are.
        """


class SenderHolds(Protocol):
    """Senders that their provider refuses. ``Ledger.turn`` claims nothing for a held sender."""

    def hold(self, key: str, order: HoldOrder) -> SenderHold:
        """Hold a sender; what is in force then. A sender that is held already stays as it is, except after
        a probe: then the hold is renewed, and counts one more try."""

    def hold_by_hand(self, key: str, reason: str, until: datetime | None, actor: str) -> SenderHold:
        """A person's word, written to the audit log: hold it until then, or until it is released. It takes
        the place of any other hold, and no probe changes it."""

    def end(self, hold: SenderHold) -> bool:
        """A probe of this hold was accepted. False when the hold is over already, or is another one."""

    def release(self, key: str, actor: str) -> bool:
        """A person's word, written to the audit log."""

    def get(self, key: str) -> SenderHold | None: ...

    def all(self) -> Sequence[SenderHold]: ...


class Archive(Protocol):
    """Where old records are kept outside the database, before their rows are removed."""

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        """Keep a record of that time; where it is. Durable on return, so its rows may go then.

        The same kind, name and day take the place of an earlier record: keeping again after a crash is
        harmless. Raises Unavailable.
        """

    def read(self, place: str) -> bytes:
        """A record, from where ``keep`` has put it.

        Raises NotFound, also for another machine's record and for a damaged one.
        """

    def prune(self, kind: str, before: datetime) -> int:
        """Remove the records of the days before that one; how many. Raises Unavailable."""


class Journal(Protocol):
    """The living worker's own record of what is on the wire, outside the database."""

    def wire(self, job_id: str, attempt: int) -> bool:
        """Before the first byte of the body. False: it could not be written, so do not send."""

    def reply(self, job_id: str, attempt: int, outcome: Outcome) -> None: ...

    def claimed(self, claim_seq: int, claims: int) -> None:
        """The number of the newest claim, and how many claims this worker made."""


class Meter(Protocol):
    """Where the engine and the events tell how they fare."""

    def observe_turn(self, claimed: int, settled: int, seconds: float) -> None: ...

    def count_outcome(self, transport: str, outcome: Outcome) -> None: ...

    def count_event(self, kind: EventKind, verdict: EventVerdict) -> None: ...

    def count_unreadable(self) -> None: ...


class ReadableMeter(Meter, Protocol):
    """A meter that others may read."""

    def render(self) -> bytes: ...

    @property
    def content_type(self) -> str: ...


class Feed(Protocol):
    """Where a transport's connections get their parcels, and where they leave the outcomes.

    The order for each parcel is: ``take`` → everything that is not the body (connect, envelope) →
    ``reaffirm`` if that took long → ``wire`` → the body → the reply → ``settle``.
    """

    async def wanted(self) -> bool:
        """Wait until parcels are ready that no connection waits for; False when the work is over.

        For transports whose connections take long to open: a parcel that waited for one would grow old.
        """

    async def take(self) -> Parcel | None:
        """The next parcel, when there is one and pacing allows it; None when the work is over."""

    def take_nowait(self) -> Parcel | None:
        """The next parcel if one may leave this very moment. For pipelining."""

    def is_stale(self, parcel: Parcel) -> bool:
        """Whether the parcel's claim is too old for the wire, unless it is reaffirmed."""

    async def reaffirm(self, parcel: Parcel) -> None:
        """Ask the ledger whether the parcel may still leave; if so, its claim is fresh again.

        For servers that take long to answer the envelope: given back, such a letter would never leave.
        Takes about a second at most, and never raises.
        """

    def wire(self, parcel: Parcel) -> bool:
        """Write the parcel into the wire journal, right before the first byte of its body leaves.

        False means that it must not be sent (its claim is too old, the journal cannot be written, or
        the worker is stopping): the transport drops it without ``settle``; it has been given back.
        """

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        """The outcome of a taken parcel. Called once, also for one that never got to ``wire``."""


class Transport(Protocol):
    """How letters leave. One object a worker process."""

    name: str

    async def carry(self, feed: Feed, connections: int) -> None:
        """Move parcels from the feed over at most ``connections`` connections, until take() gives None.

        At most one body a connection is on the wire at any moment, so a SIGKILL leaves at most
        ``connections`` letters in doubt.
        A cancelled carry() settles what was on the wire as InDoubt. It never raises for what a server does.
        """

    async def quota(self) -> Quota | None:
        """What the provider allows now; None where it has no such notion. Raises Unavailable."""

    async def close(self) -> None: ...


class SendingStore(Protocol):
    """An open database, as far as sending needs it."""

    @property
    def ledger(self) -> Ledger: ...
    @property
    def jobs(self) -> Queue: ...
    @property
    def dispatches(self) -> Dispatches: ...
    @property
    def letters(self) -> Letters: ...
    @property
    def canaries(self) -> Canaries: ...
    @property
    def event_route(self) -> EventRoute: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def events(self) -> EventIntake: ...
    @property
    def workers(self) -> Roster: ...
    @property
    def permits(self) -> Permits: ...
    @property
    def senders(self) -> Senders: ...
    @property
    def sender_holds(self) -> SenderHolds: ...

    def fingerprint(self) -> str | None:
        """What tells this database from a copy of it, where that can be told.

        See domain/engine/fingerprints.
        """


class EngineStore(SendingStore, Protocol):
    """The same with what people look at."""

    jobs: Jobs
    events: Events
    workers: Workers
    mailbox_log: MailboxLog

    def close(self) -> None: ...
