"""How a worker shows that it lives, and what proves that it is dead. Silence proves nothing.

Two things can prove it, and which of them there are depends on the place and on the transport:

    a lock on this machine    ``Mortality.open_if_dead``: the process holds it while it lives. Its journal
                              tells which letters never left. For every transport; needs a disk that stays.
    a signature that expires  ``Expiry``: the provider refuses what was signed too long ago, by its own clock.
                              For SES, and for workers anywhere, seen or not; needs no disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.workers import ClaimCount, WorkerRecord
from sendonce.ports.engine import Journal


class Wired(Enum):
    """What a dead worker's journal says of an attempt for which it has no reply."""

    NEVER = "never"  # not a byte of the body left
    MAYBE = "maybe"  # it was on the wire, or the journal cannot be read


class WireLog(Protocol):
    """The journal of a worker that is proven dead."""

    @property
    def proof(self) -> str: ...

    @property
    def claims(self) -> int:
        """How many claims its worker had made when it last wrote their count, just after their commit."""

    def verdict(self, job_id: str, attempt: int) -> Outcome | Wired: ...


class Graveyard(Protocol):
    """Who is dead, as far as this process can prove it."""

    lock_domain: str

    def open_if_dead(self, worker: WorkerRecord) -> AbstractContextManager[WireLog | None]:
        """The dead worker's journal, held while it is buried; None where there is no proof of death."""

    def sees_alive(self, worker: WorkerRecord) -> bool:
        """Whether this process can prove that the worker lives."""


class ClaimWitness(Protocol):
    """What is known about claims outside the database. A place without a disk knows nothing."""

    def highest_claim(self) -> int: ...

    def claim_counts(self) -> Sequence[ClaimCount]: ...


class Life(Journal, Protocol):
    """A living worker's own journal, and the sign by which others see that it lives.

    ``lock_file`` and ``inode`` are how they find it; empty and 0 where there is nothing to be seen.
    """

    inode: int
    highest_claim: int
    count: ClaimCount

    @property
    def lock_file(self) -> str: ...

    def close(self, *, settled: bool) -> None:
        """The worker leaves. Unless all is ``settled``, its journal stays for those who bury it."""


class Mortality(Graveyard, ClaimWitness, Protocol):
    """Where workers live and die: the state directory of this machine, or a place without a disk."""

    def enlist(self, name: str, worker_id: str, slots: int, adoption: int) -> Life:
        """A new life, with room in its journal for so many letters on the wire.

        Raises RefusedByRule where a worker of that name lives, and Unavailable where none can.
        """

    def sweep(self, name: str, known: set[str]) -> None:
        """Remove what a worker of this name left, if no open worker of the ledger stands behind it."""

    def keep_claim(self, claim_seq: int, count: ClaimCount | None) -> None:
        """Remember the number, and the count of a worker, when it leaves."""

    def boot_id(self) -> str: ...

    def require_writable(self) -> None:
        """Raises Unavailable where no worker could live."""


class Expiry(Protocol):
    """Letters that a provider refuses for their age: whoever holds one cannot send it any more."""

    @property
    def transport(self) -> str: ...

    @property
    def window(self) -> timedelta:
        """How long after its claim a letter is sure to be refused."""

    async def passed(self) -> datetime:
        """Nothing claimed before this moment can be taken any more, by the provider's own clock.

        Raises Unavailable.
        """
