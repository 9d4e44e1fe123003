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

from sendonce.ports.engine.dispatches import Dispatches, Hours, Letters, Timetable
from sendonce.ports.engine.events import Canaries, EventIntake, EventRoute, Events
from sendonce.ports.engine.jobs import Jobs, Queue
from sendonce.ports.engine.ledger import BegunTurn, JobRef, Ledger, QuickTurns
from sendonce.ports.engine.mailboxes import MailboxLog
from sendonce.ports.engine.outside import Archive, Meter, Outbox, ReadableMeter
from sendonce.ports.engine.senders import SenderHolds, Senders
from sendonce.ports.engine.store import EngineStore, SendingStore
from sendonce.ports.engine.transports import Feed, Transport
from sendonce.ports.engine.watch import Alarms, GaugeLog, WatchStore
from sendonce.ports.engine.workers import Journal, Leases, Permits, Roster, Workers

__all__ = [
    "Alarms",
    "Archive",
    "BegunTurn",
    "Canaries",
    "Dispatches",
    "EngineStore",
    "EventIntake",
    "EventRoute",
    "Events",
    "Feed",
    "GaugeLog",
    "Hours",
    "JobRef",
    "Jobs",
    "Journal",
    "Leases",
    "Ledger",
    "Letters",
    "MailboxLog",
    "Meter",
    "Outbox",
    "Permits",
    "Queue",
    "QuickTurns",
    "ReadableMeter",
    "Roster",
    "SenderHolds",
    "Senders",
    "SendingStore",
    "Timetable",
    "Transport",
    "WatchStore",
    "Workers",
]
