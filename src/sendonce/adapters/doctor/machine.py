"""This machine and its database: would the ledger remember, and would a dead worker be noticed?"""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.wire_journal import StateDirectory
from sendonce.domain.engine.checks import Check, listed, ok, stop, warning
from sendonce.domain.engine.fingerprints import UNREADABLE
from sendonce.errors import (
    LedgerRolledBack,
    NotFound,
    RefusedByRule,
    SchemaMismatch,
    SendonceError,
    Unavailable,
)
from sendonce.ports.store import Store

_OPEN_WITHIN = 6.0
# AWS refuses a signature that is five minutes off; the ledger holds claims back at one minute.
_CLOCK_STOPS = 240.0
_CLOCK_WARNS = 60.0
_DISK_STOPS = 100 * 2**20
_DISK_WARNS = 2**30

DATABASE_FIXES: tuple[tuple[type[SendonceError], str], ...] = (
    (SchemaMismatch, "Run 'sendonce db upgrade' with the newest sendonce, or correct DATABASE_URL."),
    (RefusedByRule, "Set fsync = on in postgresql.conf and reload the server."),
    (Unavailable, "Start the database, or correct DATABASE_URL."),
)


class StoreDoor:
    """The store, opened once for all probes, in a thread that may hang."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store
        self._opening: asyncio.Task[Store] | None = None

    async def get(self) -> Store:
        """Raises SendonceError."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(in_own_thread(self._open))
        try:
            return await asyncio.wait_for(asyncio.shield(self._opening), _OPEN_WITHIN)
        except TimeoutError as exc:
            raise Unavailable(f"The database did not answer within {_OPEN_WITHIN:g} seconds.") from exc

    async def get_or_none(self) -> Store | None:
        """For probes that have nothing to look at without a store: the database's own probe tells why."""
        try:
            return await self.get()
        except SendonceError:
            return None

    def close(self) -> None:
        opening = self._opening
        if opening is not None and opening.done() and not opening.cancelled() and not opening.exception():
            opening.result().close()


class DatabaseProbe:
    name = "database"

    def __init__(self, door: StoreDoor, shown_url: str, *, needed: bool = True) -> None:
        self._door = door
        self._shown = shown_url
        self._needed = needed

    async def examine(self) -> Sequence[Check]:
        try:
            await self._door.get()
        except NotFound as exc:
            fix = "Import your subscribers, or run 'sendonce db upgrade'."
            return [(stop if self._needed else warning)(self.name, str(exc), fix)]
        except SendonceError as exc:
            fix = next(
                (fix for kind, fix in DATABASE_FIXES if isinstance(exc, kind)), "Correct DATABASE_URL."
            )
            return [stop(self.name, str(exc), fix)]
        return [
            ok(self.name, f"{self._shown} answers, its schema is this program's, and commits are durable.")
        ]


class ExposureProbe:
    """``look`` names the tables that others could read through the database."""

    name = "exposure"

    def __init__(self, door: StoreDoor, look: Callable[[Store], Sequence[str]]) -> None:
        self._door = door
        self._look = look

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        exposed = await in_own_thread(lambda: self._look(store))
        if exposed:
            what = (
                f"Row level security is off for {', '.join(exposed)}: on Supabase the public key reads them."
            )
            return [stop(self.name, what, "Run 'sendonce db upgrade', which turns it on.")]
        return [ok(self.name, "Nobody but its owner can read the tables through the database.")]


class LedgerProbe:
    """``look`` raises LedgerRolledBack for a database that must not be sent from."""

    name = "ledger"

    def __init__(self, door: StoreDoor, look: Callable[[Store], None]) -> None:
        self._door = door
        self._look = look

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        try:
            await in_own_thread(lambda: self._look(store))
        except LedgerRolledBack as exc:
            fix = "Stop every other copy of the database, then run 'sendonce db adopt'."
            return [stop(self.name, str(exc), fix)]
        except Unavailable as exc:
            return [stop(self.name, str(exc), "Set STATE_DIR to a folder that this user may write.")]
        recorded, seen = await in_own_thread(
            lambda: (store.ledger.identity().fingerprint, store.fingerprint() or "")
        )
        return [self._judge(recorded, seen)]

    def _judge(self, recorded: str | None, seen: str) -> Check:
        """Whether another database in the place of this one would show."""
        if recorded is None:
            what = "The ledger does not know which database it is in, so a restored one could look the same."
            return warning(self.name, what, "Run 'sendonce db upgrade', which records it.")
        if UNREADABLE in seen.split(":"):
            what = (
                f"The database role cannot read all that tells this server from another ({seen}): after a "
                "fail-over or a restore only the counts of claims show what was lost."
            )
            fix = (
                "Let it execute pg_control_system(), pg_current_wal_lsn() and pg_walfile_name(pg_lsn), or "
                "run 'sendonce db adopt' after each fail-over and restore."
            )
            return warning(self.name, what, fix)
        return ok(self.name, "The database knows of all that was sent from it here.")


