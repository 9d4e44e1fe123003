"""The engine and the SMTP transport together, against a scripted server with limits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from sendonce.adapters.transports import smtp_replies
from sendonce.domain.engine.jobs import JobState
from sendonce.flows.engine.feed import STALE_AFTER
from tests.adapters.smtp_server import Answer, Do, SmtpServer, transport_to
from tests.unit.test_send import Scene


async def play(scene: Scene, server: SmtpServer, seconds: float = 10.0) -> None:
    """Send until all is settled, within the time given."""
    scene.provider = transport_to(server, patience=0.25)  # type: ignore[assignment]
    await scene._play(scene._all_settled, seconds)


def test_every_letter_arrives_where_connections_outnumber_the_servers_processes() -> None:
    """Four processes, eight connections: the four that are greeted carry all the letters."""
    scene = Scene(people=300, connections=8)

    async def main() -> None:
        answers: dict[str, Sequence[Answer]] = {"GREETING": [None] * 4 + [Do.SILENCE]}
        async with SmtpServer(answers) as server:
            await play(scene, server)
            assert len(server.letters) == len({recipient for recipient, _ in server.letters}) == 300

    asyncio.run(main())
    assert scene.states() == {JobState.SENT: 300}
    assert {job.attempt for job in scene.jobs()} == {1}


def test_a_limit_of_connections_costs_no_rest_and_no_try() -> None:
    """Three connections of eight are granted: all letters leave, and nothing rests for it."""
    scene = Scene(people=400, connections=8)

    async def main() -> None:
        async with SmtpServer(most_sessions=3) as server:
            await play(scene, server, seconds=5)

    asyncio.run(main())
    assert scene.states() == {JobState.SENT: 400}
    assert {job.tries for job in scene.jobs()} == {0}


@pytest.mark.parametrize("words", [b"421 4.7.0 go away", b"454 4.7.0 not now", b"530 5.7.0 log in first"])
def test_one_bad_letter_stops_nobody_and_is_counted(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are sent while it waits; met again after them, it costs the letter a try."""
    for rest in ("REST_AFTER_LOSS", "REST_AFTER_BUSY", "REST_AFTER_DENIED"):
        monkeypatch.setattr(smtp_replies, rest, 0.3)
    scene = Scene(people=60, connections=2)
    bad = scene.jobs()[5]

    async def main() -> None:
        async with SmtpServer(recipients={bad.recipient: words}) as server:
            scene.provider = transport_to(server)  # type: ignore[assignment]
            await scene._play(lambda: scene.store.jobs.get(bad.id).tries == 1, 5.0)  # type: ignore[union-attr]
            assert len(server.letters) == 59

    asyncio.run(main())
    assert scene.states() == {JobState.SENT: 59, JobState.SCHEDULED: 1}


def test_a_rate_limit_of_the_server_kills_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """450 to MAIL, as Postfix says it: the transport rests, goes on, and no try is used up."""
    monkeypatch.setattr(smtp_replies, "REST_AFTER_LOSS", 0.05)
    scene = Scene(people=40, connections=4)

    async def main() -> None:
        limited: Sequence[Answer] = [None] * 15 + [b"450 4.7.1 Error: too much mail"] * 3 + [None]
        async with SmtpServer({"MAIL": limited}) as server:
            await play(scene, server)
            assert len(server.letters) == 40

    asyncio.run(main())
    assert scene.states() == {JobState.SENT: 40}
    assert {job.tries for job in scene.jobs()} == {0}


def test_a_wrong_password_is_tried_once_by_eight_connections() -> None:
    """Eight tries at once would lock the account."""
    scene = Scene(people=50, connections=8)

    async def main() -> None:
        async with SmtpServer({"AUTH": [b"535 5.7.8 wrong"]}, extensions=("AUTH PLAIN",)) as server:
            scene.provider = transport_to(server, username="u", password="p")  # type: ignore[assignment]
            await scene._play(lambda: any(job.code == "535" for job in scene.jobs()), 5.0)
            assert len(server.sessions) == 1

    asyncio.run(main())
    assert scene.states() == {JobState.SCHEDULED: 50}


class Stalled:
    """A ledger that does not answer about an old claim until it is released."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self.asked = threading.Event()
        self.released = threading.Event()
        self.gave_up = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def reaffirm(self, job_id: str, attempt: int) -> bool:
        self.asked.set()
        self.gave_up = not self.released.wait(8)
        return False


def test_a_database_that_does_not_answer_about_an_old_claim_stops_nobody() -> None:
    """The server was slow with one letter. While the ledger is asked about it, the others leave, the clock
    goes on, and so does the stop."""
    scene = Scene(people=60, connections=3)
    ledger = scene.ledger = Stalled(scene.store.ledger)

    async def main() -> None:
        async with SmtpServer({"DATA": [Do.LATE, None]}) as server:
            scene.provider = transport_to(server, patience=0.25)  # type: ignore[assignment]
            asyncio.get_running_loop().call_later(STALE_AFTER + 0.1, lambda: late(server).answer_late())
            await scene._play(lambda: len(server.letters) >= 59 and ledger.asked.is_set(), 6.0)

    asyncio.run(main())
    assert not ledger.gave_up
    ledger.released.set()
    assert scene.states().get(JobState.SENT, 0) >= 59
    assert JobState.SENDING not in scene.states()


def late(server: SmtpServer) -> Any:
    """The session whose first DATA waits for its answer."""
    return next(session for session in server.sessions if "DATA" in session.commands)
