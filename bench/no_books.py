"""The same engine without books: a ledger that hands out jobs from memory and forgets them, no journal.

    python -m bench.no_books PORT COUNT

Timed as the real one: from the first claim to the last settle.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import uvloop

from bench import engine, letters
from sendonce.adapters.metrics import Metrics
from sendonce.adapters.transports.smtp import SmtpSettings, SmtpTransport
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Settlement, Turn
from sendonce.domain.engine.pacing import Unpaced
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.entrypoints.worker import tune_the_interpreter
from sendonce.flows.engine.build import ParcelBuilder
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_books import OpenGate
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.send import SendLoop, SendOptions
from sendonce.ports.engine import JobRef, Journal, Ledger, Letters


class Forgetful:
    """As much of a ledger, a journal and a mailout as the engine asks of them."""

    def __init__(self, count: int) -> None:
        self._left = iter(range(count))
        self._turns = 0
        self.settled = 0
        self.first_claim = 0.0
        self.last_settle = 0.0
        self.done = asyncio.Event()
        self._count = count
        self._loop = asyncio.get_running_loop()

    def turn(self, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Turn:
        self.first_claim = self.first_claim or time.monotonic()
        self.settled += len(settlements)
        if self.settled == self._count:
            self.last_settle = time.monotonic()
            self._loop.call_soon_threadsafe(self.done.set)
        self._turns += 1
        claimed = self._claim(claim.limit) if claim else ()
        return Turn(claimed, self._turns, len(settlements), 0)

    def _claim(self, limit: int) -> tuple[ClaimedJob, ...]:
        now = datetime.now(UTC)
        numbers = [number for _, number in zip(range(limit), self._left, strict=False)]
        return tuple(
            ClaimedJob(
                str(uuid.UUID(int=number)), letters.MAILOUT, "letter", 1, 0, *letters.person(number), now
            )
            for number in numbers
        )

    def sending_of(self, worker_id: str) -> Sequence[JobRef]:  # noqa: ARG002 (a port's signature)
        return ()  # nothing is claimed that is not in the engine's hands

    def reaffirm(self, job_id: str, attempt: int) -> bool:  # noqa: ARG002 (a port's signature)
        return True

    def wire(self, job_id: str, attempt: int) -> bool:  # noqa: ARG002 (a port's signature)
        return True

    def reply(self, *_: Any) -> None:
        """Nothing is written down."""

    def claimed(self, claim_seq: int, claims: int) -> None:
        """Nothing is written down."""

    def get(self, letter_id: str) -> Any:  # noqa: ARG002 (a port's signature)
        return letters.letter()


async def send(port: int, count: int) -> None:
    books = Forgetful(count)
    loop = SendLoop(
        SendOptions(engine.CONNECTIONS, engine.GROUP, RetryPolicy()),
        ledger=cast(Ledger, books),
        claims=OwnClaims(str(uuid.uuid4()), 0),
        journal=cast(Journal, books),
        letters=ParcelBuilder(cast(Letters, books), letters.message_settings()),
        transport=SmtpTransport(
            SmtpSettings("127.0.0.1", port, security="plain", messages_per_connection=1_000_000)
        ),
        pacer=Unpaced(),
        gate=OpenGate(),
        holding=Holding(None, ""),
        meter=Metrics(),
    )
    tune_the_interpreter()
    running = asyncio.create_task(loop.run())
    finished = asyncio.create_task(books.done.wait())
    await asyncio.wait({running, finished}, return_when=asyncio.FIRST_COMPLETED)
    loop.stop()
    await running
    print(json.dumps({"sent": books.settled, "seconds": books.last_settle - books.first_claim}))


if __name__ == "__main__":
    uvloop.run(send(int(sys.argv[1]), int(sys.argv[2])))
