"""A campaign on a database, by a clock that the test sets, with letters that a test settles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from sendonce.adapters.stores.schema import campaign_letters
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.campaigns import Campaign, NewCampaign, NewStep
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.leads import NewLead
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import PER_MINUTE
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Settlement
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.outcomes import Accepted, Outcome
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.senders import SenderKeys
from sendonce.domain.people.directions import Basis, NewDirection, tenant_named
from sendonce.flows.campaigns.create_campaign import create_campaign
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.campaigns.run_campaigns import run_campaigns
from sendonce.flows.campaigns.start_campaign import start_campaign
from sendonce.flows.people.add_client import add_tenant, put_direction
from tests.conformance.stage import worker_record

W = campaign_letters.c
# Later than any day on which the tests run: the clock of campaigns may be ahead of the real one, not behind.
MONDAY = datetime(2099, 11, 16, 9, tzinfo=UTC)
ALWAYS = Window(days=frozenset(range(7)), closes=datetime(2026, 1, 1, 23, 59).time())
OFFICE = Window()


@dataclass(frozen=True)
class SetClock(CampaignClock):
    """Shows what the test set at that moment. Whatever its slot, a letter is due for the engine at once."""

    store: SqlStore = field(kw_only=True)
    shown: list[tuple[datetime, datetime]] = field(kw_only=True)

    def at(self, real: datetime) -> datetime:
        return next((shown for since, shown in reversed(self.shown) if since <= real), self.shown[0][1])

    def real(self, shown: datetime) -> datetime:
        return self.store.ledger.now()

    def passed(self, real: timedelta) -> timedelta:
        return real * 900


@dataclass(frozen=True)
class Left:
    """A letter that left, by the clock of the campaign: when it was to leave, and when it did."""

    at: datetime
    really_at: datetime
    sender: str
    job: ClaimedJob


class CampaignStage:
    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self._shown = [(store.ledger.now(), MONDAY)]
        self.alerts: list[str] = []
        self.desk = CampaignDesk(
            store,
            SetClock(MONDAY, 1, store=store, shown=self._shown),
            ZoneInfo("UTC"),
            lambda identity: SenderKeys(f"smtp/{identity.address}"),
            lambda identity, job, _told: f"<{job}@{identity.address.rpartition('@')[2]}>",
            PER_MINUTE,
            lambda _about, what: self.alerts.append(what),
        )
        self.senders: dict[str, SenderIdentity] = {}
        self._workers: dict[str, tuple[str, int]] = {}

    @property
    def now(self) -> datetime:
        return self._shown[-1][1]

    def set(self, moment: datetime) -> None:
        self._shown.append((self.store.ledger.now(), moment))

    def share_an_account(self, daily: int) -> None:
        """All senders do, of all tenants."""
        one = "smtp/one"
        self.desk = replace(self.desk, account_of=lambda _identity: one, account_limits={one: daily})

    def client(self, tenant: str = "acme", direction: str = "pumps") -> None:
        add_tenant(self.store, tenant, tenant, "test")
        new = NewDirection(direction, "RU", Basis.CONSENT, "a form")
        put_direction(self.store, tenant_named(tenant), new, "test")

    def sender(
        self, address: str, daily: int = 50, tenant: str = "acme", direction: str = "pumps", **limits: object
    ) -> SenderIdentity:
        made = NewSender(address, "smtp", "127.0.0.1")
        identity = self.store.senders.add(tenant_named(tenant), made, "test")
        whose = (identity.id, identity.tenant_id, direction)
        own = SenderLimits(*whose, daily, paced_at=self.now, **limits)  # type: ignore[arg-type]
        self.store.pools.put(identity.tenant_id, own)
        self.senders[identity.id] = identity
        return identity

    def leads(
        self,
        count: int,
        tenant: str = "acme",
        direction: str = "pumps",
        company: str = "",
        receiver: str = "other",
        timezone: str | None = None,
    ) -> None:
        leads = [
            NewLead(
                parse_address(f"p{n}@{company or f'{receiver}{n}.example'}"),
                f"Person {n}",
                None,
                timezone,
                receiver,
            )
            for n in range(count)
        ]
        self.store.leads.put(tenant_named(tenant), direction, leads, "test")

    def campaign(
        self,
        *waits: timedelta,
        tenant: str = "acme",
        direction: str = "pumps",
        window: Window = ALWAYS,
        brakes: Limits | None = None,
    ) -> Campaign:
        """Started. Each wait is a follow-up."""
        steps = [
            NewStep(Letter(f"Step {n}", "", "<p>Hi</p>", "Hi"), wait)
            for n, wait in enumerate((timedelta(), *waits))
        ]
        name = f"{tenant} {uuid4().hex[:6]}"
        new = NewCampaign(name, direction, window, brakes or Limits(), tuple(steps))
        campaign = create_campaign(self.store, tenant_named(tenant), new, "test")
        start_campaign(self.desk, campaign, "test")
        return self.get(campaign)

    def get(self, campaign: Campaign) -> Campaign:
        found = self.store.campaigns.find(campaign.id)
        assert found is not None
        return found

    def round(self, holder: str = "test") -> int:
        return run_campaigns(self.desk, holder)

    def work(self, outcome: Callable[[ClaimedJob], Outcome] | None = None) -> list[Left]:
        """All letters that are due leave, and end so."""
        left: list[Left] = []
        for identity in self.senders.values():
            jobs = self.claim(identity)
            settle = outcome or (lambda _job: Accepted("provider-1"))
            ends = [Settlement(job.id, job.attempt, settle(job)) for job in jobs]
            self.store.ledger.turn(ends, None)
            left += [Left(self._slot(job), self.now, identity.address, job) for job in jobs]
        return left

    def _slot(self, job: ClaimedJob) -> datetime:
        """When it was to leave: here it leaves as soon as it is planned."""
        query = sa.select(W.slot_at).where(W.dispatch_id == job.dispatch_id)
        with self.store.database.reading() as tx:
            return tx.execute(query.where(W.address_key == parse_address(job.recipient).key)).scalar_one()

    def claim(self, identity: SenderIdentity) -> Sequence[ClaimedJob]:
        if identity.id not in self._workers:
            worker_id = str(uuid4())
            self.store.workers.register(worker_record(worker_id, "smtp"))
            self._workers[identity.id] = worker_id, 0
        worker_id, claims = self._workers[identity.id]
        key = self.desk.keys_of(identity).home
        request = ClaimRequest(worker_id, str(uuid4()), 1000, claims, sender=key, sender_id=identity.id)
        turn = self.store.ledger.turn((), request)
        self._workers[identity.id] = worker_id, turn.claims
        return turn.claimed

    def run(
        self,
        lasting: timedelta,
        every: timedelta = timedelta(hours=1),
        outcome: Callable[[ClaimedJob], Outcome] | None = None,
    ) -> list[Left]:
        """Rounds and work in turn, as time goes by."""
        until, left = self.now + lasting, []
        while self.now < until:
            self.round()
            left += self.work(outcome)
            self.set(self.now + every)
        return left
