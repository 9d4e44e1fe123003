"""The store in memory: the fake that the conformance suite holds to the same rules as the databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sendonce.adapters.stores.memory.dispatches import MemoryDispatches, MemoryLetters
from sendonce.adapters.stores.memory.event_route import MemoryEventRoute
from sendonce.adapters.stores.memory.events import MemoryEvents
from sendonce.adapters.stores.memory.jobs import MemoryJobs
from sendonce.adapters.stores.memory.keys import MemoryKeys
from sendonce.adapters.stores.memory.ledger import MemoryLedger
from sendonce.adapters.stores.memory.mailbox_log import MemoryMailboxLog
from sendonce.adapters.stores.memory.mailouts import MemoryMailouts
from sendonce.adapters.stores.memory.people import (
    MemoryAssets,
    MemoryOutbox,
    MemorySubscribers,
    MemorySuppressions,
)
from sendonce.adapters.stores.memory.privacy import MemoryPeople
from sendonce.adapters.stores.memory.sender_holds import MemorySenderHolds
from sendonce.adapters.stores.memory.senders import MemorySenders
from sendonce.adapters.stores.memory.sign_ups import MemorySignUps
from sendonce.adapters.stores.memory.state import State
from sendonce.adapters.stores.memory.workers import MemoryCanaries, MemoryPermits, MemoryWorkers
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_LIMIT
from sendonce.ports.engine import (
    Canaries,
    Dispatches,
    EventRoute,
    Events,
    Jobs,
    Ledger,
    Letters,
    MailboxLog,
    Outbox,
    Permits,
    SenderHolds,
    Senders,
    Workers,
)
from sendonce.ports.mailouts import Assets, Mailouts
from sendonce.ports.people import Keys, People, SignUps, Subscribers, Suppressions

__all__ = ["MemoryStore"]


class MemoryStore:
    """All the parts over one state. ``now`` is the store's clock."""

    ledger: Ledger
    jobs: Jobs
    dispatches: Dispatches
    letters: Letters
    canaries: Canaries
    event_route: EventRoute
    mailouts: Mailouts
    assets: Assets
    outbox: Outbox
    mailbox_log: MailboxLog
    subscribers: Subscribers
    sign_ups: SignUps
    suppressions: Suppressions
    people: People
    keys: Keys
    events: Events
    workers: Workers
    permits: Permits
    senders: Senders
    sender_holds: SenderHolds

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        soft_bounce_limit: int = SOFT_BOUNCE_LIMIT,
    ) -> None:
        self.state = State(now)
        self.ledger = MemoryLedger(self.state)
        self.jobs = MemoryJobs(self.state)
        self.dispatches = MemoryDispatches(self.state)
        self.letters = MemoryLetters(self.state)
        self.canaries = MemoryCanaries(self.state)
        self.event_route = MemoryEventRoute(self.state)
        self.mailouts = MemoryMailouts(self.state)
        self.assets = MemoryAssets()
        self.outbox = MemoryOutbox(self.state)
        self.mailbox_log = MemoryMailboxLog(self.state)
        self.subscribers = MemorySubscribers(self.state)
        self.sign_ups = MemorySignUps(self.state)
        self.suppressions = MemorySuppressions(self.state)
        self.people = MemoryPeople(self.state)
        self.keys = MemoryKeys(self.state)
        self.events = MemoryEvents(self.state, soft_bounce_limit)
        self.workers = MemoryWorkers(self.state)
        self.permits = MemoryPermits(self.state)
        self.senders = MemorySenders(self.state)
        self.sender_holds = MemorySenderHolds(self.state)

    def close(self) -> None:
        """Nothing to let go of."""

    def fingerprint(self) -> str | None:
        return self.state.place
