"""The moves of a message job, and what evidence means for it."""

from __future__ import annotations

from itertools import permutations

import pytest

from sendonce.domain.engine.jobs import MOVES, Books, JobState, Move, after, weigh_evidence

S = JobState


def test_every_move_has_its_arrows() -> None:
    """The table names every move, and no move leads to where it begins."""
    assert set(MOVES) == set(Move)
    assert all(target not in sources for sources, target in MOVES.values())


def test_a_move_from_elsewhere_is_refused() -> None:
    """Where an arrow does not begin, there is no arrow."""
    assert after(S.SCHEDULED, Move.CLAIM) == S.SENDING
    assert after(S.SENT, Move.CLAIM) is None


@pytest.mark.parametrize("move", Move)
def test_nothing_leaves_sent(move: Move) -> None:
    """Sent is the end, whatever comes."""
    assert after(S.SENT, move) is None


def test_only_proof_or_a_word_leads_out_of_doubt() -> None:
    """From in doubt a job goes by an outcome, by evidence or by proof of absence; never by a claim."""
    ways = {move for move in Move if after(S.IN_DOUBT, move) is not None}
    assert ways == {
        Move.ACCEPT,
        Move.DEFER,
        Move.REFUSE,
        Move.EXHAUST,
        Move.OLD_EVIDENCE,
        Move.ABSENCE,
    }


def test_only_scheduled_jobs_are_claimed() -> None:
    """One arrow leads to sending, and it begins at scheduled."""
    into_sending = [(sources, move) for move, (sources, target) in MOVES.items() if target == S.SENDING]
    assert into_sending == [(frozenset({S.SCHEDULED}), Move.CLAIM)]


@pytest.mark.parametrize("state", [s for s in S if s != S.SENT])
def test_evidence_of_the_current_attempt_ends_the_job(state: JobState) -> None:
    """From every other state."""
    evidence = weigh_evidence(state, 2, None, 2)
    assert evidence.ends_the_job
    assert not evidence.second_copy


@pytest.mark.parametrize("state", [s for s in S if s not in (S.SENT, S.SENDING)])
def test_evidence_of_an_older_attempt_ends_the_job_when_nothing_newer_is_out(state: JobState) -> None:
    """The letter is there already: nothing more is to be sent, and there is one copy."""
    evidence = weigh_evidence(state, 2, None, 1)
    assert evidence.ends_the_job
    assert not evidence.second_copy


def test_evidence_of_an_older_attempt_while_a_newer_one_is_on_the_wire() -> None:
    """A second copy, most likely; the newer attempt has yet to tell its outcome."""
    evidence = weigh_evidence(S.SENDING, 2, None, 1)
    assert evidence.second_copy
    assert not evidence.ends_the_job


def test_more_evidence_of_one_attempt_is_no_second_copy() -> None:
    """A delivery after the Send event is the same letter."""
    assert not weigh_evidence(S.SENT, 3, 1, 1).second_copy


def test_an_operators_word_is_no_evidence_of_an_attempt() -> None:
    """A job that a person called sent has no attempt yet that a second one could be beside."""
    evidence = weigh_evidence(S.SENT, 2, None, 1)
    assert evidence.newest
    assert not evidence.second_copy


@pytest.mark.parametrize("state", [s for s in S if s not in (S.SENT, S.SENDING)])
def test_the_order_of_evidence_does_not_matter(state: JobState) -> None:
    """All orders of proofs for three attempts end with the newest shown and the alarm raised."""
    for order in permutations([1, 1, 2, 3]):
        now, accepted, alarm = state, None, False
        for attempt in order:
            evidence = weigh_evidence(now, 3, accepted, attempt)
            now = S.SENT if evidence.ends_the_job else now
            accepted = attempt if evidence.newest else accepted
            alarm = alarm or evidence.second_copy
        assert (now, accepted, alarm) == (S.SENT, 3, True)


def test_the_books_balance_when_the_states_sum_up() -> None:
    """Marks do not count."""
    good = Books(planned=3, scheduled=1, sent=2, delivered=2, bounced=1)
    assert good.balanced
    assert good.open == 1
    assert not Books(planned=3, sent=2).balanced
