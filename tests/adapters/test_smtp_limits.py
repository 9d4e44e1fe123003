"""The SMTP transport against servers with limits: connections at once, letters per connection, passwords."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sendonce.adapters.transports import smtp_limits
from sendonce.adapters.transports.smtp_limits import Habits, Slots
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome
from sendonce.domain.engine.parcels import Parcel
from tests.adapters.smtp_server import Answer, Do, ListFeed, Run, SmtpServer, both_loops, carry, letter


class RestingFeed(ListFeed):
    """A feed that does as the engine does: nothing leaves while the transport rests (here: ever again)."""

    resting = False

    async def wanted(self) -> bool:
        return not self.resting and await super().wanted()

    def take_nowait(self) -> Parcel | None:
        return None if self.resting else super().take_nowait()

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        super().settle(parcel, outcome)
        self.resting |= isinstance(outcome, Deferred) and outcome.throttle and not outcome.local


def letters_in(server: SmtpServer) -> list[str]:
    return sorted(recipient for recipient, _ in server.letters)


def expected(count: int) -> list[str]:
    return sorted(f"reader{n}@example.net" for n in range(count))


@both_loops
def test_a_server_with_fewer_connections_than_ours_is_served_with_as_many_as_it_grants(run: Run) -> None:
    """421 to the fourth connection is its answer alone: the three go on, and it is not asked again soon."""
    feed = RestingFeed(letter(n) for n in range(300))

    async def main() -> None:
        async with SmtpServer(most_sessions=3) as server:
            await carry(server, feed, connections=8, messages_per_connection=20)
            assert letters_in(server) == expected(300)
            greeted = [session for session in server.sessions if session.commands]
            assert len(server.sessions) - len(greeted) <= 8

    run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}
    assert feed.most_on_wire == 3


def test_a_connection_that_is_let_in_and_then_refused_is_one_too_many() -> None:
    """Some servers greet everybody and say 421 to MAIL: no letter is harmed by it, nor the transport."""
    feed = RestingFeed(letter(n) for n in range(40))
    answers: dict[str, Sequence[Answer]] = {"MAIL": [None, Do.TELL_AND_CLOSE, None]}

    async def main() -> None:
        async with SmtpServer(answers) as server:
            await carry(server, feed, connections=2)
            assert letters_in(server) == expected(40)

    asyncio.run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@both_loops
@pytest.mark.parametrize("connections", [1, 4])
def test_the_limit_of_letters_per_connection_is_learned(run: Run, connections: int) -> None:
    """After two connections were cut off at the same number, the others say goodbye before it."""
    feed = RestingFeed(letter(n) for n in range(120))

    async def main() -> None:
        async with SmtpServer(letters_per_session=5) as server:
            await carry(server, feed, connections)
            assert letters_in(server) == expected(120)
            cut_off = [session for session in server.sessions if session.commands[-1] != "QUIT"]
            assert len(cut_off) <= 1 + connections

    run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@pytest.mark.parametrize("letters", [1, 3])
def test_a_server_that_hangs_up_after_some_letters_without_a_word_is_learned_too(letters: int) -> None:
    """Balancers and small servers just close: no letter pays for it, and no transport rests."""
    feed = RestingFeed(letter(n) for n in range(60))

    async def main() -> None:
        async with SmtpServer(letters_per_session=letters, over_limit=Do.CLOSE) as server:
            await carry(server, feed, connections=2)
            assert letters_in(server) == expected(60)
            cut_off = [session for session in server.sessions if session.commands[-1] != "QUIT"]
            assert len(cut_off) <= 4

    asyncio.run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


def test_a_letter_that_ends_its_connection_pays_the_second_time() -> None:
    """At first it may be chance; after others were accepted since, it is this letter."""
    bad = letter(1)
    feed = RestingFeed([letter(0), bad, letter(2), replace(bad, attempt=2), letter(3)])
    feed.outcomes_of_attempts = True

    async def main() -> None:
        async with SmtpServer({"RCPT": [None, Do.CLOSE, None, Do.CLOSE, None]}) as server:
            await carry(server, feed)
            assert letters_in(server) == [f"reader{n}@example.net" for n in (0, 2, 3)]

    asyncio.run(main())
    first, second = feed.outcomes["job-1/1"], feed.outcomes["job-1/2"]
    assert isinstance(first, Deferred)
    assert (first.throttle, first.local, first.retry_after) == (True, True, 5.0)
    assert second == Deferred("lost", "the connection was closed")


def test_connections_that_are_replaced_all_at_once_do_not_look_like_a_limit() -> None:
    """A server counts a connection for a moment after its end: what it refuses meanwhile is tried again."""

    async def main() -> None:
        slots = Slots(6, Habits(letters=100))
        for _ in range(6):
            await slots.enter()
            slots.opened(0.0)
        for _ in range(5):
            slots.closed()
            assert slots.refused() > 0  # each lane keeps its place and waits
        for _ in range(5):
            slots.opened(0.0)
        slots.leave()
        async with asyncio.timeout(1):
            await slots.enter()

    asyncio.run(main())


def test_a_refusal_that_stays_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that grants fewer connections than before is asked for fewer after some seconds."""
    monkeypatch.setattr(smtp_limits, "FIRST_PAUSE", 0.001)

    async def main() -> None:
        slots = Slots(2, Habits(letters=100))
        for _ in range(2):
            await slots.enter()
            slots.opened(0.0)
        slots.closed()
        pauses = 0
        while (pause := slots.refused()) > 0:
            pauses += 1
            await asyncio.sleep(pause)
        assert pauses == 4
        slots.leave()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await slots.enter()
        slots.stop()

    asyncio.run(main())


