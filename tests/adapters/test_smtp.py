"""The SMTP transport against a scripted server on loopback: letters, refusals, lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from tests.adapters.smtp_server import (
    Answer,
    Do,
    ListFeed,
    Run,
    SmtpServer,
    both_loops,
    carry,
    letter,
    outcomes_of,
    transport_to,
)

LOCKSTEP = ("8BITMIME",)


# -- the good way ---------------------------------------------------------------------------------


@both_loops
@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
@pytest.mark.parametrize("dribble", [False, True], ids=["whole", "dribbled"])
def test_letters_arrive_once_and_byte_for_byte(run: Run, extensions: Sequence[str], dribble: bool) -> None:
    """Every letter arrives exactly once and unchanged, however the server's replies are cut up."""
    parcels = [letter(n) for n in range(25)]
    feed = ListFeed(parcels)

    async def main() -> None:
        async with SmtpServer(extensions=extensions, dribble=dribble) as server:
            await carry(server, feed, connections=3)
            assert sorted(server.letters) == sorted((p.recipient, p.content) for p in parcels)

    run(main())
    assert set(feed.outcomes.values()) == {Accepted("2.0.0 Ok: queued as ABC")}
    assert feed.most_on_wire <= 3


def test_one_round_trip_a_letter() -> None:
    """The next envelope travels in the same write as the body before it."""
    outcomes, server = outcomes_of({}, letters=5)
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    shared = [chunk for chunk in server.chunks if b"\r\n.\r\nMAIL FROM:" in chunk]
    assert len(shared) == 3  # the first letter measures the server, the last has none behind it
    assert all(chunk.endswith(b"\r\nDATA\r\n") for chunk in shared)


def test_a_server_without_pipelining_gets_one_command_at_a_time() -> None:
    """No PIPELINING, no groups (RFC 2920 §3.1)."""
    _, server = outcomes_of({}, letters=3, extensions=LOCKSTEP)
    assert all(
        chunk.count(b"MAIL") + chunk.count(b"RCPT") + chunk.count(b"DATA") <= 1 for chunk in server.chunks
    )


def test_a_slow_server_gets_no_envelope_ahead() -> None:
    """A letter does not age behind another one when the server is slower than the patience."""
    outcomes, server = outcomes_of({}, letters=5, patience=0.0)
    assert not any(b".\r\nMAIL" in chunk for chunk in server.chunks)
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    assert len(server.sessions) == 1


def test_one_body_a_connection_is_on_the_wire() -> None:
    """SIGKILL can leave no more doubts than there are connections."""
    feed = ListFeed(letter(n) for n in range(40))

    async def main() -> None:
        async with SmtpServer() as server:
            await carry(server, feed, connections=1)

    asyncio.run(main())
    assert feed.most_on_wire == 1
    assert len(feed.wired) == 40


def test_a_connection_is_kept_for_so_many_letters_and_no_more() -> None:
    """The cap holds with pipelining, and each connection ends with QUIT."""
    outcomes, server = outcomes_of({}, letters=7, messages_per_connection=3)
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    assert [sum(c.startswith("MAIL") for c in s.commands) for s in server.sessions] == [3, 3, 1]
    assert all(session.commands[-1] == "QUIT" for session in server.sessions)


@pytest.mark.parametrize(
    "content",
    [b".\r\n..\r\n.x\r\n\r\n.\r\nend\r\n", b"no line end", b"\r\n" * 50, b"x" * 300_000 + b"\r\n.\r\n"],
    ids=["dots", "open end", "empty lines", "large"],
)
def test_awkward_contents_arrive_as_they_are(content: bytes) -> None:
    """Lines that begin with a dot are stuffed; a missing last line end is added."""
    feed = ListFeed([letter(0, content)])

    async def main() -> None:
        async with SmtpServer() as server:
            await carry(server, feed)
            expected = content if content.endswith(b"\r\n") else content + b"\r\n"
            assert server.letters == [("reader0@example.net", expected)]

    asyncio.run(main())


