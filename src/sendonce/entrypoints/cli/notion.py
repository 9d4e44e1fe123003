"""sendonce notion …"""

from __future__ import annotations

from typing import Annotated

import typer

from sendonce.entrypoints.cli.context import ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, say

group = typer.Typer(name="notion", help="The tables in Notion.", no_args_is_help=True)


@group.command()
def setup(
    page: Annotated[str, typer.Argument(help="The page to put the tables on: its link or id.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only look, change nothing.")] = False,
    language: Annotated[str, typer.Option(help="Of new tables: ru or en.")] = "ru",
    json: JsonFlag = False,
) -> None:
    """Create or check the tables of letters and of errors."""
    from sendonce import wiring
    from sendonce.adapters.notion.setup import SetupWish, set_up

    settings = ready_settings()
    letters, errors = wiring.notion_names(settings)
    wish = SetupWish(
        parent=page,
        letters_id=settings.notion_letters_id,
        errors_id=settings.notion_errors_id,
        language=language,
        change=not check,
        letters=letters,
        errors=errors,
    )
    report = set_up(wiring.notion_client(settings), wish)
    if json:
        environment = report.environment()
        print_json({"tables": [as_dict(t) for t in report.tables], "environment": environment})
    else:
        for table in report.tables:
            added = f"added {', '.join(table.added)}" if table.added else "checked"
            say(f"«{table.title}»: {'created' if table.created else added}.")
            for problem in table.problems:
                say(f"  {problem}")
        for name, value in report.environment().items():
            say(f"{name}={value}")
    if not report.is_fine:
        raise typer.Exit(1)
