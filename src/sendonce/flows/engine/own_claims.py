"""What a worker has claimed: its count in the ledger, and the attempts that are in its hands."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from sendonce.domain.engine.jobs import ClaimRequest, Settlement, Turn
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.ports.engine import JobRef


class OwnClaims:
    """``adoption`` is how often the database had been adopted when the worker registered."""

    def __init__(self, worker_id: str, adoption: int, sender_id: str = OWN_SENDER) -> None:
        self.worker_id = worker_id
        self._sender_id = sender_id
        self._adoption = adoption
        self._claims = 0
        self._in_hand: set[JobRef] = set()
        self._settled_since: set[JobRef] = set()
        """Settled after the last claim that counted: a database that lost only these has the right count."""

    def request(self, limit: int, sender: str, not_after: datetime | None) -> ClaimRequest:
        token = uuid.uuid4().hex
        return ClaimRequest(
            self.worker_id,
            token,
            limit,
            self._claims,
            self._adoption,
            sender=sender,
            sender_id=self._sender_id,
            not_after=not_after,
        )

    def note(self, settlements: Sequence[Settlement], claim: ClaimRequest | None, turn: Turn) -> None:
        """A turn was committed."""
        settled = [(settlement.job_id, settlement.attempt) for settlement in settlements]
        self._in_hand.difference_update(settled)
        if claim is not None and turn.claims > claim.claims:
            self._settled_since.clear()
        else:
            self._settled_since.update(settled)
        if claim is not None:
            self._claims = turn.claims
        self._in_hand.update((job.id, job.attempt) for job in turn.claimed)

    def strays(self, sending: Sequence[JobRef]) -> list[JobRef]:
        """Of what is ``sending`` in the ledger under our name, what is not in our hands."""
        return [ref for ref in sending if ref not in self._in_hand]

    def settled_lately(self, refs: Sequence[JobRef]) -> list[JobRef]:
        """Of these, what we have settled: the ledger knew it, and has lost it."""
        return [ref for ref in refs if ref in self._settled_since]
