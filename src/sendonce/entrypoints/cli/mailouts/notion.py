"""sendonce notion …"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from sendonce.entrypoints.cli.context import ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, say
from sendonce.errors import RefusedByRule, Unavailable

group = typer.Typer(name="notion", help="The tables and the webhook in Notion.", no_args_is_help=True)


@group.command()
def setup(
    page: Annotated[str, typer.Argument(help="The page to put the tables on: its link or id.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only look, change nothing.")] = False,
    language: Annotated[str, typer.Option(help="Of new tables: ru or en.")] = "ru",
    json: JsonFlag = False,
) -> None:
    """Create or check the tables of letters and of errors."""
    from sendonce.wiring.notion import set_up_notion

    report = set_up_notion(ready_settings(), page, language, change=not check)
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


@group.command("await-webhook")
def await_webhook(
    minutes: Annotated[float, typer.Option(min=0.01, max=1440, help="How long to wait.")] = 15.0,
    json: JsonFlag = False,
) -> None:
    """Take the verification token of a new webhook: start this, then create the webhook in Notion.

    'sendonce serve' must be running with the same STATE_DIR. The token is shown here and nowhere else.
    """
    from sendonce.wiring.notion_inbox import handshake_window

    settings = ready_settings()
    if settings.notion_webhook_token:
        raise RefusedByRule(
            "NOTION_WEBHOOK_TOKEN is set: take it out and restart 'sendonce serve' to get another."
        )
    window = handshake_window(settings)
    window.open(minutes * 60)
    if not json:
        say(f"Waiting. In Notion add the webhook {settings.app_base_url}/webhooks/notion")
    try:
        token = _wait_for_token(window.token, minutes * 60)
    finally:
        window.close()
    if json:
        print_json({"NOTION_WEBHOOK_TOKEN": token})
    else:
        say("Paste it into Notion (Verify), put this line into .env and restart 'sendonce serve':")
        say(f"NOTION_WEBHOOK_TOKEN={token}")


def _wait_for_token(look: Callable[[], str | None], seconds: float) -> str:
    ends = time.monotonic() + seconds
    while (token := look()) is None:
        if time.monotonic() > ends:
            raise Unavailable("No token came. Can Notion reach the address, and is 'sendonce serve' running?")
        time.sleep(0.2)
    return token