class WorkersProbe:
    """Workers that have gone missing hold what they had claimed until somebody buries them."""

    name = "workers"

    def __init__(self, door: StoreDoor) -> None:
        self._door = door

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        now, workers = await in_own_thread(lambda: (store.ledger.now(), store.workers.open()))
        missing = [
            f"{worker.name} on {worker.host} ({worker.id})" for worker in workers if worker.is_missing(now)
        ]
        if not missing:
            return []
        what = f"Nobody has heard of {listed(missing)} for a while, and nobody could prove a death."
        fix = "Start it again where it ran. If it is gone for good: sendonce workers bury ID"
        return [warning(self.name, what, fix)]


class ClockProbe:
    """The store's clock against this machine's; ``SesAccountProbe`` holds it against Amazon's."""

    name = "clock"

    def __init__(self, door: StoreDoor) -> None:
        self._door = door

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        theirs = await in_own_thread(store.ledger.now)
        return [clock_check(theirs, datetime.now(UTC), "this machine's")]


def clock_check(ours: datetime, theirs: datetime, whose: str) -> Check:
    """``ours`` is the store's clock: due times, claims and signatures go by it."""
    off = (ours - theirs).total_seconds()
    if abs(off) <= _CLOCK_WARNS:
        return ok("clock", f"The database's clock and {whose} agree.")
    what = f"The database's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} {whose}."
    fix = "Set the clocks by NTP: timedatectl set-ntp true."
    return stop("clock", what, fix) if abs(off) > _CLOCK_STOPS else warning("clock", what, fix)


class StateProbe:
    """A lock file is made as a worker makes it, and goes again."""

    name = "state"

    def __init__(self, door: StoreDoor, open_state: Callable[[Store], StateDirectory], shown: Path) -> None:
        self._door = door
        self._open_state = open_state
        self._shown = shown

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        try:
            await in_own_thread(lambda: self._try_locks(store))
        except (Unavailable, RefusedByRule) as exc:
            fix = "Set STATE_DIR to a folder on a local disk that this user may write."
            return [stop(self.name, str(exc), fix)]
        return [ok(self.name, f"{self._shown} can be written, and its locks hold.")]

    def _try_locks(self, store: Store) -> None:
        state = self._open_state(store)
        name = f"doctor-{uuid.uuid4()}"
        try:
            state.enlist(name, name, slots=2).close(settled=True)
        except RefusedByRule:
            state.sweep(name, set())
            raise


class DiskProbe:
    name = "disk"

    def __init__(
        self, folders: Sequence[Path], free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
    ) -> None:
        self._folders = folders
        self._free = free

    async def examine(self) -> Sequence[Check]:
        found = await in_own_thread(lambda: [(self._room(folder), folder) for folder in self._folders])
        least, where = min(found)
        what = f"{least // 2**20} MB are free on the disk that holds {where.resolve()}."
        fix = "Free some space: the ledger must be written before each letter."
        if least < _DISK_STOPS:
            return [stop(self.name, what, fix)]
        return [warning(self.name, what, fix) if least < _DISK_WARNS else ok(self.name, what)]

    def _room(self, folder: Path) -> int:
        """A folder that is not there yet will be made in its nearest ancestor that is."""
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        return self._free(there)


class MaildirProbe:
    """Where letters become files, the folder must take them."""

    name = "maildir"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def examine(self) -> Sequence[Check]:
        there = next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            return [ok(self.name, f"Letters can be written to {self._folder}.")]
        what = f"Letters cannot be written to {self._folder}: {there} is no folder that this user may write."
        return [stop(self.name, what, "Set MAILDIR_PATH to another folder, or change its permissions.")]
