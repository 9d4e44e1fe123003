"""Who sends, and who may not for a while."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity, WaitingSender
from sendonce.domain.engine.senders import HoldOrder, SenderHold
from sendonce.domain.engine.tenants import TenantId


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
    """Senders that their provider refuses. ``Ledger.turn`` claims nothing for a held sender.

    A move to the second region (``elsewhere``) and the way back are written to the audit log.
    """

    def hold(self, key: str, order: HoldOrder) -> SenderHold:
        """Hold a sender; what is in force then. A sender that is held already stays as it is, except after
        a probe: then the hold is renewed, and counts one more try."""

    def hold_by_hand(
        self, key: str, reason: str, until: datetime | None, actor: str, *, elsewhere: bool = False
    ) -> SenderHold:
        """A person's word, written to the audit log: hold it until then, or until it is released. It takes
        the place of any other hold, and no probe changes it."""

    def end(self, hold: SenderHold) -> bool:
        """A probe of this hold was accepted. False when the hold is over already, or is another one."""

    def release(self, key: str, actor: str) -> bool:
        """A person's word, written to the audit log."""

    def get(self, key: str) -> SenderHold | None: ...

    def all(self) -> Sequence[SenderHold]: ...
