"""sendonce workers …"""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.workers import WorkerStatus
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import RefusedByRule

group = typer.Typer(name="workers", help="Worker processes, here and elsewhere.", no_args_is_help=True)

COLUMNS = ["id", "name", "host", "pid", "transport", "started", "last seen", "sending", "state"]


@group.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Also the last hundred that are over.")] = False,
    json: JsonFlag = False,
) -> None:
    """Show the workers that the ledger knows of, on every machine."""
    settings = ready_settings()
    with opened_store(settings) as store:
        found = store.workers.statuses(ended=100 if all_ else 0)
        now = store.ledger.now()
    if json:
        print_json([_as_json(status) for status in found])
        return
    rows = [_row(status, now) for status in found]
    print_table(count_of(len(found), "worker"), COLUMNS, rows, time_zone(settings))


@group.command()
def bury(
    worker_id: Annotated[str, typer.Argument(help="The worker's id: 'sendonce workers list' shows it.")],
    certain: Annotated[
        bool, typer.Option("--i-know-it-is-dead", help="Your word that no process of it is left anywhere.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """End a worker whose death nobody can prove: its machine or its state directory is gone."""
    from sendonce.flows.engine.bury_by_word import bury_by_word
    from sendonce.wiring.mortality import mortality_of

    if not certain:
        raise RefusedByRule(
            "If a process of it still runs anywhere, its letters could be sent twice. When you are certain "
            "that none does, add --i-know-it-is-dead: what it had claimed is then in doubt."
        )
    settings = ready_settings()
    with opened_store(settings) as store:
        graveyard = mortality_of(settings, store)
        actor = getpass.getuser()
        doubted = bury_by_word(store, graveyard, worker_id, actor, settings.retry_base_seconds)
    if json:
        print_json({"id": worker_id, "in_doubt": doubted})
        return
    say(f"The worker is buried; {count_of(doubted, 'letter of it is', 'letters of it are')} in doubt.")
    if doubted:
        say("Events settle them where there are any; else 'sendonce jobs resolve' takes your word.")


def _as_json(status: WorkerStatus) -> dict[str, Any]:
    told = as_dict(status)
    return {**told.pop("record"), **told}


def _row(status: WorkerStatus, now: datetime) -> tuple[object, ...]:
    worker = status.record
    place = (worker.id, worker.name, worker.host, worker.pid, worker.transport)
    return (*place, worker.started_at, worker.seen_at, status.sending, _state(status, now))


def _state(status: WorkerStatus, now: datetime) -> str:
    if status.ended_at is not None:
        return status.end or "over"
    if status.record.is_at_work(now):
        return "at work"
    return "missing" if status.record.is_missing(now) else "silent"
