"""The maildir transport: letters become files on this machine, and nothing leaves it.

Delivery is the classic one: write into ``tmp/``, fsync, rename into ``new/``, fsync the directory. The
file name is made of the job and the attempt, so that a letter can be looked up, and delivering the
same attempt again would only replace the same file.
"""

from __future__ import annotations

import asyncio
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from sendonce.adapters.files.durable import sync_directory, write_durably
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.parcels import Parcel, Quota
from sendonce.ports.engine import Feed

_REST = 60.0
_LAST_WRITE_WITHIN = 5.0


def file_name(job_id: str, attempt: int) -> str:
    """The name of a letter's file. Maildir allows any name without ``/`` and ``:``."""
    return f"{quote(job_id, safe='')}.{attempt}.sendonce"


class MaildirTransport:
    name = "maildir"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def carry(self, feed: Feed, connections: int) -> None:
        executor = ThreadPoolExecutor(connections, thread_name_prefix="maildir")
        lanes = [asyncio.create_task(self._lane(feed, executor)) for _ in range(connections)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
            executor.shutdown(wait=False)

    async def quota(self) -> Quota | None:
        return None

    async def close(self) -> None:
        """Nothing to do: no file stays open."""

    async def _lane(self, feed: Feed, executor: ThreadPoolExecutor) -> None:
        while (parcel := await feed.take()) is not None:
            if not feed.wire(parcel):
                continue
            writing = asyncio.get_running_loop().run_in_executor(executor, deliver, self._path, parcel)
            try:
                outcome = await asyncio.shield(writing)
            except asyncio.CancelledError:
                # A thread cannot be stopped, and its answer is better than a doubt.
                await asyncio.wait({writing}, timeout=_LAST_WRITE_WITHIN)
                feed.settle(
                    parcel, writing.result() if writing.done() else InDoubt("cancelled while writing")
                )
                raise
            feed.settle(parcel, outcome)


def deliver(maildir: Path, parcel: Parcel) -> Outcome:
    """Put one letter into the maildir, to stay there when the power fails."""
    name = file_name(parcel.job_id, parcel.attempt)
    draft, letter = maildir / "tmp" / name, maildir / "new" / name
    try:
        for folder in ("tmp", "new", "cur"):
            (maildir / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(draft, parcel.content)
        draft.rename(letter)
    except OSError as exc:
        if os.path.lexists(letter):
            return InDoubt(f"the letter is in new/, yet: {exc.strerror}")
        with suppress(OSError):
            draft.unlink()
        return _failure(exc)
    try:
        sync_directory(letter.parent)
    except OSError as exc:
        return InDoubt(f"the letter is in new/, but the directory cannot be synced: {exc.strerror}")
    return Accepted(name)


def _failure(exc: OSError) -> Deferred | Refused:
    """A full disk or a missing right is not the letter's fault; a name that cannot be is."""
    code = errno.errorcode.get(exc.errno or 0, "OSError")
    reason = f"the letter cannot be written: {exc.strerror or exc}"
    if exc.errno == errno.ENAMETOOLONG:
        return Refused(code, reason)
    return Deferred(code, reason, retry_after=_REST, throttle=True)
