"""sendonce doctor: the checks before a send."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Annotated, Any

import typer

from sendonce.domain.engine.checks import Check, Verdict, may_send, stop
from sendonce.entrypoints.cli.context import ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, say
from sendonce.errors import BadSetting, RefusedByRule

_COLOURS = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.STOP: "bold red"}


def doctor(
    mailout: Annotated[str, typer.Option(help="Look at this mailout's letter and audience too.")] = "",
    json: JsonFlag = False,
) -> None:
    """Look whether letters could be sent now, and would arrive. Sends nothing."""
    checks = _examine(mailout or None)
    if json:
        print_json(_as_json(checks))
    else:
        _print(checks)
    if not may_send(checks):
        sys.exit(RefusedByRule.exit_code)


def _examine(mailout_id: str | None) -> list[Check]:
    try:
        settings = ready_settings(quiet=True)
    except BadSetting as exc:
        fix = "Correct it in .env or in the environment, and run doctor again."
        return [stop("settings.values", line, fix) for line in str(exc).splitlines()]
    from sendonce.wiring.doctor import run_doctor

    return asyncio.run(run_doctor(settings, mailout_id))


def _as_json(checks: list[Check]) -> dict[str, Any]:
    return {"may_send": may_send(checks), "checks": [as_dict(check) for check in checks]}


def _print(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for check in checks:
        coloured = Text(f"{check.verdict:<8}", style=_COLOURS[check.verdict])
        console.print(coloured, Text(_printable(f"{check.name}: {check.what}")))
        if check.fix:
            console.print(Text(_printable(f"         → {check.fix}")))
    counts = Counter(check.verdict for check in checks)
    stops, warnings = counts[Verdict.STOP], counts[Verdict.WARNING]
    verdict = "Do not send yet" if stops else "Nothing stands in the way"
    say(f"{verdict}: {stops} stop, {warnings} warning, {counts[Verdict.OK]} ok.")


def _printable(text: str) -> str:
    """Names come from outside: a control character must not reach the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
