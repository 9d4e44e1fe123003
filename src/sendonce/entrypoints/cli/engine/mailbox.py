"""sendonce mailbox …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table
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
    columns = ["file", "kind", "recipient", "bounce", "code", "reason"]
    print_table(count_of(len(found), "message"), columns, [list(each.values()) for each in found])


def _beginning_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES_READ)
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
