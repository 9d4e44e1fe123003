"""sendonce db …"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say

if TYPE_CHECKING:
    from sendonce.ports.store import Store

group = typer.Typer(
    name="db",
    help="The database: its schema, its keys, and taking a restored one into use.",
    no_args_is_help=True,
)


@group.command()
def upgrade(json: JsonFlag = False) -> None:
    """Bring the database to this program's schema."""
    from sendonce.wiring.stores import upgrade_database

    before, after = upgrade_database(ready_settings())
    if json:
        print_json({"from": before, "to": after})
    elif before == after:
        say(f"The schema is up to date ({after}).")
    else:
        say(f"The schema went from {before or 'nothing'} to {after}.")


@group.command()
def adopt(
    nothing_was_lost: Annotated[
        bool,
        typer.Option(
            "--nothing-was-lost",
            help="You know that this database has every commit of the former one, as after a clean switch to "
            "a synchronous standby: nothing is put in doubt.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonFlag = False,
) -> None:
    """Take a restored, copied or promoted database into use.

    What is scheduled or sending in started mailouts may have been sent from the other copy: it becomes
    in doubt, and 'sendonce jobs resolve' or the provider's events settle it. Letters that had failed may have
    been retried there: 'sendonce jobs retry' sends them again only with --not-sent-elsewhere.
    """
    from sendonce.flows.mailouts.adopt import adopt as adopt_database
    from sendonce.wiring.mortality import mortality_of

    settings = ready_settings()
    with opened_store(settings) as store:
        if not yes:
            typer.confirm(
                "Stop every other copy of this database first. Is this the only one in use?", abort=True
            )
        if nothing_was_lost:
            _vouch(store, yes=yes, json=json)
            return
        highest = mortality_of(settings, store).highest_claim()
        adopted = adopt_database(store, highest, getpass.getuser())
    if json:
        print_json({"in_doubt": adopted.in_doubt, "paused": [mailout.id for mailout in adopted.paused]})
        return
    in_doubt = count_of(adopted.in_doubt, "job is", "jobs are")
    say(f"Adopted. {in_doubt} now in doubt: 'sendonce jobs in-doubt' lists them.")
    for mailout in adopted.paused:
        say(f"Mailout {mailout.id} «{mailout.name}» is paused: it may have been sent from the other copy.")
    if adopted.paused:
        say("Only if you know that it was not: sendonce mailout resume ID --not-sent-elsewhere")


def _vouch(store: Store, *, yes: bool, json: bool) -> None:
    from sendonce.flows.mailouts.adopt import adopt_without_loss

    if not yes:
        typer.confirm(
            "A commit that was lost is a letter sent twice. Do you know that nothing was lost?", abort=True
        )
    adopt_without_loss(store, getpass.getuser())
    if json:
        print_json({"in_doubt": 0, "paused": [], "nothing_was_lost": True})
    else:
        say("Adopted on your word that nothing was lost, which is in the audit log. Nothing is in doubt.")


@group.command("rotate-keys")
def rotate_keys(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonFlag = False,
) -> None:
    """Put the hashes of suppressed addresses under a new key; erased people stay suppressed.

    Everything that writes waits meanwhile, some seconds for each million of letters.
    """
    from sendonce.flows.people.rotate_keys import rotate_keys as rotate

    with opened_store(ready_settings()) as store:
        if not yes:
            typer.confirm("Others who write to this database wait meanwhile. Rotate now?", abort=True)
        count = rotate(store.keys, getpass.getuser())
    if json:
        print_json({"suppressions": count})
    else:
        say(f"Rotated: {count_of(count, 'suppression is', 'suppressions are')} under a new key and in force.")


@group.command("forget-key")
def forget_key(
    fingerprint: Annotated[str, typer.Argument(help="As doctor shows it.")], json: JsonFlag = False
) -> None:
    """Stop asking after a former UNSUBSCRIBE_SECRET that is lost for good: the links it signed are dead."""
    from sendonce.flows.people.rotate_keys import forget_key as forget

    with opened_store(ready_settings()) as store:
        forget(store.keys, fingerprint, getpass.getuser())
    if json:
        print_json({"forgotten": fingerprint})
    else:
        say(f"Forgotten: {fingerprint}. Who unsubscribes by its links has to be suppressed by hand.")
