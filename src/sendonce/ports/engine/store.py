"""An open database, as far as the engine needs it."""

from __future__ import annotations

from typing import Protocol

from sendonce.ports.engine.dispatches import Dispatches, Letters
from sendonce.ports.engine.events import Canaries, EventIntake, EventRoute, Events
from sendonce.ports.engine.jobs import Jobs, Queue
from sendonce.ports.engine.ledger import Ledger
from sendonce.ports.engine.mailboxes import MailboxLog
from sendonce.ports.engine.outside import Outbox
from sendonce.ports.engine.senders import SenderHolds, Senders
from sendonce.ports.engine.workers import Permits, Roster, Workers


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
