"""Serve every sender that has letters: an outlet is opened when some are due, and closed when it is idle.

The environment's own sender has an outlet that is always open. These are the others. Each has its own
trouble: one whose secret is missing, whose provider refuses it or whose code fails is held, and the others
send on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import NOT_SET_UP, HoldOrder, SenderHold, hold_seconds
from sendonce.errors import BadInput, LedgerRolledBack, RefusedByRule, Unavailable, WorkerBuried
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.outlet import Outlet
from sendonce.ports.engine import SendingStore

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5
IDLE_FOR = 10.0
"""Seconds after which an idle outlet is closed, and its connections with it."""


@dataclass(slots=True)
class _Served:
    identity: SenderIdentity
    outlet: Outlet
    task: asyncio.Task[None]
    busy_at: float


class Outlets:
    """``make`` gives the outlet of a sender, and raises BadInput where there can be none; ``key_of`` tells
    what its provider knows it by."""

    def __init__(
        self,
        store: SendingStore,
        make: Callable[[SenderIdentity], Outlet],
        key_of: Callable[[SenderIdentity], str],
    ) -> None:
        self._store = store
        self._make = make
        self._key_of = key_of
        self._served: dict[str, _Served] = {}
        self._settled_before = 0
        self._stopped = False

    async def look(self) -> None:
        """One round. Raises LedgerRolledBack or WorkerBuried, which end the whole process."""
        await self._reap()
        known, due = await to_daemon_thread(self._wanted, timedelta(0))
        now = time.monotonic()
        for sender_id, served in self._served.items():
            if not served.outlet.idle:
                served.busy_at = now
            unchanged = served.identity == known.get(sender_id)
            if not unchanged or now - served.busy_at > IDLE_FOR:
                served.outlet.stop()
        for sender_id in due.keys() - self._served.keys():
            await self._open(due[sender_id])

    def _wanted(self, within: timedelta) -> tuple[dict[str, SenderIdentity], dict[str, SenderIdentity]]:
        """All senders, and those that have letters due by then and may try to send them."""
        known = {identity.id: identity for identity in self._store.senders.all()}
        waiting = self._store.senders.waiting()
        if not waiting:
            return known, {}
        by_then = self._store.ledger.now() + within
        due = {
            each.sender_id: known[each.sender_id]
            for each in waiting
            if each.sender_id in known and each.due_from <= by_then
        }
        holds = {hold.key: hold for hold in self._store.sender_holds.all()}
        return known, {
            sender_id: identity
            for sender_id, identity in due.items()
            if _may_try(holds.get(self._key_of(identity)), by_then)
        }

    async def _open(self, identity: SenderIdentity) -> None:
        try:
            outlet = await to_daemon_thread(self._make, identity)  # it reads files and the store
        except BadInput as exc:
            await to_daemon_thread(self._hold, identity, NOT_SET_UP, str(exc))
            return
        if self._stopped:
            return
        task = asyncio.create_task(_serve(outlet))
        self._served[identity.id] = _Served(identity, outlet, task, time.monotonic())

    async def _reap(self) -> None:
        for sender_id, served in list(self._served.items()):
            if not served.task.done():
                continue
            self._served.pop(sender_id, None)
            self._settled_before += served.outlet.settled
            error = None if served.task.cancelled() else served.task.exception()
            if isinstance(error, LedgerRolledBack | WorkerBuried):
                raise error
            if isinstance(error, Unavailable | RefusedByRule):
                log.warning("a sender could not be served", extra={"fields": _told(served.identity, error)})
            elif error is not None:
                log.error("a sender failed", extra={"fields": _told(served.identity, error)})
                reason = f"Its part of the worker failed: {type(error).__name__}."
                await to_daemon_thread(self._hold, served.identity, "failed", reason)

    def _hold(self, identity: SenderIdentity, code: str, reason: str) -> None:
        key = self._key_of(identity)
        before = self._store.sender_holds.get(key)
        seconds = hold_seconds(before.tries + 1 if before else 1, None)
        hold = self._store.sender_holds.hold(key, HoldOrder(code, reason, seconds, probe=before is not None))
        fields = {"sender": identity.id, "code": hold.code, "reason": hold.reason}
        log.error("the sender is held", extra={"fields": {**fields, "next_try": hold.next_try_at}})

    # -- the end -------------------------------------------------------------------------------

    async def close(self) -> None:
        """Claim no more, and wait until what is on the wire is settled."""
        self._stopped = True
        for served in self._served.values():
            served.outlet.stop()
        if self._served:
            await asyncio.wait([served.task for served in self._served.values()])
        await self._reap()

    # -- questions -----------------------------------------------------------------------------

    @property
    def settled(self) -> int:
        return self._settled_before + sum(served.outlet.settled for served in self._served.values())

    @property
    def resting(self) -> bool:
        """No letter is on its way in an outlet that is open."""
        return all(served.outlet.idle for served in self._served.values())

    async def idle(self, within: timedelta) -> bool:
        """Nothing is on its way, and no sender that may send has letters due by then."""
        return self.resting and not (await to_daemon_thread(self._wanted, within))[1]


async def _serve(outlet: Outlet) -> None:
    try:
        await outlet.open()
        await outlet.run()
    finally:
        await outlet.close()


def _may_try(hold: SenderHold | None, when: datetime) -> bool:
    return hold is None or not hold.lets_nobody_try(when)


def _told(identity: SenderIdentity, error: BaseException) -> dict[str, str]:
    return {"sender": identity.id, "error": f"{type(error).__name__}: {error}"}
