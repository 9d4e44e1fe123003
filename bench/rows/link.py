"""SMTP over a link of 20 ms, on one connection: round trips a letter, not CPU, decide here."""

from __future__ import annotations

from collections.abc import Sequence

from bench import engine, letters, peers
from bench.findings import Finding, ratio_finding
from bench.sinks import Count, slow_link
from bench.stage import Stage

ROWS = ("link",)
ROUND_TRIP = 0.020


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    if not stage.has_smtp:
        return []
    count, theirs_count, rounds = stage.size(400, 150), stage.size(100, 30), stage.size(2, 1)
    people = letters.write_people(stage.folder / "link-people.csv", count)
    letter = letters.write_for_peers(stage.folder / "link-letter.json")
    ours: list[float] = []
    theirs: list[float] = []
    with slow_link(stage.folder, stage.smtp.port, ROUND_TRIP) as port:
        settings = {**engine.smtp_settings(port), "CONCURRENCY": "1"}
        installation = engine.on_sqlite(stage.folder, "link", settings)
        installation.make_ready(people)
        for _ in range(rounds):
            mailout_id = installation.plan_mailout()
            counted = Count(stage.smtp)
            ours.append(installation.send(mailout_id, count).rate)
            counted.check(count, "sendonce over the link")
            counted = Count(stage.smtp)
            theirs.append(peers.smtplib_over(port, theirs_count, letter).rate)
            counted.check(theirs_count, "smtplib over the link")
            stage.say(f"  sendonce {ours[-1]:.1f}, smtplib {theirs[-1]:.1f} letters/s on one connection")
    what = "over a link of 20 ms, each connection"
    return [ratio_finding("link", what, "smtplib", ours, theirs, bar=3.5)]
