"""Questions before what cannot be undone: on a terminal only, so that no script waits for an answer."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sendonce.errors import SendonceError

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def may_ask(*, yes: bool, json: bool) -> bool:
    """Whether a person sits there: someone can read the question, and someone can answer it."""
    return not (yes or json) and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, otherwise: str) -> None:
    """Raises SendonceError, with the word on what did not happen, unless the answer is yes."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort as exc:  # Ctrl-C or Ctrl-D: the cursor still stands behind the question
        raise SendonceError(f"\n{otherwise}") from exc
    if not agreed:
        raise SendonceError(otherwise)
