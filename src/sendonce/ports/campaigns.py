"""What door C needs from outside: its campaigns, their leads, and the pools of senders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.campaigns.campaigns import (
    Advance,
    Campaign,
    CampaignId,
    CampaignStatus,
    ChosenLetter,
    DueLead,
    LeadStanding,
    LetterEnd,
    NewCampaign,
    Stop,
    WaitingLetter,
)
from sendonce.domain.campaigns.leads import FoundContact, Lead, LeadCounts, NewLead
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.campaigns.rotation import Record
from sendonce.domain.campaigns.slots import Taken
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.ports.engine import WatchStore
from sendonce.ports.people import TenantStore

PLANNING = "campaigns"
"""The lease of the process that plans letters."""


class Campaigns(Protocol):
    """Campaigns, and how far each got with its leads. Times are those of the campaigns' clock."""

    def create(self, tenant_id: TenantId, new: NewCampaign, actor: str) -> Campaign:
        """A campaign that is ready, with its letters. Raises RefusedByRule for a name that is taken."""

    def delete(self, campaign_id: CampaignId, actor: str) -> bool:
        """Without a trace but in the audit log. False for one that was started: its letters count."""

    def get(self, tenant_id: TenantId, name: str) -> Campaign | None:
        """By its id or its name."""

    def find(self, name: str) -> Campaign | None:
        """By its id, or by a name that one tenant alone uses: for whoever is at the machine itself."""

    def all(self, tenant_id: TenantId | None = None, limit: int = 100) -> Sequence[Campaign]:
        """The newest first; those of every tenant for None."""

    def open(self) -> Sequence[Campaign]:
        """Those of all tenants that are running or paused, the oldest first."""

    def winding_up(self) -> Sequence[Campaign]:
        """Those of all tenants that are over, with letters that are not."""

    def start(self, campaign_id: CampaignId, now: datetime, actor: str) -> int:
        """ready → running, with all leads of its direction that may be written to; how many.

        Raises RefusedByRule where there are none, where some are in another open campaign, and where the
        campaign is not ready.
        """

    def move(
        self,
        campaign_id: CampaignId,
        to: CampaignStatus,
        reason: str | None,
        actor: str,
        judged_from: datetime | None = None,
    ) -> bool:
        """To another status, in the audit log too; False where that is no arrow from where it is."""

    def due(
        self, campaign_id: CampaignId, now: datetime, senders: Sequence[str], per_company: int, limit: int
    ) -> Sequence[DueLead]:
        """Leads whose next letter is due: follow-ups of these senders, then leads that have had none.

        Of one company at most ``per_company`` leads are written to at a time.
        """

    def dispatch_of(self, campaign_id: CampaignId, step: int, sender_id: str) -> DispatchId | None: ...

    def keep_dispatch(
        self, campaign_id: CampaignId, step: int, sender_id: str, dispatch_id: DispatchId
    ) -> DispatchId:
        """The dispatch of this step and sender: this one, or the one that was kept before."""

    def dispatches(self, campaign_id: CampaignId) -> Sequence[tuple[int, str, DispatchId]]:
        """Step, sender and dispatch of each."""

    def choose(
        self,
        campaign_id: CampaignId,
        letters: Sequence[ChosenLetter],
        limits: Sequence[SenderLimits],
        planner: str,
    ) -> bool:
        """Settle who writes to whom and when, and where senders stand then, before the engine hears of it.

        False, and nothing is settled, where ``planner`` has lost the lease ``PLANNING`` to another process or
        the campaign does not run: what the choice stands on may have changed.
        """

    def chosen(self, campaign_id: CampaignId) -> Sequence[ChosenLetter]:
        """The letters that the engine may not have heard of."""

    def planned(self, campaign_id: CampaignId, letters: Sequence[ChosenLetter]) -> None:
        """The engine knows of these now."""

    def give_up_chosen(self, campaign_id: CampaignId) -> None:
        """What the engine has not heard of never leaves; the campaign is over."""

    def ends(self, campaign_id: CampaignId, limit: int) -> Sequence[LetterEnd]:
        """Planned letters whose jobs are over."""

    def troubled(self, campaign_id: CampaignId, newest: int) -> Sequence[LetterEnd]:
        """Among the newest letters, those that bounced or were complained of and whose lead is still open."""

    def answered(self, campaign_id: CampaignId) -> Sequence[Stop]:
        """Open leads who, or whose colleagues, answered or asked to be left alone."""

    def advance(self, campaign_id: CampaignId, advances: Sequence[Advance]) -> None:
        """Letters are over. A lead that was stopped stays so."""

    def stop_leads(self, campaign_id: CampaignId, stops: Sequence[Stop]) -> None:
        """No more letters to these leads. One that is planned is over when its job is."""

    def waiting(self, campaign_id: CampaignId, lead_ids: Sequence[str]) -> Sequence[WaitingLetter]:
        """The letters to these leads that no worker has begun to send."""

    def stop_leads_of(self, campaign_id: CampaignId, sender_id: str, reason: str) -> int:
        """No more letters to the leads whom this sender has written to; how many there were."""

    def message_ids(
        self, campaign_id: CampaignId, lead_ids: Sequence[str]
    ) -> Mapping[str, Sequence[tuple[str, str | None]]]:
        """Of each lead's letters, the first one first: the job's id, and the provider's name of it."""

    def record(self, campaign_id: CampaignId, newest: int, since: datetime | None = None) -> Record:
        """What became of the newest accepted letters of a campaign, of those with slots after a moment."""

    def record_of_sender(
        self, tenant_id: TenantId, sender_id: str, newest: int, since: datetime | None = None
    ) -> Record: ...

    def record_to_receiver(self, tenant_id: TenantId, receiver: str, newest: int) -> Record: ...

    def taken(
        self,
        tenant_id: TenantId,
        since: datetime,
        *,
        senders: Sequence[str] | None = None,
        receiver: str | None = None,
    ) -> Taken:
        """Letters under way, whatever their slot, and those that left after a moment: of a tenant, of some
        of its senders, to one receiver. What a receiver has put off is not under way there: it may be so for
        days."""

    def last_slot(
        self, tenant_id: TenantId, *, sender: str | None = None, receiver: str | None = None
    ) -> datetime | None:
        """Of the last letter that was planned."""

    def due_soon(self, campaign_id: CampaignId, until: datetime, at_most: int) -> int:
        """How many leads are to get a letter by then, counted no further than ``at_most``."""

    def lead_states(self, campaign_id: CampaignId) -> Mapping[str, int]:
        """How many leads are open, finished and stopped."""

    def open_leads(self, campaign_id: CampaignId) -> Mapping[int, int]:
        """How many open leads have had no letter, one, two and so on; one under way counts."""

    def leads_of(self, campaign_id: CampaignId) -> Iterator[LeadStanding]:
        """Every lead of a campaign, in the order of their ids."""

    def next_due(self, campaign_id: CampaignId) -> datetime | None: ...