def test_multi_line_replies_are_one_reply() -> None:
    """A reply of several lines counts once, at every step."""
    answers: dict[str, Sequence[Answer]] = {
        "GREETING": [b"220-welcome\r\n220-to\r\n220 us"],
        "RCPT": [b"250-2.1.5 one\r\n250 2.1.5 two"],
        "DOT": [b"250-2.0.0 taken\r\n250 2.0.0 as 77"],
    }
    outcomes, _ = outcomes_of(answers, letters=3)
    assert outcomes == [Accepted("2.0.0 taken 2.0.0 as 77")] * 3


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
@pytest.mark.parametrize("verb", ["RCPT", "DATA", "DOT"])
@pytest.mark.parametrize("code", [451, 550])
def test_a_refused_letter_does_not_harm_its_neighbours(
    verb: str, code: int, extensions: Sequence[str]
) -> None:
    """5xx refuses and 4xx defers this one letter; the session goes on with the others."""
    answers = {verb: [None, b"%d 5.1.1 no \x1b[31m such\xff user" % code, None]}
    outcomes, server = outcomes_of(answers, letters=4, extensions=extensions)
    reason = "5.1.1 no [31m such user"
    assert outcomes[1] == (Refused("550", reason) if code == 550 else Deferred("451", reason))
    assert [type(outcomes[n]) for n in (0, 2, 3)] == [Accepted] * 3
    assert len(server.sessions) == 1
    assert [recipient for recipient, _ in server.letters] == [f"reader{n}@example.net" for n in (0, 2, 3)]


@pytest.mark.parametrize("data", [b"354 go on then", b"503 5.5.1 need RCPT", b"554 5.5.1 no recipients"])
def test_a_refused_recipient_whatever_the_server_says_to_data(data: bytes) -> None:
    """RFC 2920 §3.1: a 354 with no recipient is ended by a lone dot; no body goes to nobody."""
    answers = {"RCPT": [None, b"550 5.1.1 unknown", None], "DATA": [None, data, None]}
    outcomes, server = outcomes_of(answers, letters=3)
    assert outcomes[1] == Refused("550", "5.1.1 unknown")
    assert [type(outcomes[n]) for n in (0, 2)] == [Accepted] * 2
    assert server.empty_letters == (1 if data.startswith(b"354") else 0)
    assert [recipient for recipient, _ in server.letters] == ["reader0@example.net", "reader2@example.net"]
    assert b"Hello, 1" not in b"".join(server.chunks)
    assert len(server.sessions) == 1


def test_a_recipient_taken_after_a_refused_sender_ends_the_session() -> None:
    """A lone dot could deliver an empty letter there: the session is dropped instead."""
    answers = {"MAIL": [b"450 4.7.1 no", None], "RCPT": [b"250 ok", None], "DATA": [b"354 go", None]}
    outcomes, server = outcomes_of(answers, letters=2)
    assert [type(outcome) for outcome in outcomes] == [Deferred, Accepted]
    assert server.empty_letters == 0
    assert len(server.sessions) == 2


@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
@pytest.mark.parametrize("code", [503, 530, 535, 550, 553])
def test_a_refused_sender_is_held_and_no_letter_is_blamed(code: int, extensions: Sequence[str]) -> None:
    """MAIL names the sender alone: 5xx to it holds the sender, and the letter goes back unharmed."""
    answers: dict[str, Sequence[Answer]] = {"MAIL": [b"%d 5.7.0 not you" % code]}
    outcomes, server = outcomes_of(answers, extensions=extensions)
    assert outcomes == [Deferred(str(code), "5.7.0 not you", 600.0, throttle=True, hold=True)]
    assert server.letters == []


@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
def test_not_now_to_the_sender_costs_no_try_and_no_connection(extensions: Sequence[str]) -> None:
    """4xx to MAIL is throttling: the transport rests, the letter keeps its tries, the session stays."""
    answers: dict[str, Sequence[Answer]] = {"MAIL": [None, b"450 4.7.1 too much mail", None]}
    outcomes, server = outcomes_of(answers, letters=3, extensions=extensions)
    assert outcomes[1] == Deferred("450", "4.7.1 too much mail", 5.0, throttle=True)
    assert [type(outcomes[n]) for n in (0, 2)] == [Accepted] * 2
    assert len(server.sessions) == 1


