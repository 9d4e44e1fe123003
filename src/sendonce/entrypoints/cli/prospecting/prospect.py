"""sendonce prospect …: the pipeline from searches to letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.prospecting.pipeline import JournalLine, Manner, Role, StepName, is_broken, steps_wanted
from sendonce.entrypoints.cli.context import check_outputs, opened_prospects, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say_error
from sendonce.entrypoints.cli.prospecting.companies import OutputOption
from sendonce.errors import BadInput

group = typer.Typer(name="prospect", help="The pipeline from searches to letters.", no_args_is_help=True)

_JOURNAL = ("at", "step", "worker", "taken", "done", "failed", "seconds", "note")


@group.command()
def journal(
    step: Annotated[StepName | None, typer.Option(help="Only the lines of this step.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000)] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="As CSV, on stdout or into the file of -o.")] = False,
    output: OutputOption = None,
    json: JsonFlag = False,
) -> None:
    """Show what each cycle of each step did, the newest first."""
    from sendonce.wiring.files import csv_table

    if json and (csv or output):
        raise BadInput("--json writes JSON to stdout: leave out --csv and -o.")
    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    with opened_prospects(settings) as store:
        lines = store.pipeline_journal.lines(step=step, limit=limit)
    if json:
        print_json([as_dict(line) for line in lines])
        return
    rows = [[getattr(line, column) for column in _JOURNAL] for line in lines]
    if csv or output:
        with csv_table(output, _JOURNAL, even_if_empty=True) as table:
            for row in rows:
                table.write(row)
        if output:
            say_error(f"{count_of(len(rows), 'line is', 'lines are')} in {output}.")
        return
    _print_lines(lines, time_zone(settings))


@group.command()
def run(
    once: Annotated[bool, typer.Option("--once", help="One cycle of each step: the default.")] = False,
    loop: Annotated[bool, typer.Option("--loop", help="Cycles until a signal ends it.")] = False,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Cycles until nothing is due.")] = False,
    only: Annotated[list[StepName] | None, typer.Option(help="Only this step. May be given again.")] = None,
    role: Annotated[Role | None, typer.Option(help="Only the steps of this role.")] = None,
    name: Annotated[str, typer.Option(help="A name of its own; by default host and process id.")] = "",
    json: JsonFlag = False,
) -> None:
    """Search, visit, merge, write, plan: each step does what is due. 'sendonce worker' sends the letters."""
    from sendonce.entrypoints.pipeline import run_pipeline

    if once + loop + until_idle > 1:
        raise BadInput("Give one of --once, --loop and --until-idle.")
    manner = Manner.LOOP if loop else Manner.UNTIL_IDLE if until_idle else Manner.ONCE
    settings = ready_settings(quiet=not loop)
    with opened_prospects(settings, make=True) as store:
        lines = run_pipeline(settings, store, manner, steps_wanted(only or (), role), name)
    if json:
        print_json([as_dict(line) for line in lines])
    elif not loop:
        _print_lines(lines, time_zone(settings))
    if any(map(is_broken, lines)):
        raise typer.Exit(1)


def _print_lines(lines: Sequence[JournalLine], zone: tzinfo) -> None:
    rows = [[getattr(line, column) for column in _JOURNAL] for line in lines]
    print_table(count_of(len(rows), "line"), _JOURNAL, rows, zone)
