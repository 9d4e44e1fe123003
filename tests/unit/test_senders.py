"""When refusals are the sender's, and for how long they hold it."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from sendonce.domain.engine.senders import (
    LONGEST_AWAY,
    LONGEST_HOLD,
    OUTAGES_THAT_HOLD,
    OUTAGES_WITHIN,
    RUN_THAT_HOLDS,
    OutageRun,
    RefusalRun,
    SenderKey,
    away_seconds,
    hold_seconds,
    read_key,
    same_words,
)

REFUSED = Refused("550", "Sender rejected")


def test_a_hold_grows_twofold_up_to_an_hour() -> None:
    """A minute first, an hour at the most; a provider that names a longer rest gets it."""
    assert [hold_seconds(tries, None) for tries in (1, 2, 3)] == [60.0, 120.0, 240.0]
    assert hold_seconds(50, None) == LONGEST_HOLD
    assert hold_seconds(1, 300.0) == 300.0
    assert hold_seconds(1, 86_400.0) == LONGEST_HOLD


def test_twenty_equal_refusals_in_a_row_are_the_senders() -> None:
    """The twentieth holds; then the count begins again."""
    run = RefusalRun()
    answers = [run.observe(REFUSED) for _ in range(RUN_THAT_HOLDS)]
    assert answers == [False] * (RUN_THAT_HOLDS - 1) + [True]
    assert not run.observe(REFUSED)


@pytest.mark.parametrize("between", [Accepted("1"), Refused("551", "Sender rejected"), Refused("550", "x")])
def test_an_acceptance_or_another_refusal_breaks_the_run(between: Accepted | Refused) -> None:
    """Nineteen, something else, nineteen: no run of twenty."""
    run = RefusalRun()
    outcomes = [REFUSED] * 19 + [between] + [REFUSED] * 19
    assert not any(run.observe(outcome) for outcome in outcomes)


@pytest.mark.parametrize("between", [Deferred("421", "later"), InDoubt("lost")])
def test_a_deferral_or_a_doubt_does_not_break_the_run(between: Deferred | InDoubt) -> None:
    """They tell nothing of whose fault the refusals are."""
    run = RefusalRun()
    outcomes = [REFUSED] * 19 + [between, REFUSED]
    assert [run.observe(outcome) for outcome in outcomes][-1]


def test_equal_words_are_equal_whatever_the_letter() -> None:
    """Addresses, numbers and session ids differ from letter to letter."""
    one = "550 5.4.5 <ann@example.com>: Daily limit of a1b2-c3 exceeded"
    other = "550 5.4.5 <bob.b@example.org>: Daily limit of z9 exceeded"
    assert same_words(one) == same_words(other)
    assert same_words(one) != same_words("550 5.1.1 <ann@example.com>: User unknown")


def test_a_key_is_read_as_it_was_written() -> None:
    """An address may have a slash; the account has none."""
    key = SenderKey("smtp", "smtp.example.com:587", "a/b@example.com")
    assert read_key(str(key)) == key
    assert read_key("odd") == SenderKey("odd", "", "")


ANSWERED_500 = InDoubt("SES answered 500", outage=True)
UNREACHABLE = Deferred("connect_failed", "no connection", 5.0, throttle=True, outage=True)


def test_five_outages_in_a_row_move_a_sender() -> None:
    run = OutageRun()
    told = [run.observe(ANSWERED_500, 0.01 * number) for number in range(OUTAGES_THAT_HOLD)]
    assert told == [False] * (OUTAGES_THAT_HOLD - 1) + [True]
    assert not run.observe(ANSWERED_500, 1.0)


def test_an_accepted_letter_ends_a_run_of_outages() -> None:
    """A region that takes letters between its errors is not left, however many errors there are."""
    run = OutageRun()
    for number in range(100):
        assert not run.observe(ANSWERED_500, number / 10)
        if number % (OUTAGES_THAT_HOLD - 1) == 0:
            run.observe(Accepted("id"), number / 10)


def test_outages_far_apart_move_nobody() -> None:
    run = OutageRun()
    apart = OUTAGES_WITHIN / (OUTAGES_THAT_HOLD - 1)
    assert not any(run.observe(ANSWERED_500, apart * number) for number in range(50))


def test_connections_that_fail_together_are_one_outage() -> None:
    """A moment without a network is no reason to leave: with a rest of five seconds it takes twenty."""
    run = OutageRun()
    moments = [5.0 * rest + 0.01 * connection for rest in range(OUTAGES_THAT_HOLD) for connection in range(8)]
    moved = [moment for moment in moments if run.observe(UNREACHABLE, moment)]
    assert moved == [20.0]


def test_refusals_of_letters_are_no_outage() -> None:
    run = OutageRun()
    assert not any(run.observe(REFUSED, number) or run.observe(InDoubt("?"), number) for number in range(50))


def test_the_quiet_time_doubles_up_to_a_day() -> None:
    assert [away_seconds(tries, 3600.0) for tries in (1, 2, 3)] == [3600.0, 7200.0, 14_400.0]
    assert away_seconds(50, 3600.0) == LONGEST_AWAY
    assert away_seconds(3, 2 * LONGEST_AWAY) == 2 * LONGEST_AWAY
