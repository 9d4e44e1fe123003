"""sendonce prospect …: the pipeline from searches to letters."""

from __future__ import annotations

from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.prospecting.pipeline import StepName
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
    print_table(count_of(len(rows), "line"), _JOURNAL, rows, time_zone(settings))
