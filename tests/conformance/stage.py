"""A mailout on a store, and the few words that the conformance tests are told in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind, EventVerdict
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Job, JobState, Settlement, Turn
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber, Subscriber
from sendonce.ports.store import Store

LETTER = Letter("Hello", "soon", "<p>Hello</p>", "Hello")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

ACCEPTED = Accepted("provider-1")
REFUSED = Refused("550", "no such user")
DEFERRED = Deferred("421", "not now")
THROTTLED = Deferred("429", "too fast", throttle=True)
DOUBTED = InDoubt("the reply was lost")

_numbers = count(1)


NOBODY = "01900000-0000-7000-8000-000000000000"
"""An id that is well made and names nothing."""


def address(number: int) -> Address:
    return parse_address(f"user{number:04}@example.com")


def people(numbers: Sequence[int]) -> list[NewSubscriber]:
    return [NewSubscriber(address(n), name=f"User {n}") for n in numbers]


def worker_record(worker_id: str, transport: str = "ses", route: str = "") -> WorkerRecord:
    way = route or f"{transport}/eu-central-1/events"
    return WorkerRecord(worker_id, "w", transport, "domain", "file", 1, "boot", "host", 1, route=way)


class Stage:
    """Every move through it also checks that the books of every mailout balance."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._claims: dict[str, int] = {}

    # -- mailouts -------------------------------------------------------------------------------

    def subscribe(self, numbers: Sequence[int]) -> None:
        self.store.subscribers.upsert(DEFAULT_TENANT, people(numbers))

    def mailout(self) -> str:
        return self.new_mailout().id

    def new_mailout(self, **kwargs: Any) -> Mailout:
        new = NewMailout(**{"name": "news", "source": "file", "letter": LETTER, **kwargs})
        return self.store.mailouts.create(DEFAULT_TENANT, new)

    def started(self, recipients: int = 1) -> str:
        """A mailout that is being planned."""
        self.subscribe(range(recipients))
        mailout_id = self.mailout()
        assert self.store.mailouts.start(mailout_id)
        return mailout_id

    def running(self, recipients: int = 1) -> str:
        """A mailout whose jobs are all planned."""
        mailout_id = self.started(recipients)
        self.plan(mailout_id)
        return mailout_id

    def plan(self, mailout_id: str, size: int = 1000) -> None:
        while not self.plan_once(mailout_id, size):
            pass

    def plan_once(self, mailout_id: str, size: int, planner: str = "planner") -> bool:
        progress = self.store.mailouts.plan_chunk(mailout_id, planner, size)
        self.check_books()
        return progress is None or progress.finished

    def get(self, mailout_id: str) -> Mailout:
        mailout = self.store.mailouts.get(DEFAULT_TENANT, mailout_id)
        assert mailout is not None
        return mailout

    # -- jobs -----------------------------------------------------------------------------------

    def worker(self, transport: str = "ses", route: str = "") -> str:
        worker_id = str(uuid4())
        self.store.workers.register(worker_record(worker_id, transport, route))
        return worker_id

    def claim(self, worker_id: str | None = None, limit: int = 50, **kwargs: Any) -> Turn:
        """A claim as a worker makes it; a ``retry`` names the count of the claim that it repeats."""
        token = kwargs.pop("token", None) or str(uuid4())
        worker_id = worker_id or self.worker()
        known = self._claims.get(worker_id, 0)
        claims = known - 1 if kwargs.get("retry") and known else known
        request = ClaimRequest(worker_id, token, limit, **{"claims": claims, **kwargs})
        turn = self.store.ledger.turn((), request)
        self._claims[worker_id] = turn.claims
        self.check_books()
        return turn

    def claim_one(self, worker_id: str | None = None) -> ClaimedJob:
        (job,) = self.claim(worker_id, limit=1).claimed
        return job

    def settle(self, job: ClaimedJob | Job, outcome: Outcome, **kwargs: Any) -> int:
        settlement = Settlement(job.id, job.attempt, outcome, **kwargs)
        settled = self.store.ledger.turn([settlement], None).settled
        self.check_books()
        return settled

    def job(self, job: ClaimedJob | Job) -> Job:
        found = self.store.jobs.get(job.id)
        assert found is not None
        return found

    def state(self, job: ClaimedJob | Job) -> JobState:
        return self.job(job).state

    def in_doubt(self, *, dead: bool = True) -> Job:
        """The one job of a running mailout, in doubt; with a death proof if ``dead``."""
        job = self.claim_one()
        self.settle(job, DOUBTED, death_proof="the worker itself says so" if dead else None)
        return self.job(job)

    def second_attempt(self) -> ClaimedJob:
        """A job whose first attempt was deferred and whose second is on the wire."""
        self.settle(self.claim_one(), DEFERRED)
        return self.claim_one()

    # -- events and people ----------------------------------------------------------------------

    def event(self, job: ClaimedJob | Job, kind: EventKind = EventKind.SENT, **kwargs: Any) -> EventVerdict:
        return self.record(event_of(job, kind, **kwargs))

    def record(self, event: DeliveryEvent) -> EventVerdict:
        verdict = self.store.events.record(event)
        self.check_books()
        return verdict

    def subscriber(self, number: int = 0) -> Subscriber:
        found = self.store.subscribers.find(DEFAULT_TENANT, address(number))
        assert found is not None
        return found

    def check_books(self) -> None:
        for mailout in self.store.mailouts.of_all_tenants():
            books = self.store.jobs.books(mailout.id)
            assert books.balanced, books


def event_of(
    job: ClaimedJob | Job | None,
    kind: EventKind = EventKind.SENT,
    *,
    attempt: int | None = None,
    **kwargs: Any,
) -> DeliveryEvent:
    """An event about an attempt of a job, the current one unless told otherwise."""
    number = next(_numbers)
    told = attempt if attempt is not None else (job.attempt if job else None)
    values: dict[str, Any] = {
        "event_id": f"sns-{number}",
        "natural_key": f"fact-{number}",
        "occurred_at": LONG_AGO,
        "message_id": f"provider-{told}",
        "job_id": job.id if job else None,
        "recipients": (job.recipient,) if job else (),
        "destinations": (job.recipient,) if job else (),
        "bounce_type": BounceType.PERMANENT if kind == EventKind.BOUNCE else None,
        "raw": {"number": number},
    }
    return DeliveryEvent(kind=kind, attempt=told, **{**values, **kwargs})
