"""sendonce sender …"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.senders import SenderHold, read_key
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say

if TYPE_CHECKING:
    from sendonce.settings import Settings

group = typer.Typer(
    name="sender", help="Who letters leave from, and whether the provider refuses it.", no_args_is_help=True
)


@group.command("list")
def list_(json: JsonFlag = False) -> None:
    """Show the sender of this installation and every sender that is held, with the reason."""
    settings = ready_settings()
    with opened_store(settings) as store:
        holds = {hold.key: hold for hold in store.sender_holds.all()}
    own = own_key(settings)
    shown = [_view(key, holds.get(key), own=key == own) for key in sorted({own, *holds})]
    if json:
        print_json(shown)
        return
    columns = ("address", "transport", "state", "reason", "held_at", "next_try_at", "key")
    titles = ["address", "transport", "state", "reason", "since", "next try", "key"]
    rows = [[each[name] for name in columns] for each in shown]
    print_table("Senders", titles, rows, time_zone(settings))


@group.command()
def release(
    key: Annotated[str | None, typer.Argument(help="Its key; without one, this installation's.")] = None,
    json: JsonFlag = False,
) -> None:
    """Let a held sender go: its letters are sent again at once. Mend the cause first."""
    from sendonce.flows.engine.release_sender import release_sender

    settings = ready_settings()
    wanted = key or own_key(settings)
    with opened_store(settings) as store:
        hold = release_sender(store.sender_holds, wanted, getpass.getuser())
    if json:
        print_json({"released": wanted, "code": hold.code, "reason": hold.reason})
    else:
        say(f"Released {wanted}. It was held because: {hold.reason}")
        say("A worker that is at work goes on at once. If the provider refuses again, it is held again.")


def own_key(settings: Settings) -> str:
    """The sender that this environment sends from."""
    from sendonce.wiring.transports import sender_key

    return str(sender_key(settings))


def _view(key: str, hold: SenderHold | None, *, own: bool) -> dict[str, Any]:
    parts = read_key(key)
    return {
        "key": key,
        "address": parts.address,
        "transport": parts.transport,
        "account": parts.account,
        "own": own,
        "state": "held" if hold else "ok",
        "code": hold.code if hold else None,
        "reason": hold.reason if hold else None,
        "held_at": hold.held_at if hold else None,
        "next_try_at": hold.next_try_at if hold else None,
        "tries": hold.tries if hold else 0,
    }
