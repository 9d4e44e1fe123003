"""sendonce mailbox …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput

group = typer.Typer(
    name="mailbox", help="What came back into the sending mailbox: bounces, replies.", no_args_is_help=True
)

_MOST_BYTES_READ = 2_000_000


@group.command()
def classify(
    files: Annotated[list[Path], typer.Argument(help="Saved messages (.eml).")], json: JsonFlag = False
) -> None:
    """Show what saved messages are, and whether a bounce is the address's fault. Changes nothing."""
    from sendonce.flows.engine.classify_mail import classify_mail

    found = [{"file": str(file), **as_dict(classify_mail(_beginning_of(file)))} for file in files]
    if json:
        print_json(found)
        return
    columns = ["file", "kind", "recipient", "bounce", "code", "reason", "cause"]
    print_table(count_of(len(found), "message"), columns, [list(each.values()) for each in found])


@group.command()
def read(json: JsonFlag = False) -> None:
    """Read the mailbox now, as a worker does by itself: bounces and wishes to unsubscribe take effect."""
    from sendonce.wiring.mailbox import read_mailboxes

    settings = ready_settings(quiet=json)
    with opened_store(settings) as store:
        readings = read_mailboxes(settings, store)
    if json:
        print_json(
            [
                {
                    "mailbox": name,
                    "messages": it.messages,
                    "ours": it.ours,
                    "kinds": dict(it.kinds),
                    "read_elsewhere": it.elsewhere,
                }
                for name, it in readings.items()
            ]
        )
        return
    for name, it in readings.items():
        if it.elsewhere:
            say(f"{name}: another process is reading it now.")
            continue
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(it.kinds.items()))
        about = f": {kinds}; {it.ours} about letters of ours" if it.messages else ""
        say(f"{name}: {count_of(it.messages, 'new message')}{about}.")


@group.command("list")
def list_(
    job: Annotated[str | None, typer.Option(help="Only what is about this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many at the most.")] = 100,
    json: JsonFlag = False,
) -> None:
    """Show what was found in the mailbox, the newest first."""
    settings = ready_settings()
    with opened_store(settings) as store:
        found = store.mailbox_log.all(job_id=job, limit=limit)
    if json:
        print_json([as_dict(mail) for mail in found])
        return
    columns = ["found", "kind", "who", "bounce", "job", "reason"]
    rows = [(m.found_at, m.kind, m.recipient or m.sender, m.bounce, m.job_id, m.reason) for m in found]
    print_table(count_of(len(rows), "message"), columns, rows, time_zone(settings))


def _beginning_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES_READ)
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
