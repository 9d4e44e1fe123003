"""When refusals are the sender's, and for how long they hold it."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from sendonce.domain.engine.senders import (
    LONGEST_HOLD,
    RUN_THAT_HOLDS,
    RefusalRun,
    SenderKey,
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
