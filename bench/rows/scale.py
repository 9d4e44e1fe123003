"""A mailout to a million: memory of the worker that plans and sends it, and whether it slows down."""

from __future__ import annotations

from collections.abc import Sequence

from bench import engine, letters
from bench.engine import Sent
from bench.findings import Finding
from bench.sinks import Count
from bench.stage import Stage

ROWS = ("scale",)


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    if not stage.has_smtp:
        return []
    small, large = 10_000, stage.size(1_000_000, 40_000)
    before, after = stage.size(2, 1), stage.size(1, 0)
    few = [_mailout(stage, f"few-{number}", small) for number in range(before)]
    many = _mailout(stage, "many", large)
    few += [_mailout(stage, f"few-again-{number}", small) for number in range(after)]
    usual = sorted(each.rate for each in few)[len(few) // 2]
    stage.say(f"  {small:,}: {usual:,.0f}/s; {large:,}: {many.rate:,.0f}/s, {many.peak_mb:.0f} MB")
    figures = {"small per s": usual, "large per s": many.rate}
    return [
        Finding(
            "scale",
            f"memory, plan and send to {large:,}",
            "resident at its peak",
            many.peak_mb,
            "MB",
            200.0,
            at_most=True,
            figures=figures,
        ),
        Finding(
            "scale", f"speed at {large:,} recipients", f"at {small:,}", many.rate / usual, figures=figures
        ),
    ]


def _mailout(stage: Stage, name: str, count: int) -> Sent:
    """One worker process plans and sends it."""
    people = letters.write_people(stage.folder / f"{name}.csv", count)
    installation = engine.on_sqlite(stage.folder, name, engine.smtp_settings(stage.smtp.port))
    installation.make_ready(people)
    people.unlink()
    mailout_id = installation.start_mailout()
    counted = Count(stage.smtp)
    sent = installation.send(mailout_id, count)
    counted.check(count, "sendonce")
    (installation.folder / "ledger.db").unlink()
    return sent
