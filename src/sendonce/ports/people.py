"""What is kept of people: who subscribed, who must not be written to, and the keys that outlive both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.audit import AuditEntry
from sendonce.domain.people.directions import Direction, NewDirection, Tenant
from sendonce.domain.people.people_columns import PeopleColumns
from sendonce.domain.people.privacy import Erasure, PersonFile
from sendonce.domain.people.provider_lists import ListedAddress, SyncCursor
from sendonce.domain.people.sign_ups import Confirmation, SignUp, SignUpWish
from sendonce.domain.people.subscribers import (
    Addition,
    ImportCounts,
    NewSubscriber,
    Subscriber,
    SubscriberStatus,
)
from sendonce.domain.people.suppressions import NewSuppression, Suppression, SuppressionReason
from sendonce.ports.engine import EngineStore, Leases


class Subscribers(Protocol):
    import_lanes: int
    """How many chunks of an import the store can write at the same time."""

    def upsert(self, tenant_id: TenantId, people: Sequence[NewSubscriber]) -> ImportCounts: ...

    def import_people(
        self, tenant_id: TenantId, people: PeopleColumns, *, source: str | None = None, dry_run: bool = False
    ) -> ImportCounts:
        """The same for many people, no key twice, and for who must not be written to.

        A denial suppresses, with ``source`` as its note, and takes a known subscriber down to what the list
        says; nobody is taken up. A dry run counts what it would do and changes nothing.
        """

    def add(self, tenant_id: TenantId, person: NewSubscriber, actor: str) -> Addition:
        """Add one person, or note a name and a consent; in the audit log. What is refused changes nothing."""

    def all(
        self,
        tenant_id: TenantId,
        *,
        status: SubscriberStatus | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Sequence[Subscriber]: ...

    def find(self, tenant_id: TenantId, address: Address) -> Subscriber | None: ...

    def count(self, tenant_id: TenantId) -> dict[str, int]: ...

    def attribute_names(self, tenant_id: TenantId) -> Sequence[str]:
        """The names of all attributes that any subscriber has."""

    def count_lacking(self, tenant_id: TenantId, variable: str) -> int:
        """Active subscribers who have no value for a letter's variable."""


class SignUps(Protocol):
    """Wishes to be written to, which a link in a letter confirms."""

    def ask(self, tenant_id: TenantId, wish: SignUpWish) -> SignUp | None:
        """Note a wish; a person who is not known yet is pending. None where no letter is to go out."""

    def confirm(self, sign_up_id: str) -> Confirmation | None:
        """Make the person a subscriber, in the audit log; a repeat changes nothing. None: unknown."""


class SeenKeys(Protocol):
    """What an import has come across in its file."""

    def new_among(self, keys: Sequence[str]) -> list[bool]:
        """For each key whether it was never asked for before."""


class Suppressions(Protocol):
    def add(
        self, scope: TenantId, address: Address, reason: SuppressionReason, note: str | None = None
    ) -> bool: ...

    def add_all(self, given: Sequence[NewSuppression]) -> int:
        """``add`` for many in one transaction; how many were not suppressed before."""

    def remove(self, scope: TenantId, address: Address, actor: str) -> bool: ...

    def covers(self, tenant_id: TenantId, address: Address) -> Suppression | None: ...

    def all(self, *, after: tuple[str, str] = ("", ""), limit: int = 1000) -> Sequence[Suppression]: ...

    def unsubscribe(self, job_id: str) -> str | None:
        """Suppress the recipient of a job for its tenant; the address, or None for an unknown job."""

    def undoable(self, job_id: str) -> bool:
        """Whether this letter's link unsubscribed its recipient, for no other reason, and not long ago."""

    def resubscribe(self, job_id: str) -> str | None:
        """Undo an unsubscription that is ``undoable``, in the audit log; any other stays."""


