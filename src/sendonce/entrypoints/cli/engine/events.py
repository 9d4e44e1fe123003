"""sendonce events …"""

from __future__ import annotations

from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.events import UnreadableEvent
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table

group = typer.Typer(name="events", help="Delivery events: what the provider told.", no_args_is_help=True)

_SHOWN_CHARACTERS = 500


@group.command("list")
def list_(
    job: Annotated[str | None, typer.Option(help="Only those of this job.")] = None,
    unreadable: Annotated[
        bool, typer.Option("--unreadable", help="Genuine messages that could not be read, word for word.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many at the most.")] = 100,
    json: JsonFlag = False,
) -> None:
    """Show delivery events, the newest first."""
    if unreadable:
        _list_unreadable(limit, json)
        return
    settings = ready_settings()
    with opened_store(settings) as store:
        events = store.events.all(job_id=job, limit=limit)
    if json:
        print_json([as_dict(event) for event in events])
        return
    columns = ["when", "kind", "recipient", "job", "attempt", "reason"]
    rows = [
        (e.occurred_at, e.kind, ", ".join(e.recipients), e.job_id, e.attempt, e.reason or e.code)
        for e in events
    ]
    print_table(count_of(len(rows), "event"), columns, rows, time_zone(settings))


def _list_unreadable(limit: int, json: bool) -> None:
    settings = ready_settings()
    with opened_store(settings) as store:
        events = store.events.unreadable(limit)
    if json:
        print_json([{**as_dict(event), "raw": _text(event)} for event in events])
        return
    rows = [(e.received_at, e.source, e.why, _text(e)[:_SHOWN_CHARACTERS]) for e in events]
    title, columns = count_of(len(rows), "unreadable event"), ["when", "source", "why", "message"]
    print_table(title, columns, rows, time_zone(settings))


def _text(event: UnreadableEvent) -> str:
    return event.raw.decode("utf-8", "backslashreplace")
