"""What becomes of a request to a search provider, whatever the provider says or does not say.

A submission that was, or may have been, paid for and brings no answer is a loss. After the first loss a
request is submitted once more by itself. After the second it ends, and only a person's word submits it again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from sendonce.domain.prospecting.search_answers import (
    Accepted,
    Failed,
    FateUnknown,
    Fetch,
    Gone,
    NotNow,
    NotTaken,
    Pending,
    ProviderTerms,
    Ready,
    Refused,
    SerpPage,
    Submission,
    Verdict,
)
from sendonce.domain.prospecting.searches import Change, Operation, OperationState

MAX_LOSSES = 2
MAX_FAILURES = 5
"""So many polls in a row may bring what cannot be used before the request has failed."""
SUBMIT_LEASE = timedelta(minutes=2)
"""Well above the time that a submission may take: whoever holds it longer has died."""
WORK_LEASE = timedelta(minutes=5)
_SHORTEST_POLL_WAIT = timedelta(seconds=2)
_LONGEST_POLL_WAIT = timedelta(minutes=30)
_PAUSE = timedelta(seconds=60)


def after_submission(operation: Operation, said: Submission, terms: ProviderTerms, now: datetime) -> Change:
    match said:
        case Accepted(provider_id):
            due = now + terms.first_poll
            return Change(operation, OperationState.SUBMITTED, due, provider_id, losses=operation.losses)
        case NotTaken(reason, code, retry_after):
            due = now + _pause(retry_after)
            return Change(
                operation,
                OperationState.QUEUED,
                due,
                code=code,
                reason=reason,
                losses=operation.losses,
                refunded=True,
            )
        case Refused(reason, code):
            return _failed(operation, code, reason, refunded=True)
        case FateUnknown(reason, code):
            return fate_unknown(operation, terms, code, reason)


def fate_unknown(operation: Operation, terms: ProviderTerms, code: str, reason: str) -> Change:
    """Until nobody can fetch an answer any more that an earlier submission may have, no second is made."""
    losses = operation.losses + 1
    assert operation.submitted_at is not None
    due = operation.submitted_at + terms.results_live if losses < MAX_LOSSES else None
    return Change(operation, OperationState.UNKNOWN, due, code=code, reason=reason, losses=losses)


def after_fetch(
    operation: Operation, said: Fetch, place: str | None, terms: ProviderTerms, now: datetime, dice: Random
) -> Change:
    """``place`` is where the answer is archived, if there was one."""
    match said:
        case Ready():
            return Change(operation, OperationState.FETCHED, now, answer_place=place, losses=operation.losses)
        case Gone(reason):
            return _lost(operation, OperationState.EXPIRED, now, "gone", reason)
        case Failed(reason, code, passing):
            if passing:
                return _lost(operation, OperationState.FAILED, now, code, reason)
            return _failed(operation, code, reason)
        case Pending():
            return _asked_later(operation, NotNow("The provider is at it still."), terms, now, dice)
        case NotNow():
            return _asked_later(operation, said, terms, now, dice)


def _asked_later(
    operation: Operation, said: NotNow, terms: ProviderTerms, now: datetime, dice: Random
) -> Change:
    assert operation.submitted_at is not None
    if now >= operation.submitted_at + terms.results_live:
        return _lost(operation, OperationState.EXPIRED, now, said.code, f"No answer in time. {said.reason}")
    failures = operation.failures if said.for_all else operation.failures + 1
    if failures >= MAX_FAILURES:
        return _lost(operation, OperationState.FAILED, now, said.code, said.reason)
    pause = _pause(said.retry_after) if said.retry_after is not None else _poll_wait(operation, terms, dice)
    return Change(
        operation,
        OperationState.SUBMITTED,
        now + pause,
        operation.provider_id,
        code=said.code,
        reason=said.reason,
        losses=operation.losses,
        failures=failures,
    )


def _poll_wait(operation: Operation, terms: ProviderTerms, dice: Random) -> timedelta:
    """Half as long as the first wait, then growing; spread out, so that not all requests come at once."""
    wait = max(terms.first_poll / 2, _SHORTEST_POLL_WAIT) * 1.5 ** min(operation.polls, 20)
    return min(wait, max(_LONGEST_POLL_WAIT, terms.first_poll)) * dice.uniform(0.8, 1.2)


def after_reading(operation: Operation, page: SerpPage, results: int, now: datetime) -> Change:
    match page.verdict:
        case Verdict.RESULTS | Verdict.NOTHING:
            reason = "The answer ended in the middle; what came before was kept." if page.cut else page.reason
            return Change(
                operation,
                OperationState.DONE,
                results=results,
                code=page.code,
                reason=reason,
                losses=operation.losses,
            )
        case Verdict.AGAIN:
            return _lost(operation, OperationState.FAILED, now, page.code, page.reason)
        case Verdict.NEVER:
            return _failed(operation, page.code, page.reason)


def answer_is_elsewhere(operation: Operation, terms: ProviderTerms, now: datetime) -> Change:
    """The archive of this machine has no answer: fetched again while the provider keeps it."""
    assert operation.submitted_at is not None
    if now >= operation.submitted_at + terms.results_live:
        return _lost(operation, OperationState.EXPIRED, now, "", "Its answer is not in the archive.")
    reason = "Its answer is not in this machine's archive."
    return Change(
        operation,
        OperationState.SUBMITTED,
        now,
        operation.provider_id,
        reason=reason,
        losses=operation.losses,
        failures=operation.failures,
    )


def _lost(operation: Operation, end: OperationState, now: datetime, code: str, reason: str) -> Change:
    losses = operation.losses + 1
    if losses < MAX_LOSSES:
        return Change(operation, OperationState.QUEUED, now + _PAUSE, code=code, reason=reason, losses=losses)
    return Change(operation, end, code=code, reason=reason, losses=losses)


def _failed(operation: Operation, code: str, reason: str, *, refunded: bool = False) -> Change:
    return Change(
        operation,
        OperationState.FAILED,
        code=code,
        reason=reason,
        losses=operation.losses,
        refunded=refunded,
    )


def _pause(retry_after: float | None) -> timedelta:
    return _PAUSE if retry_after is None else timedelta(seconds=min(retry_after, 3600.0))
