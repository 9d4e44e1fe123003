"""sendonce letters …"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sendonce.entrypoints.cli.context import ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput

group = typer.Typer(
    name="letters", help="Letters to companies: written, reviewed, sent.", no_args_is_help=True
)


@group.command()
def write(
    brief: Annotated[
        Path, typer.Option("--brief", help="A JSON file with company, offer, contact and pages; - is stdin.")
    ],
    language: Annotated[str, typer.Option(help="ru or en; else the brief's own, or that of its offer.")] = "",
    json: JsonFlag = False,
) -> None:
    """Write the letter of one brief, and show the checks that it passed. Stores and sends nothing."""
    from sendonce.domain.prospecting.briefs import read_brief
    from sendonce.domain.prospecting.letter_templates import opt_out_line, with_notices
    from sendonce.flows.prospecting.write_letter import write_letter
    from sendonce.wiring.written_letters import letter_model

    given = read_brief(_json_of(brief), language)
    settings = ready_settings(quiet=True)
    written = write_letter(given, letter_model(settings), settings.letters_nightly_budget)
    text = with_notices(written.text, [opt_out_line(written.language)])
    if json:
        letter = {**as_dict(written), "text": text, "to": given.contact.email or None}
        print_json({**letter, "left_out": list(given.company.dropped), "brief_hash": given.hash})
        return
    say(f"Subject: {written.subject}\n\n{text}\n")
    say("By the model." if written.by == "llm" else "By the template" + _because(written.refused))
    rows = [(check.name, "ok" if check.ok else "failed", ", ".join(check.found)) for check in written.checks]
    print_table("Checks", ["check", "result", "found"], rows)


def _because(refused: str) -> str:
    return f": {refused}." if refused else "."


def _json_of(file: Path) -> dict[str, Any]:
    from sendonce.domain.engine.strict_json import strict_object

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
    return strict_object(data.removeprefix(b"\xef\xbb\xbf"), f"The brief {file}")
