"""Serve every sender that has letters: an outlet is opened when some are due, and closed when it is idle.

The environment's own sender has an outlet that is always open. These are the others, and those of every
sender's second region while its letters leave through there. Each has its own trouble: one whose secret is
missing, whose provider refuses it or whose code fails is held, and the others send on.

A letter belongs to the outlet that claimed it, and so to that one's region, whatever becomes of it there.
Only letters that nobody has claimed move to another region.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import (
    NOT_SET_UP,
    OWN_SENDER,
    HoldOrder,
    SenderHold,
    hold_in_force,
    hold_seconds,
    is_away,
)
from sendonce.errors import BadInput, LedgerRolledBack, RefusedByRule, Unavailable, WorkerBuried
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.outlet import Outlet
from sendonce.flows.engine.show_senders import KeysOf
from sendonce.ports.engine import SendingStore

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5
IDLE_FOR = 10.0
"""Seconds after which an idle outlet is closed, and its connections with it."""


class Way(NamedTuple):
    """A sender in its own region or in its second one; None is the environment's own sender."""

    identity: SenderIdentity | None
    second: bool = False

    @property
    def sender_id(self) -> str:
        return self.identity.id if self.identity is not None else OWN_SENDER


class _Wanted(NamedTuple):
    """The ways that letters may go at all, and those of them that some are due on."""

    open: set[Way]
    due: list[Way]


@dataclass(slots=True)
class _Served:
    outlet: Outlet
    task: asyncio.Task[None]
    busy_at: float


class Outlets:
    """``make`` gives the outlet of a way, and raises BadInput where there can be none; ``keys_of`` tells what
    its provider knows a sender by."""

    def __init__(
        self,
        store: SendingStore,
        make: Callable[[Way], Outlet],
        keys_of: KeysOf,
    ) -> None:
        self._store = store
        self._make = make
        self._keys_of = keys_of
        self._served: dict[Way, _Served] = {}
        self._settled_before = 0
        self._stopped = False

    async def look(self) -> None:
        """One round. Raises LedgerRolledBack or WorkerBuried, which end the whole process."""
        await self._reap()
        wanted = await to_daemon_thread(self._wanted, timedelta(0))
        now = time.monotonic()
        for way, served in self._served.items():
            if not served.outlet.idle or served.outlet.rests:
                served.busy_at = now
            if way not in wanted.open or now - served.busy_at > IDLE_FOR:
                served.outlet.stop()
        for way in wanted.due:
            if way not in self._served:
                await self._open(way)

    def _wanted(self, within: timedelta) -> _Wanted:
        known = {identity.id: identity for identity in self._store.senders.all()}
        holds = {hold.key: hold for hold in self._store.sender_holds.all()}
        away = self._away(known.values(), holds)
        ways = {*map(Way, known.values()), *(Way(who, second=True) for who in away)}
        due = self._due(own=None in away)
        if not due:
            return _Wanted(ways, [])
        by_then = self._store.ledger.now() + within
        return _Wanted(
            ways,
            [
                way
                for way in ways
                if way.sender_id in due
                and due[way.sender_id] <= by_then
                and _may_try(holds.get(self._key_of(way)), by_then)
            ],
        )

    def _away(
        self, known: Iterable[SenderIdentity], holds: Mapping[str, SenderHold]
    ) -> set[SenderIdentity | None]:
        """Whose letters leave through the second region now."""
        if not any(hold.elsewhere for hold in holds.values()):
            return set()
        return {who for who in (None, *known) if is_away(self._keys_of(who), holds.get)}

    def _due(self, *, own: bool) -> dict[str, datetime]:
        """Since when the first letter of each sender is due; the environment's own only where asked for."""
        due = {each.sender_id: each.due_from for each in self._store.senders.waiting()}
        first = self._store.jobs.oldest_due(OWN_SENDER) if own else None
        return due if first is None else {**due, OWN_SENDER: first}

    def _key_of(self, way: Way) -> str:
        keys = self._keys_of(way.identity)
        return keys.second if way.second and keys.second is not None else keys.home

    async def _open(self, way: Way) -> None:
        try:
            outlet = await to_daemon_thread(self._make, way)  # it reads files and the store
        except BadInput as exc:
            await to_daemon_thread(self._hold, way, NOT_SET_UP, str(exc))
            return
        if self._stopped:
            return
        task = asyncio.create_task(_serve(outlet))
        self._served[way] = _Served(outlet, task, time.monotonic())

    async def _reap(self) -> None:
        for way, served in list(self._served.items()):
            if not served.task.done():
                continue
            self._served.pop(way, None)
            self._settled_before += served.outlet.settled
            error = None if served.task.cancelled() else served.task.exception()
            if isinstance(error, LedgerRolledBack | WorkerBuried):
                raise error
            if isinstance(error, Unavailable | RefusedByRule):
                log.warning("a sender could not be served", extra={"fields": _told(way, error)})
            elif error is not None:
                log.error("a sender failed", extra={"fields": _told(way, error)})
                reason = f"Its part of the worker failed: {type(error).__name__}."
                await to_daemon_thread(self._hold, way, "failed", reason)

    def _hold(self, way: Way, code: str, reason: str) -> None:
        key = self._key_of(way)
        before = self._store.sender_holds.get(key)
        seconds = hold_seconds(before.tries + 1 if before else 1, None)
        hold = self._store.sender_holds.hold(key, HoldOrder(code, reason, seconds, probe=before is not None))
        fields = {"sender": key, "code": hold.code, "reason": hold.reason}
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
        return self.resting and not (await to_daemon_thread(self._wanted, within)).due

    def own_hold(self) -> SenderHold | None:
        """What keeps the environment's own sender from sending, whichever region it is in."""
        return hold_in_force(self._keys_of(None), self._store.sender_holds.get)


async def _serve(outlet: Outlet) -> None:
    try:
        await outlet.open()
        await outlet.run()
    finally:
        await outlet.close()


def _may_try(hold: SenderHold | None, when: datetime) -> bool:
    return hold is None or not hold.lets_nobody_try(when)


def _told(way: Way, error: BaseException) -> dict[str, str]:
    return {"sender": way.sender_id, "error": f"{type(error).__name__}: {error}"}