def test_a_limit_that_is_lifted_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while one more connection is tried."""
    monkeypatch.setattr(smtp_limits, "GROW_AFTER", 0.02)
    feed = ListFeed(letter(n) for n in range(4000))

    async def main() -> None:
        async with SmtpServer(most_sessions=1) as server:
            work = asyncio.create_task(carry(server, feed, connections=3, messages_per_connection=10_000))
            while len(server.letters) < 300:
                await asyncio.sleep(0.001)
            assert feed.most_on_wire == 1
            server.most_sessions = None
            while feed.most_on_wire < 3 and not work.done():
                await asyncio.sleep(0.001)
            await work

    asyncio.run(main())
    assert feed.most_on_wire == 3
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@both_loops
def test_connections_that_wait_for_a_greeting_hold_no_letter(run: Run) -> None:
    """A server with four processes greets the fifth connection when another has ended: the four take all."""
    feed = RestingFeed(letter(n) for n in range(200))

    async def main() -> None:
        answers: dict[str, Sequence[Answer]] = {"GREETING": [None] * 4 + [Do.SILENCE]}
        async with SmtpServer(answers) as server:
            async with asyncio.timeout(30):  # and at the end nobody waits for a greeting
                await carry(server, feed, connections=8, messages_per_connection=1000)
            assert letters_in(server) == expected(200)

    run(main())
    assert feed.taken_in_all == 200
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@pytest.mark.parametrize(
    "answers",
    [
        {"GREETING": [b"421 4.7.0 too many connections"]},
        {"GREETING": [b"554 5.7.1 go away"]},
        {"AUTH": [b"535 5.7.8 wrong password"]},
    ],
    ids=["busy", "refused", "password"],
)
def test_a_closed_door_is_tried_once_not_once_per_connection(answers: dict[str, Sequence[Answer]]) -> None:
    """Eight tries of a wrong password lock an account: the first tells, and the transport rests."""
    feed = RestingFeed(letter(n) for n in range(30))

    async def main() -> None:
        async with SmtpServer(answers, extensions=("AUTH PLAIN",)) as server:
            await carry(server, feed, connections=8, username="user", password="pass")
            assert len(server.sessions) == 1

    asyncio.run(main())
    (outcome,) = feed.outcomes.values()
    assert isinstance(outcome, Deferred)
    assert outcome.throttle
    assert outcome.hold is outcome.code.startswith("5")


def test_a_server_that_is_gone_rests_the_transport_when_the_last_session_has_ended() -> None:
    """It says 421 to each session in turn: letters go on over the others, and then there is no session."""
    feed = RestingFeed(letter(n) for n in range(50))

    async def main() -> None:
        greetings: Sequence[Answer] = [None, None, None, b"421 4.3.2 shutting down"]
        mails: Sequence[Answer] = [None] * 9 + [Do.TELL_AND_CLOSE]
        async with SmtpServer({"GREETING": greetings, "MAIL": mails}) as server:
            await carry(server, feed, connections=3)
            assert len(server.letters) == 9

    asyncio.run(main())
    (rest,) = [outcome for outcome in feed.outcomes.values() if isinstance(outcome, Deferred)]
    assert rest.code == "421"
