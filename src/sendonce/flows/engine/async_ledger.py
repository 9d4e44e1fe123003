"""The ledger as the event loop may use it: in a thread, except for a commit that is known to be quick.

A call that waits for a database would stop every connection, the clock and the stop signal. What is done in
the loop all the same, and why, is in decision 17: the statements of ``begin_turn``, which wait for nothing,
and commits that take less time than a thread's way back to a busy loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sendonce.domain.engine.claim_counts import HOW_TO_GO_ON
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred
from sendonce.domain.engine.parcels import Parcel
from sendonce.flows.engine.daemon_threads import DaemonThread, to_daemon_thread
from sendonce.ports.engine import BegunTurn, JobRef, Journal, Ledger, QuickTurns

# Where commits are slower they go to the thread, and now and then one shows in the loop whether they still
# are; the thread cannot tell, for it waits for the interpreter too. Decision 74 tells why two milliseconds.
QUICK_COMMIT = 0.002
SLOW_COMMITS_FOR = 0.25

T = TypeVar("T")


class WentBack(Exception):
    """The database gave out what a database that never went back cannot: the ledger is to be halted."""


class Letters(Protocol):
    """The letters of claimed jobs, made ready for building parcels of them."""

    def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
        """Whether ``load`` needs nothing from the store for these jobs."""

    def load(self, jobs: tuple[ClaimedJob, ...]) -> None: ...

    def build(self, job: ClaimedJob, taken: float) -> Parcel | Deferred:
        """Deferred is what has to wait. Raises BadInput for what cannot stand in a letter."""


class CommitTimes:
    """Whether commits are quick, as the last ones in the loop have shown."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._slow_until = 0.0

    def are_quick(self) -> bool:
        return time.monotonic() >= self._slow_until

    def note(self, began: float, ended: float) -> None:
        # One long commit (SQLite then moves its log into the file) does not make them slow, two or three do.
        self._seconds += 0.2 * (min(ended - began, 3 * QUICK_COMMIT) - self._seconds)
        if self._seconds > QUICK_COMMIT:
            # The next that is tried here decides alone, and the loop stands still for a twentieth at most.
            self._slow_until = ended + max(SLOW_COMMITS_FOR, 20 * (ended - began))
            self._seconds = 0.8 * QUICK_COMMIT


class AsyncLedger:
    """The calls that a sender makes. Each raises Unavailable when the database does not answer."""

    def __init__(self, ledger: Ledger, journal: Journal, letters: Letters) -> None:
        self._ledger = ledger
        self._quick = ledger if isinstance(ledger, QuickTurns) else None
        self._journal = journal
        self._letters = letters
        self._commits = CommitTimes()
        self._highest_claim = 0
        self._thread = DaemonThread("ledger")

    async def turn(self, settlements: list[Settlement], claim: ClaimRequest | None) -> Turn:
        """Settle and claim; the letters of what was claimed are loaded on return.

        It takes a thread where it has to be waited for: for a server, for another writer, for a slow disk,
        for outcomes that are settled one by one. Raises WentBack.
        """
        failpoint("settle-before")
        usual = all(isinstance(settlement.outcome, Accepted) for settlement in settlements)
        begun = self._quick.begin_turn(settlements, claim) if self._quick and usual else None
        if begun is None:
            return await self.in_thread(lambda: self._after(self._ledger.turn(settlements, claim)))
        turn = self._commit_here(begun) if self._commits.are_quick() else await self.in_thread(begun.commit)
        self._note(turn)
        if self._letters.known(turn.claimed):
            self._load(turn)
        else:
            await self.in_thread(lambda: self._load(turn))
        return turn

    def _commit_here(self, begun: BegunTurn) -> Turn:
        began = time.monotonic()
        turn = begun.commit()
        self._commits.note(began, time.monotonic())
        return turn

    def _after(self, turn: Turn) -> Turn:
        self._note(turn)
        self._load(turn)
        return turn

    def _load(self, turn: Turn) -> None:
        if turn.claimed:
            self._letters.load(turn.claimed)

    def _note(self, turn: Turn) -> None:
        """Write the claim's number into the journal before anything of it can leave.

        Claim numbers only rise: one that does not comes from a database restored under our feet.
        """
        failpoint("settle-after")
        if turn.claimed:
            if turn.claim_seq <= self._highest_claim:
                raise WentBack(
                    f"The database gave out claim {turn.claim_seq} after claim {self._highest_claim}: it was "
                    f"restored from an older copy. {HOW_TO_GO_ON}"
                )
            self._highest_claim = turn.claim_seq
        if turn.claimed or turn.claims:  # a claim may count and get nothing, where others were faster
            self._journal.claimed(self._highest_claim, turn.claims)
        if turn.claimed:
            failpoint("claimed")

    async def settle(self, settlement: Settlement) -> None:
        await self.in_thread(lambda: self._ledger.turn([settlement], None))

    async def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        return await self.in_thread(lambda: self._ledger.sending_of(worker_id))

    async def halt(self, reason: str) -> None:
        await self.in_thread(lambda: self._ledger.halt(reason))

    async def reaffirm(self, job_id: str, attempt: int) -> bool:
        """In a thread of its own: whoever asks does not wait long, and nobody waits for the thread."""
        return await to_daemon_thread(self._ledger.reaffirm, job_id, attempt, finish_within=0.0)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Calls in the ledger's thread come one after the other."""
        return await self._thread.run(call)

    def close(self) -> None:
        self._thread.close()
