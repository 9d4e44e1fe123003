"""What the provider counted is held against what the ledger knows, before a worker starts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sendonce.errors import RefusedByRule
from sendonce.flows.engine.check_account import BY_HAND, WINDOW, check_account
from tests.conformance.backdoor import grow_old
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, Stage


@pytest.fixture
def old_stage(stage: Stage) -> Stage:
    """A ledger that was made long ago."""
    grow_old(stage.store, WINDOW * 2)
    return stage


def test_more_than_the_ledger_knows_of_is_refused(old_stage: Stage) -> None:
    """Database and state directory went back together, or others send too: the words name both ways out."""
    said = r"counted 11 letters.*knows of 0.*SES_ACCOUNT_SHARED=true.*db adopt"
    with pytest.raises(RefusedByRule, match=said):
        check_account(old_stage.store, BY_HAND + 1)
    assert old_stage.store.ledger.identity().halted is None


def test_what_the_ledger_knows_of_is_enough(old_stage: Stage) -> None:
    """Accepted, in doubt, put off: each was given to the provider at most once; so was a canary."""
    old_stage.running(4)
    for job, outcome in zip(old_stage.claim(limit=3).claimed, (ACCEPTED, DOUBTED, DEFERRED), strict=True):
        old_stage.settle(job, outcome, **({"retry_after": 3600.0} if outcome == DEFERRED else {}))
    old_stage.store.canaries.launch(old_stage.worker(), "ses")
    check_account(old_stage.store, 4 + BY_HAND)
    with pytest.raises(RefusedByRule, match="knows of 4"):
        check_account(old_stage.store, 5 + BY_HAND)


def test_a_mailout_that_ended_lately_counts(old_stage: Stage) -> None:
    """It is not open any more, but its letters are of the last day."""
    mailout_id = old_stage.running()
    old_stage.settle(old_stage.claim_one(), ACCEPTED)
    assert old_stage.store.dispatches.complete(mailout_id) is not None
    since = old_stage.store.ledger.now() - WINDOW
    assert old_stage.store.jobs.handed_over_since(since) == 1
    assert old_stage.store.jobs.handed_over_since(old_stage.store.ledger.now() + timedelta(hours=1)) == 0


@pytest.mark.parametrize("how", ["made", "adopt", "vouch"])
def test_nothing_is_told_for_a_day_after_a_ledger_was_made_or_adopted(stage: Stage, how: str) -> None:
    """The account may have been used before, and what an adoption put in doubt is known to be unknown."""
    if how != "made":
        grow_old(stage.store, WINDOW * 2)
    if how == "adopt":
        stage.store.ledger.adopt(None, 1, "jane")
    if how == "vouch":
        stage.store.ledger.vouch(None, "jane")
    check_account(stage.store, 1_000_000)
