"""One to four workers on one PostgreSQL, against a provider that takes 20 ms to answer."""

from __future__ import annotations

from collections.abc import Sequence

from bench import engine, letters
from bench.findings import Finding, ratio_finding
from bench.processes import BenchFailed
from bench.sinks import ses_sink
from bench.stage import Stage

ROWS = ("workers",)
LATENCY = 0.020
CONNECTIONS = 8


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    count = stage.size(4_000, 1_200)
    people = letters.write_people(stage.folder / "workers-people.csv", count)
    rates: dict[int, list[float]] = {1: [], 2: [], 4: []}
    with ses_sink(stage.folder, LATENCY) as sink:
        settings = {**engine.ses_settings(sink.url), "CONCURRENCY": str(CONNECTIONS)}
        installation = engine.on_postgres(stage.folder, "workers", settings, stage.postgres)
        installation.make_ready(people)
        for _ in range(stage.size(2, 1)):
            for workers in rates:
                mailout_id = installation.plan_mailout()
                sink.forget()
                rates[workers].append(installation.send(mailout_id, count, workers).rate)
                if (tally := sink.tally()) != {"received": count, "distinct": count}:
                    raise BenchFailed(
                        f"{workers} workers should have sent {count} letters, the sink has {tally}"
                    )
    stage.say("  " + ", ".join(f"{workers}: {several[-1]:,.0f}/s" for workers, several in rates.items()))
    return [
        ratio_finding("workers", f"{workers} workers, 20 ms a letter", "1 worker", rates[workers], rates[1])
        for workers in (2, 4)
    ]
