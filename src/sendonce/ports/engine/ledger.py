"""The message jobs and the only ways to move them, one attempt at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from sendonce.domain.engine.doubts import Doubt, Surroundings
from sendonce.domain.engine.jobs import BEFORE_ALL, ClaimRequest, Settlement, Turn
from sendonce.domain.engine.workers import LedgerIdentity

JobRef = tuple[str, int]
"""A job and one of its attempts."""


class Ledger(Protocol):
    """The message jobs and the only ways to move them."""

    def identity(self) -> LedgerIdentity: ...

    def now(self) -> datetime:
        """The store's clock; due times and claims go by it."""

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        """Settle outcomes, then claim the next group; durable on return, in one commit where the store can.

        Claimed are due jobs of dispatches that are running, neither paused nor cancelled, in the order of
        their due time; a suppressed one becomes skipped instead. For a held sender nothing
        is claimed until its next try is due, and then one job, by one worker: the turn tells the hold.

        Dispatches with due jobs share the claims: a group is filled from the one that was served least, by
        weight (``domain.engine.dispatches``), then from the next; tenants with due jobs share them likewise.
        So a dispatch that wakes up is in the second group at the latest beside one other, however long
        that is. Workers that claim at the same moment may serve the same dispatch.

        Settlements are idempotent. The claim counts in its worker's row (domain/engine/claim_counts) before
        the first job is taken; one that was cut off is found again by its token, as far as it got. Raises
        LedgerRolledBack when the ledger is halted, and when the database is found to have gone back: a
        settlement's claim or the worker's own count is unknown here; then it is halted first, in a
        transaction of its own. Raises WorkerBuried when the worker's row has ended, and StoreLost when it
        is unknown whether the commit happened: then nothing may be sent, and the same turn is asked again
        with ``claim.retry``.
        """

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        """Whether a claimed attempt may still leave: not suppressed, paused, cancelled or fenced since."""

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:
        """The attempts that a worker had claimed and not settled: all of them, for it is buried by this."""

    def oldest_claim(self) -> datetime | None:
        """When the oldest attempt that is still sending was claimed. A listing."""

    def fence(self, transport: str, claimed_before: datetime, proof: str) -> int:
        """sending → in_doubt, with a death proof, for what was claimed (and signed) before a time.

        Goes by a listing: what it misses is there at the next look.
        """

    def doubts(
        self,
        limit: int,
        *,
        after: str = BEFORE_ALL,
        transport: str | None = None,
        dispatch_id: str | None = None,
    ) -> Sequence[Doubt]:
        """Jobs in doubt, in the order of their ids, from behind ``after`` on. A listing.

        With ``transport`` only those that its workers claimed and that have a death proof.
        """

    def surroundings(self, doubt: Doubt) -> Surroundings:
        """What was accepted around a doubt that has a claim and a death proof.

        Reads a bounded number of rows. What was not found in them counts against absence. A listing, which
        must not lag by as much as the quiet time: a letter that was accepted and is not shown yet would not
        be missed.
        """

    def prove_absence(self, refs: Sequence[JobRef], proof: str) -> int:
        """in_doubt → scheduled (or skipped, if cancelled) where the death proof is there too."""

    def resolve(self, job_ids: Sequence[str], *, sent: bool, actor: str, note: str) -> int:
        """An operator's word on jobs in doubt: it fills both proofs and is written to the audit log."""

    def retry(self, job_ids: Sequence[str], actor: str, *, not_sent_elsewhere: bool = False) -> int:
        """Another life for dead and failed jobs, in the audit log too.

        A job that ended before the database was adopted stays as it is, unless the operator knows that it was
        ``not_sent_elsewhere``: see ``domain.engine.jobs.ended_before_adoption``.
        """

    def bury(self, worker_id: str, actor: str) -> int:
        """End a worker by an operator's word: sending → in_doubt for what it had claimed; how many.

        The word is a death proof, no more, and is written to the audit log. Raises RefusedByRule for a worker
        that is over.
        """

    def halt(self, reason: str) -> None:
        """Stop all claims until ``adopt``. The first reason stays."""

    def adopt(self, fingerprint: str | None, claim_seq: int, actor: str) -> int:
        """Take a restored or copied database into use: what may have been sent becomes in doubt.

        Scheduled and sending jobs of started dispatches go to in_doubt, open workers end, and last of all the
        halt is lifted: whoever was cut off before that asks again. Looks at every job that has not ended.
        Failed and dead jobs stay so, but may have been retried elsewhere: see ``retry``.
        """

    def vouch(self, fingerprint: str | None, actor: str) -> None:
        """An operator's word that this other database has lost nothing: the halt is lifted, nothing else.

        It is written to the audit log. Where claims are missing all the same, they halt the ledger again.
        """


class BegunTurn(Protocol):
    """A turn whose effects nobody may act upon yet."""

    def commit(self) -> Turn:
        """Make it durable. Raises StoreLost when it is unknown whether that happened."""


@runtime_checkable
class QuickTurns(Protocol):
    """What a ledger may have beside its verbs, if it lives inside this process.

    Its statements take a millisecond there, while handing each of them to a thread and back costs more, and
    the disk is what is worth waiting for beside the wire.
    """

    def begin_turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> BegunTurn | None:
        """A turn but for its commit, which may run in another thread; None where it would have to wait."""
