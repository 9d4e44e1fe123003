"""sendonce serve, worker, tick, settings, version."""

from __future__ import annotations

from typing import Annotated

import typer

from sendonce import __version__
from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say


def serve(
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Only HTTP; workers run elsewhere.")] = False,
) -> None:
    """Serve HTTP, with a worker beside it in the same process."""
    from sendonce.entrypoints.worker import run_service

    settings = ready_settings()
    with opened_store(settings, make=True) as store:
        run_service(settings, store, with_worker=not no_worker)


def worker(
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Leave when nothing is due.")] = False,
    name: Annotated[str, typer.Option(help="A name of its own; by default host and process id.")] = "",
) -> None:
    """Send what is due, plan what is started, bury dead workers, settle doubts."""
    from sendonce.entrypoints.worker import run_worker

    settings = ready_settings()
    with opened_store(settings, make=True) as store:
        run_worker(settings, store, name=name, until_idle=until_idle)


def tick(
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long to work at the most.")] = 50.0,
    json: JsonFlag = False,
) -> None:
    """Do due work for a bounded time, then leave: for cron."""
    from sendonce.entrypoints.worker import run_tick

    settings = ready_settings(quiet=json)
    with opened_store(settings, make=True) as store:
        settled = run_tick(settings, store, seconds)
    if json:
        print_json({"settled": settled})
    else:
        say(f"{count_of(settled, 'letter')} settled.")


def settings(json: JsonFlag = False) -> None:
    """Show the settings in force and where each comes from; secrets are masked."""
    views = ready_settings().describe()
    if json:
        print_json({view.name: {"value": view.value_shown, "source": view.source} for view in views})
        return
    rows = [(view.name, view.value_shown, view.source, view.group) for view in views]
    print_table("Settings", ["variable", "value", "from", "for"], rows)


def version(json: JsonFlag = False) -> None:
    """Show the version, and which schema it needs of its database."""
    from sendonce.wiring.stores import own_schema

    schema = own_schema()
    if json:
        print_json({"version": __version__, "schema": schema})
    else:
        say(f"sendonce {__version__}, schema {schema}")


def print_version(asked: bool) -> None:
    """--version, as every program has it."""
    if asked:
        say(f"sendonce {__version__}")
        raise typer.Exit