def test_a_sender_parameter_of_one_letter_is_that_letters() -> None:
    """MAIL with SMTPUTF8 is about the recipient's address: a 5xx to it fails this letter only."""
    feed = ListFeed([letter(0, recipient="иван@example.net"), letter(1)])

    async def main() -> None:
        extensions = ("PIPELINING", "SMTPUTF8")
        async with SmtpServer({"MAIL": [b"555 5.5.4 no", None]}, extensions=extensions) as server:
            await carry(server, feed)

    asyncio.run(main())
    assert feed.outcomes["job-0"] == Refused("555", "5.5.4 no")
    assert isinstance(feed.outcomes["job-1"], Accepted)


@pytest.mark.parametrize("verb", ["RCPT", "DATA", "DOT"])
@pytest.mark.parametrize(
    "words",
    [
        b"550 5.4.5 Daily user sending limit exceeded.",
        b"535 5.7.8 Username and Password not accepted",
        b"550 5.1.8 <news@example.org>: Sender address rejected: Domain not found",
        b"553 5.7.1 <news@example.org>: Sender address rejected: not owned by user eve",
        b"554 Message rejected: Email address is not verified. news@example.org",
        b"550 5.7.60 SMTP; Client does not have permissions to send as this sender",
    ],
)
def test_refusals_that_name_the_sender_hold_it_wherever_they_come(verb: str, words: bytes) -> None:
    """Gmail's daily limit, an unverified From: the next recipient would hear the same, so nobody fails."""
    outcomes, server = outcomes_of({verb: [None, words, None]}, letters=3)
    assert outcomes[1] == Deferred(words[:3].decode(), words[4:].decode(), 600.0, throttle=True, hold=True)
    assert [type(outcomes[n]) for n in (0, 2)] == [Accepted] * 2
    assert len(server.letters) == 2


# -- one bad letter stops nobody --------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["RCPT", "DATA", "DOT"])
@pytest.mark.parametrize("words", [b"421 4.7.0 no", b"454 4.7.0 no", b"530 5.7.0 no", b"503 5.5.1 no"])
def test_one_bad_letter_rests_nobody_and_pays_the_second_time(verb: str, words: bytes) -> None:
    """The first time it waits, the others go on; after they were accepted it pays with a try."""
    bad = letter(1)
    feed = ListFeed([letter(0), bad, letter(2), letter(3), replace(bad, attempt=2), letter(4)])
    feed.outcomes_of_attempts = True

    async def main() -> None:
        answers: dict[str, Sequence[Answer]] = {verb: [None, words, None, None, words, None]}
        async with SmtpServer(answers) as server:
            await carry(server, feed)
            assert [recipient for recipient, _ in server.letters] == [
                f"reader{n}@example.net" for n in (0, 2, 3, 4)
            ]

    asyncio.run(main())
    first, second = feed.outcomes["job-1/1"], feed.outcomes["job-1/2"]
    assert isinstance(first, Deferred)
    assert (first.throttle, first.local) == (True, True)
    assert first.retry_after  # it is not the first to be tried again
    assert second == Deferred(words[:3].decode(), words[4:].decode())


def test_trouble_twice_with_nothing_accepted_between_is_the_servers() -> None:
    """What two letters in a row meet is no fault of theirs: the transport rests, no try is used up."""
    answers: dict[str, Sequence[Answer]] = {"RCPT": [None, b"454 4.7.0 later", b"454 4.7.0 later", None]}
    outcomes, _ = outcomes_of(answers, letters=4)
    first, second = outcomes[1], outcomes[2]
    assert first == Deferred("454", "4.7.0 later", 60.0, throttle=True, local=True)
    assert second == Deferred("454", "4.7.0 later", 60.0, throttle=True)


def test_a_letter_that_is_alone_in_its_trouble_keeps_its_tries() -> None:
    """Nothing was accepted since: it may be the server. The transport rests, the letter loses nothing."""
    feed = ListFeed([letter(0), replace(letter(0), attempt=2)])
    feed.outcomes_of_attempts = True

    async def main() -> None:
        async with SmtpServer({"RCPT": [b"421 4.7.0 no"]}) as server:
            await carry(server, feed)

    asyncio.run(main())
    rest = Deferred("421", "4.7.0 no", 5.0, throttle=True)
    assert feed.outcomes == {"job-0/1": rest, "job-0/2": rest}


