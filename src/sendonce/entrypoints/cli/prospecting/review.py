"""Reviewing letters in the terminal: one letter, one key."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sendonce.entrypoints.cli.output import say
from sendonce.errors import BadInput, RefusedByRule, SendonceError

if TYPE_CHECKING:
    from sendonce.domain.people.directions import Direction
    from sendonce.domain.prospecting.written_letters import WrittenLetter
    from sendonce.ports.prospecting import ProspectingStore

_KEYS = "[a]pprove  [r]eject  [e]dit  [s]kip  [q]uit"
_SUBJECT = "Subject: "


def review_letters(
    store: ProspectingStore,
    waiting: Iterable[WrittenLetter],
    direction_of: Callable[[WrittenLetter], Direction],
    actor: str,
    editor: str,
) -> None:
    """Until no letter waits, or the keys end. Keys may be typed, or come through a pipe, one a line."""
    counts = {"approved": 0, "rejected": 0, "skipped": 0}
    letter = None
    for letter in waiting:
        show_letter(letter, direction_of(letter))
        verdict = _ask_about(store, letter, direction_of(letter), actor, editor)
        if verdict is None:
            break
        counts[verdict] += 1
    if letter is None:
        say("No letter waits for review.")
        return
    say(", ".join(f"{number} {word}" for word, number in counts.items()) + ".")


def _ask_about(
    store: ProspectingStore, letter: WrittenLetter, direction: Direction, actor: str, editor: str
) -> str | None:
    """What became of it; None to leave."""
    from sendonce.flows.prospecting.review_letter import approve_letter, reject_letter

    letters = store.written_letters
    while True:
        key = _key()
        try:
            if key in ("q", ""):
                return None
            if key == "s":
                return "skipped"
            if key == "a":
                approve_letter(letters, letter, actor)
                return "approved"
            if key == "r":
                reject_letter(store, letter, actor)
                return "rejected"
            if key == "e":
                letter = _edit(store, letter, actor, editor)
                show_letter(letter, direction)
            else:
                say(f"{key!r} is none of the keys.")
        except RefusedByRule as exc:
            say(str(exc))
            return "skipped"
        except SendonceError as exc:
            say(str(exc))


def _edit(store: ProspectingStore, letter: WrittenLetter, actor: str, editor: str) -> WrittenLetter:
    from sendonce.flows.prospecting.review_letter import edit_letter, find_letter

    words = edited_in_editor(editor, letter.made.subject, letter.made.text)
    edit_letter(store.written_letters, letter, *words, actor)
    return find_letter(store.written_letters, letter.tenant_id, letter.id)


def _key() -> str:
    """One line of standard input; empty at its end."""
    sys.stdout.write(f"{_KEYS}: ")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not sys.stdin.isatty():
        say(line.strip())
    return line.strip().lower()[:1] if line.strip() else ("q" if not line else "s")


def show_letter(letter: WrittenLetter, direction: Direction) -> None:
    """As it is sent, but for the footer, and what a reviewer should know."""
    from sendonce.domain.prospecting.sites import shown_domain
    from sendonce.domain.prospecting.written_letters import sent_text

    made = letter.made
    say("─" * 72)
    name, domain = _printable(letter.company_name), shown_domain(letter.domain)
    say(f"{f'{name} ({domain})' if name else domain}  letter {letter.id}")
    say(f"To: {made.recipient}\n{_SUBJECT}{_printable(made.subject)}\n")
    say(_printable(sent_text(letter, direction)))
    by = f"the model {made.model}" if made.written_by == "llm" else f"the {made.written_by}"
    say(f"\n{letter.status}; written by {by}" + (f" ({made.note})" if made.note else ""))
    say((failed_checks(made.checks) or " All checks passed.").strip())
    if letter.unfit:
        say(f"It will not be sent: {letter.unfit}.")


def failed_checks(checks: Iterable[Mapping[str, Any]]) -> str:
    failed = [f"{it['name']} ({', '.join(it['found'])})" for it in checks if not it["ok"]]
    return f" Checks that failed: {_printable('; '.join(failed))}." if failed else ""


def edited_in_editor(editor: str, subject: str, text: str) -> tuple[str, str]:
    """The same words after a person had them in their editor."""
    command = shlex.split(editor)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "letter.txt"
        file.write_text(f"{_SUBJECT}{subject}\n\n{text}\n", encoding="utf-8")
        try:
            code = subprocess.run([*command, str(file)], check=False).returncode  # noqa: S603 (the user's own)
        except OSError as exc:
            raise BadInput(f"The editor {editor!r} cannot be run: {exc.strerror}. Set EDITOR.") from exc
        if code:
            raise BadInput(f"The editor {editor!r} ended with {code}: nothing was changed.")
        first, _, rest = file.read_text(encoding="utf-8-sig", errors="replace").partition("\n")
    if not first.startswith(_SUBJECT.strip()):
        raise BadInput(f"The first line must be “{_SUBJECT}…”: nothing was changed.")
    return first.removeprefix(_SUBJECT.strip()).strip(), rest.strip()


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in text)
