"""SMTP to one smtp-sink: the engine with its books on SQLite and PostgreSQL, and without; and its peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from statistics import median

from bench import engine, letters, peers
from bench.engine import Installation
from bench.findings import Finding, ratio_finding
from bench.peers import Pass
from bench.processes import run_module
from bench.sinks import Count
from bench.stage import Stage

ROWS = ("smtp-sqlite", "smtp-postgres", "ledger-tax")
SOURCE = "smtp-source -s 16 -d"
NODEMAILER = "nodemailer pool of 16"
SQLITE, POSTGRES = "sendonce on SQLite", "sendonce on PostgreSQL"
LARGE_GROUPS = "sendonce on SQLite, BATCH_SIZE=200"
WITHOUT = "sendonce without books"
# Who has to run for which row.
_RESTS_ON = {
    SQLITE: ("smtp-sqlite", "ledger-tax"),
    POSTGRES: ("smtp-postgres",),
    WITHOUT: ("ledger-tax",),
    SOURCE: ("smtp-sqlite", "smtp-postgres"),
}

Runner = Callable[[], Pass]


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:
    if not stage.has_smtp:
        return []
    count, rounds = stage.size(24_000, 8_000), stage.size(5, 2)
    runners = {**_engines(stage, wanted, count), **_peers(stage, count)}
    passes: dict[str, list[Pass]] = {name: [] for name in runners}
    for number in range(rounds):
        # Each round begins with another, so that nobody always runs after the same neighbour.
        names = list(passes)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            try:
                passes[name].append(runners[name]())
            except Exception as exc:  # noqa: BLE001 (whatever it was, the others go on)
                stage.failed |= {row: f"{name}: {exc}" for row in _RESTS_ON.get(name, ()) if row in wanted}
                del passes[name]
                continue
            stage.say(f"  round {number + 1}: {name}: {passes[name][-1].rate:,.0f} letters/s")
    return _findings(passes)


def _engines(stage: Stage, wanted: Sequence[str], count: int) -> dict[str, Runner]:
    people = letters.write_people(stage.folder / "smtp-people.csv", count)
    settings = engine.smtp_settings(stage.smtp.port)
    runners: dict[str, Runner] = {}

    @cache
    def on_sqlite() -> Installation:
        installation = engine.on_sqlite(stage.folder, "smtp-sqlite", settings)
        installation.make_ready(people)
        return installation

    @cache
    def on_postgres() -> Installation:
        installation = engine.on_postgres(stage.folder, "smtp-postgres", settings, stage.postgres)
        installation.make_ready(people)
        return installation

    if "smtp-sqlite" in wanted or "ledger-tax" in wanted:
        runners[SQLITE] = lambda: _with_books(stage, on_sqlite(), count)
    if "smtp-sqlite" in wanted:
        large = {**settings, "BATCH_SIZE": "200"}
        runners[LARGE_GROUPS] = lambda: _with_books(stage, replace(on_sqlite(), settings=large), count)
    if "smtp-postgres" in wanted:
        runners[POSTGRES] = lambda: _with_books(stage, on_postgres(), count)
    if "ledger-tax" in wanted:
        runners[WITHOUT] = lambda: _without_books(stage, count)
    return runners


def _peers(stage: Stage, count: int) -> dict[str, Runner]:
    def runner(peer: peers.Peer) -> Runner:
        return lambda: peer.send(stage.smtp, int(count * peer.pace))

    return {peer.name: runner(peer) for peer in peers.smtp_peers(stage.folder, stage.missing)}


def _with_books(stage: Stage, installation: Installation, count: int) -> Pass:
    mailout_id = installation.plan_mailout()
    counted = Count(stage.smtp)
    sent = installation.send(mailout_id, count)
    counted.check(count, "sendonce")
    return Pass(sent.letters, sent.seconds, sent.cpu)


def _without_books(stage: Stage, count: int) -> Pass:
    counted = Count(stage.smtp)
    done = run_module("bench.no_books", str(stage.smtp.port), str(count))
    counted.check(count, "sendonce without books")
    return peers.as_pass(done)


def _findings(passes: dict[str, list[Pass]]) -> list[Finding]:
    rates = {name: [each.rate for each in several] for name, several in passes.items()}
    cpu = {
        f"{name}: client CPU µs per letter, its start included": round(
            median([1e6 * each.cpu / each.letters for each in several])
        )
        for name, several in passes.items()
    }
    found: list[Finding] = []

    def compare(row: str, what: str, ours: str, theirs: str, bar: float | None) -> None:
        if ours in rates and theirs in rates:
            figures = {} if found else cpu  # told once: they are of the whole run
            found.append(
                ratio_finding(row, what, theirs, rates[ours], rates[theirs], bar=bar, figures=figures)
            )

    durable = "SMTP, durable, SQLite"
    compare("smtp-sqlite", durable, SQLITE, SOURCE, 1.15)
    compare("smtp-sqlite", f"{durable}, BATCH_SIZE=200", LARGE_GROUPS, SOURCE, None)
    compare("smtp-sqlite", durable, SQLITE, NODEMAILER, 13.0)
    compare("smtp-sqlite", durable, SQLITE, "smtplib + email.message", None)
    compare("smtp-sqlite", durable, SQLITE, "aiosmtplib, 16 connections", None)
    compare("smtp-postgres", "SMTP, durable, PostgreSQL", POSTGRES, SOURCE, 0.85)
    compare("ledger-tax", "what the ledger leaves of the speed", SQLITE, WITHOUT, 0.8)
    compare("ledger-tax", "the same engine without books", WITHOUT, SOURCE, None)
    return found