# -- a transaction that a refused letter leaves open --------------------------------------------------


@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
@pytest.mark.parametrize("patience", [30.0, 0.0], ids=["ahead", "one by one"])
def test_a_transaction_left_open_by_a_refused_letter_is_reset(
    extensions: Sequence[str], patience: float
) -> None:
    """The next letter gets through at once, to its own recipient alone; nobody rests."""
    feed = ListFeed(letter(n) for n in range(6))

    async def main() -> None:
        spam = b"554 5.6.0 spam"
        answers: dict[str, Sequence[Answer]] = {"DOT": [None, spam, None, spam, None]}
        async with SmtpServer(answers, extensions=extensions, keeps_transaction=True) as server:
            await carry(server, feed, patience=patience)
            recipients = [recipient for recipient, _ in server.letters]
            assert recipients == [f"reader{n}@example.net" for n in (0, 2, 4, 5)]
            assert server.empty_letters == 0

    asyncio.run(main())
    expected = [Accepted, Refused, Accepted, Refused, Accepted, Accepted]
    assert [type(feed.outcomes[f"job-{n}"]) for n in range(6)] == expected
    assert all(not outcome.hold for outcome in feed.unharmed)


def test_what_the_server_cannot_take_is_refused_before_it_is_sent() -> None:
    """Size limit, injected line breaks, and non-ASCII addresses without SMTPUTF8."""
    parcels = [
        letter(0, b"x" * 2000),
        letter(1, recipient="a@example.net>\r\nRCPT TO:<b@example.net"),
        letter(2, recipient="иван@example.net"),
        letter(3),
    ]
    feed = ListFeed(parcels)

    async def main() -> None:
        async with SmtpServer(extensions=("PIPELINING", "SIZE 1000")) as server:
            await carry(server, feed)
            assert [recipient for recipient, _ in server.letters] == ["reader3@example.net"]

    asyncio.run(main())
    codes = [getattr(feed.outcomes[f"job-{n}"], "code", None) for n in range(4)]
    assert codes == ["552", "553", "553", None]


# -- lost connections: what is proven and what is in doubt ----------------------------------------


@both_loops
@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET, Do.SILENCE, b"garbage", b"354 what?", b"2x0 Ok"])
def test_no_answer_to_the_dot_is_doubt(run: Run, end: Answer) -> None:
    """EOF, reset, silence and nonsense after the dot: in doubt. The next one goes by a new connection."""
    outcomes, server = outcomes_of({"DOT": [None, end, None]}, letters=3, run=run, final_dot_timeout=0.2)
    assert [type(outcome) for outcome in outcomes] == [Accepted, InDoubt, Accepted]
    assert len(server.sessions) == 2
    assert b"Hello, 2" not in b"".join(server.sessions[0].chunks)


@both_loops
def test_a_server_that_loses_letter_after_letter_gets_a_rest(run: Run) -> None:
    """Two letters in doubt with none accepted between: the third is not risked."""
    outcomes, _ = outcomes_of({"DOT": [None, Do.CLOSE, Do.CLOSE, None]}, letters=5, run=run)
    assert [type(outcome) for outcome in outcomes] == [Accepted, InDoubt, InDoubt, Deferred, Accepted]
    rest = outcomes[3]
    assert isinstance(rest, Deferred)
    assert (rest.code, rest.retry_after, rest.local) == ("lost", 5.0, False)


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET, Do.SILENCE, Do.TELL_AND_CLOSE, b"garbage", b"100 x"])
def test_an_envelope_alone_proves_that_nothing_was_taken(verb: str, end: Answer) -> None:
    """Whatever happens before the body leaves, the letter may be sent again."""
    outcomes, server = outcomes_of({verb: [end, None]}, letters=2, command_timeout=0.2)
    assert isinstance(outcomes[0], Deferred)
    assert outcomes[0].throttle
    assert isinstance(outcomes[1], Accepted)
    assert len(server.sessions) == 2