class Leads(Protocol):
    def put(
        self, tenant_id: TenantId, direction_id: str, leads: Sequence[NewLead], source: str
    ) -> LeadCounts:
        """Add leads, refresh those that are known; whoever was stopped stays so."""

    def all(
        self, tenant_id: TenantId, direction_id: str | None = None, *, after: str = "", limit: int = 1000
    ) -> Sequence[Lead]: ...

    def find(self, tenant_id: TenantId, direction_id: str, address: Address) -> Lead | None: ...

    def count(self, tenant_id: TenantId, direction_id: str) -> int: ...


class FoundContacts(Protocol):
    """What prospecting found: the rows of another room, asked for through here."""

    def of_direction(
        self, tenant_id: TenantId, direction_id: str, *, after: str = "", limit: int = 1000
    ) -> Sequence[FoundContact]:
        """In the order of their ids: the first address of each company that may be written to. Its searches
        found the company, or searches without a direction; no letter of prospecting is on its way there."""


class Receivers(Protocol):
    """Who receives the mail of domains."""

    def look_up(self, domains: Iterable[str]) -> Mapping[str, Receiver]:
        """In bounded time. What could not be found out is left out."""


class Images(Protocol):
    """Pictures of letters, under the hash of their content."""

    def put(self, sha256: str, content_type: str, content: bytes) -> None: ...


class Pools(Protocol):
    """The senders of directions, and what each may do."""

    def put(self, tenant_id: TenantId, limits: SenderLimits) -> None:
        """Raises NotFound for a sender of another tenant."""

    def of_direction(self, tenant_id: TenantId, direction_id: str) -> Sequence[SenderLimits]: ...

    def get(self, tenant_id: TenantId, sender_id: str) -> SenderLimits | None: ...

    def judge_from(self, tenant_id: TenantId, sender_id: str, moment: datetime) -> None:
        """Letters with earlier slots count for complaints no more, once it is released."""

    def set_pace(self, tenant_id: TenantId, sender_id: str, pace: float, now: datetime) -> None: ...


class CampaignStore(TenantStore, WatchStore, Protocol):
    """An open database with the rows of campaigns."""

    campaigns: Campaigns
    leads: Leads
    found_contacts: FoundContacts
    pools: Pools

    @property
    def assets(self) -> Images: ...
