"""sendonce db …"""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from sendonce.domain.mailouts import RESTORED
from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say

group = typer.Typer(
    name="db", help="The database: its schema, and taking a restored one into use.", no_args_is_help=True
)


@group.command()
def upgrade(json: JsonFlag = False) -> None:
    """Bring the database to this program's schema."""
    from sendonce.adapters.stores.schema import HEAD
    from sendonce.adapters.stores.sql.database import Database
    from sendonce.adapters.stores.sql.store import upgrade_schema

    settings = ready_settings()
    database = Database(settings.database_url)
    try:
        before = upgrade_schema(database)
    finally:
        database.close()
    if json:
        print_json({"from": before, "to": HEAD})
    elif before == HEAD:
        say(f"The schema is up to date ({HEAD}).")
    else:
        say(f"The schema went from {before or 'nothing'} to {HEAD}.")


@group.command()
def adopt(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonFlag = False,
) -> None:
    """Take a restored or copied database into use.

    What is scheduled or sending in started mailouts may have been sent from the other copy: it becomes
    in doubt, and 'sendonce jobs resolve' or the provider's events settle it.
    """
    from sendonce import wiring

    settings = ready_settings()
    with opened_store(settings) as store:
        if not yes:
            typer.confirm(
                "Stop every other copy of this database first. Is this the only one in use?", abort=True
            )
        highest = wiring.state_directory(settings, store).highest_claim()
        doubted = store.ledger.adopt(store.fingerprint(), highest, getpass.getuser())
        unsure = [m for m in store.mailouts.all() if m.paused and m.reason == RESTORED]
    if json:
        print_json({"in_doubt": doubted, "paused": [mailout.id for mailout in unsure]})
        return
    say(f"Adopted. {doubted} jobs are now in doubt: 'sendonce jobs in-doubt' lists them.")
    for mailout in unsure:
        say(f"Mailout {mailout.id} «{mailout.name}» is paused: it may have been sent from the other copy.")
    if unsure:
        say("Only if you know that it was not: sendonce mailout resume ID --not-sent-elsewhere")