@both_loops
def test_421_to_the_dot_is_an_answer(run: Run) -> None:
    """The server said that it did not take the letter; the one behind it goes over a new connection."""
    outcomes, _ = outcomes_of({"DOT": [None, b"421 4.3.2 closing", None]}, letters=4, run=run)
    refusal = Deferred("421", "4.3.2 closing", 5.0, throttle=True, local=True)
    assert outcomes[1] == refusal
    assert [type(outcomes[n]) for n in (0, 2, 3)] == [Accepted] * 3


@both_loops
def test_421_in_the_middle_of_a_pipeline(run: Run) -> None:
    """421 to the envelope that came behind a body: the letter is unharmed and goes over a new connection."""
    outcomes, server = outcomes_of({"MAIL": [None, None, Do.TELL_AND_CLOSE, None]}, letters=4, run=run)
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 4
    assert len(server.letters) == 4
    assert len(server.sessions) == 2


def test_an_answer_that_comes_before_its_question_is_not_believed() -> None:
    """A 250 that was there before the body left cannot mean that the body was taken."""
    outcomes, server = outcomes_of({"DATA": [b"354 go\r\n250 2.0.0 queued as LIE", None]}, letters=2)
    assert [type(outcome) for outcome in outcomes] == [Deferred, Accepted]
    assert len(server.letters) == 1


@pytest.mark.parametrize(
    "flood", [b"250 " + b"x" * 5000, b"250-x\r\n" * 200 + b"250 x", b"250-x\r\n550 y", b"x" * 100_000]
)
def test_oversized_and_inconsistent_replies_end_the_session(flood: bytes) -> None:
    """Replies are bounded: no memory is spent on a hostile server."""
    outcomes, _ = outcomes_of({"RCPT": [flood, None]}, letters=2)
    assert [type(outcome) for outcome in outcomes] == [Deferred, Accepted]
    assert len(outcomes[0].reason) <= 300  # type: ignore[union-attr]


def test_a_parcel_that_may_not_be_sent_any_more_is_not_sent() -> None:
    """wire() said no: its body stays here, DATA is left by hanging up, and the next one gets through."""
    feed = ListFeed([letter(n) for n in range(4)], stale=["job-1"])

    async def main() -> None:
        async with SmtpServer() as server:
            await carry(server, feed)
            assert [recipient for recipient, _ in server.letters] == [
                f"reader{n}@example.net" for n in (0, 2, 3)
            ]
            assert b"Hello, 1" not in b"".join(server.chunks)
            assert server.empty_letters == 0

    asyncio.run(main())
    assert feed.given_back == ["job-1"]
    assert set(feed.outcomes) == {"job-0", "job-2", "job-3"}


@both_loops
@pytest.mark.parametrize("extensions", [("PIPELINING",), LOCKSTEP], ids=["pipelined", "lockstep"])
def test_an_old_claim_is_reaffirmed_while_the_server_waits_for_the_body(
    run: Run, extensions: Sequence[str]
) -> None:
    """It costs neither the letter nor the connection."""
    feed = ListFeed([letter(n) for n in range(4)], old=["job-1"])

    async def main() -> None:
        async with SmtpServer(extensions=extensions) as server:
            await carry(server, feed)
            assert len(server.letters) == 4
            assert len(server.sessions) == 1

    run(main())
    assert feed.reaffirming.is_set()
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@both_loops
@pytest.mark.parametrize("end", ["hangs up", "speaks", "says nothing", "the work is stopped"])
def test_what_ends_while_an_old_claim_is_reaffirmed_was_never_sent(run: Run, end: str) -> None:
    """Not a byte of the body left, so the letter may be tried again, whatever the ledger answers then."""
    feed = ListFeed([letter(0)], old=["job-0"])
    feed.reaffirmed.clear()

    async def main() -> None:
        async with SmtpServer() as server:
            limit = 0.2 if end == "says nothing" else 10.0
            work = asyncio.create_task(transport_to(server, command_timeout=limit).carry(feed, 1))
            await feed.reaffirming.wait()
            (session,) = server.sessions
            if end == "hangs up":
                session.close()
            elif end == "speaks":
                session.answer_late(b"421 4.3.2 Shutting down")
            elif end == "the work is stopped":
                work.cancel()
            await asyncio.wait({work})
            feed.reaffirmed.set()
            for _ in range(5):  # until the answer has reached the session
                await asyncio.sleep(0)
            assert b"Hello" not in b"".join(server.chunks)

    run(main())
    assert isinstance(feed.outcomes["job-0"], Deferred)
    assert feed.asked_to_wire == []
    assert not feed.unsettled


