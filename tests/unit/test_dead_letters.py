"""Which cause a dead letter has, by what the server said last."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sendonce.domain.engine.dead_letters import ADVICE, DeadCause, cause_of
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.engine.tenants import DispatchId, TenantId


def dead(code: str | None, reason: str | None) -> Job:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    ids = "1", TenantId("t"), DispatchId("d")
    return Job(*ids, "a@b.co", JobState.DEAD, 5, 5, moment, reason, code)


@pytest.mark.parametrize(
    ("code", "reason", "cause"),
    [
        ("452", "4.2.2 The email account that you tried to reach is over quota", "full"),
        ("450", "4.7.1 Greylisted, please come back in 5 minutes", "too-fast"),
        ("421", "4.7.28 Our system has detected an unusual rate of mail", "too-fast"),
        ("ThrottlingException", "ThrottlingException: Maximum sending rate exceeded.", "too-fast"),
        ("450", "4.1.1 <a@b.co>: Recipient address rejected: User unknown", "no-mailbox"),
        ("450", "4.1.2 <a@b.co>: Recipient address rejected: Domain not found", "no-domain"),
        ("421", "4.7.0 Blocked by Spamhaus", "filtered"),
        ("connect_failed", "no connection to SES: timed out", "unreached"),
        ("no_credentials", "no AWS credentials were found", "sender"),
        ("421", "not now", "unknown"),
        (None, None, "unknown"),
    ],
)
def test_what_was_said_last_is_the_cause(code: str | None, reason: str | None, cause: str) -> None:
    assert cause_of(dead(code, reason)) == cause


def test_every_cause_has_an_advice() -> None:
    assert ADVICE.keys() == set(DeadCause)
