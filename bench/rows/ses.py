"""The SES API: one durable process against boto3 with 8 threads and no books, at the same sink."""

from __future__ import annotations

from collections.abc import Sequence

from bench import engine, letters, peers
from bench.findings import Finding, ratio_finding
from bench.processes import BenchFailed
from bench.stage import Stage

ROWS = ("ses",)
THREADS = 8


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    count, theirs_count, rounds = stage.size(20_000, 6_000), stage.size(2_500, 1_000), stage.size(4, 2)
    people = letters.write_people(stage.folder / "ses-people.csv", count)
    message = stage.folder / "ses-message.eml"
    message.write_bytes(letters.one_message())
    installation = engine.on_sqlite(stage.folder, "ses", engine.ses_settings(stage.ses.url))
    installation.make_ready(people)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        mailout_id = installation.plan_mailout()
        stage.ses.forget()
        ours.append(installation.send(mailout_id, count).rate)
        _check(stage, count, "sendonce")
        stage.ses.forget()
        theirs.append(peers.boto3_threads(stage.ses.url, theirs_count, THREADS, message).rate)
        _check(stage, theirs_count, "boto3")
        stage.say(f"  sendonce {ours[-1]:,.0f}, boto3 {theirs[-1]:,.0f} letters/s")
    against = f"boto3, {THREADS} threads, no books"
    return [ratio_finding("ses", "SES API, durable, SQLite", against, ours, theirs, bar=9.0)]


def _check(stage: Stage, expected: int, who: str) -> None:
    tally = stage.ses.tally()
    if tally != {"received": expected, "distinct": expected}:
        raise BenchFailed(f"{who} should have sent {expected} letters; the sink has {tally}")