@both_loops
@pytest.mark.parametrize(
    "answers", [{"MAIL": [None, Do.CLOSE, None]}, {"MAIL": [None, Do.TELL_AND_CLOSE, None]}]
)
def test_a_connection_that_died_while_idle_is_replaced(
    run: Run, answers: dict[str, Sequence[Answer]]
) -> None:
    """A kept connection that proves dead costs its letter nothing: it goes over a new one at once."""
    feed = ListFeed([letter(0), letter(1)])

    async def main() -> None:
        feed.gates["job-1"], feed.asked_for["job-1"] = asyncio.Event(), asyncio.Event()
        async with SmtpServer(answers) as server:
            work = asyncio.create_task(carry(server, feed))
            await feed.asked_for["job-1"].wait()
            feed.gates["job-1"].set()
            await work
            assert len(server.sessions) == 2
            assert len(server.letters) == 2

    run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@both_loops
@pytest.mark.parametrize("by_server", [True, False], ids=["server hangs up", "idle limit"])
def test_an_idle_connection_that_closes_is_reopened(run: Run, by_server: bool) -> None:
    """Between letters a connection may go; nobody is in doubt for it."""
    feed = ListFeed([letter(0), letter(1)])

    async def main() -> None:
        feed.gates["job-1"], feed.asked_for["job-1"] = asyncio.Event(), asyncio.Event()
        async with SmtpServer() as server:
            work = asyncio.create_task(carry(server, feed, idle_timeout=30.0 if by_server else 0.05))
            await feed.asked_for["job-1"].wait()
            if by_server:
                server.sessions[0].close()
            await server.sessions[0].closed
            assert ("QUIT" in server.commands) is not by_server
            feed.gates["job-1"].set()
            await work
            assert len(server.sessions) == 2

    run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


@both_loops
def test_cancelling_settles_everything_in_hand(run: Run) -> None:
    """The letter on the wire is in doubt, the one whose envelope went ahead is not."""
    feed = ListFeed(letter(n) for n in range(5))

    async def main() -> None:
        async with SmtpServer({"DOT": [None, Do.SILENCE]}) as server:
            work = asyncio.create_task(transport_to(server).carry(feed, 1))
            while len(feed.wired) < 2:
                server.data_ended.clear()
                await server.data_ended.wait()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    run(main())
    assert isinstance(feed.outcomes["job-1"], InDoubt)
    assert [outcome.code for outcome in feed.unharmed] == ["cancelled"]
    assert not feed.unsettled


@both_loops
def test_no_letter_is_taken_for_a_connection_that_is_not_open(run: Run) -> None:
    """While a server thinks about its greeting, its letters are free for others; cancelling harms none."""
    feed = ListFeed([letter(0)])

    async def main() -> None:
        async with SmtpServer({"GREETING": [Do.SILENCE]}) as server:
            work = asyncio.create_task(transport_to(server).carry(feed, 1))
            while not server.sessions:
                await asyncio.sleep(0)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    run(main())
    assert feed.taken_in_all == 0


@both_loops
@pytest.mark.parametrize("verb", ["settle", "reaffirm", "wire"])
def test_errors_of_the_feed_reach_the_caller(run: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that fails is not swallowed by the event loop."""

    def fail(*_: object) -> None:
        raise RuntimeError("the ledger is gone")

    monkeypatch.setattr(ListFeed, verb, fail)

    async def main() -> None:
        async with SmtpServer() as server:
            with pytest.raises(RuntimeError, match="the ledger is gone"):
                await transport_to(server).carry(ListFeed([letter(0)], old=["job-0"]), 2)

    run(main())