class ProviderList(Protocol):
    """A provider's own list of addresses that it does not write to. Every verb raises Unavailable."""

    name: str

    def pages(self, since: datetime | None) -> Iterator[Sequence[ListedAddress]]:
        """What was put there since then, or all of it."""

    def add(self, listed: ListedAddress) -> None: ...

    def forget(self, address: str) -> None:
        """Also one that is not on it."""


class SuppressionSyncs(Protocol):
    """How far our suppressions and each provider's list know each other."""

    def cursor(self, provider: str) -> SyncCursor: ...

    def move(self, provider: str, cursor: SyncCursor) -> None: ...

    def unknown(self, addresses: Sequence[Address]) -> set[str]:
        """The keys of those that bounced or complained to no tenant, as far as we know."""

    def told_next(self, cursor: SyncCursor, before: datetime, limit: int) -> Sequence[Suppression]:
        """Bounces and complaints from behind the cursor on, the oldest first; nobody who is erased."""


class People(Protocol):
    """One person, over all tenants and all spellings of the address that share a mailbox."""

    def file_of(self, address: Address) -> PersonFile: ...

    def erase(self, address: Address, actor: str) -> Erasure:
        """Replace the person by keyed hashes everywhere, suppress them for everybody; again: no change."""

    def shelve(self) -> bool:
        """Make some more letters quick to find by person; False when there is nothing to do now."""


class Keys(Protocol):
    """The keys that outlive what they were used for: of hashed addresses, and of unsubscribe links."""

    def rotate(self, actor: str) -> int:
        """Put every hashed address under one more link of the pepper; how many suppressions there are.

        Where secrets of unsubscribe links are kept here, a new one comes before them.
        """

    def link_secrets(self) -> Sequence[bytes]:
        """The secrets of unsubscribe links that are kept here, the newest first; at first none."""

    def make_link_secret(self) -> bytes:
        """The newest of them, made now if there is none: of many callers at once all get the same."""

    def note_used(self, fingerprint: str) -> None:
        """Remember that unsubscribe links were signed with the secret of this fingerprint."""

    def used(self) -> Sequence[str]:
        """The fingerprints of all secrets that links in letters were signed with, forgotten ones apart."""

    def forget(self, fingerprint: str, actor: str) -> bool:
        """A secret that is lost for good is not asked after any more; False for one that is not known."""


class SyncStore(EngineStore, Protocol):
    """A database whose suppressions are kept in step with lists of providers."""

    suppressions: Suppressions
    suppression_syncs: SuppressionSyncs
    leases: Leases


class PeopleStore(EngineStore, Protocol):
    """An open database, with its people."""

    subscribers: Subscribers
    sign_ups: SignUps
    suppressions: Suppressions
    people: People
    keys: Keys


class Tenants(Protocol):
    """Clients, each with data of its own."""

    def add(self, tenant_id: TenantId, name: str, actor: str) -> bool:
        """False for one that is there already."""

    def set_terms(self, tenant_id: TenantId, weight: int, daily: int | None, actor: str) -> None:
        """Its share beside other tenants and its letters a day; in the audit log, too."""

    def get(self, tenant_id: TenantId) -> Tenant | None: ...

    def all(self) -> Sequence[Tenant]: ...


class Directions(Protocol):
    def put(self, tenant_id: TenantId, new: NewDirection, actor: str) -> Direction:
        """Add a direction, or say anew what is known of it; in the audit log, too."""

    def get(self, tenant_id: TenantId, direction_id: str) -> Direction | None: ...

    def all(self, tenant_id: TenantId | None = None) -> Sequence[Direction]:
        """Those of every tenant for None: for whoever is at the machine itself."""


class AuditLog(Protocol):
    """Who did what. Whoever does it writes the entry, in the same transaction."""

    def entries(self) -> Iterable[AuditEntry]:
        """All of them in the order of the chain, those older than it first."""

    def all(self, limit: int = 100) -> Sequence[AuditEntry]:
        """The newest first."""


class TenantStore(PeopleStore, Protocol):
    """A database of many clients, as doors to strangers need it."""

    audit_log: AuditLog

    tenants: Tenants
    directions: Directions
