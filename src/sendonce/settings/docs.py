"""The pages about settings, written from their declarations.

``python -m sendonce.settings.docs`` in a checkout writes ``.env.example`` and ``docs/reference/settings.md``
anew; a test holds both to what this file makes.
"""

from __future__ import annotations

import textwrap
from itertools import groupby
from pathlib import Path

from sendonce.settings import DECLARED
from sendonce.settings.kinds import Declaration, display
from sendonce.settings.table import BEING_BUILT, GROUPS

_EXAMPLE_HEAD = """\
# The settings of sendonce. Copy this file to .env, take away the # before those you need, and set them.
# Each is shown with its default or, where it has none, with an example. An empty value means the default.
# Variables of the process win over this file. `sendonce settings` prints what is in force.
"""

_REFERENCE_HEAD = """\
# Settings

Settings are environment variables. They are also read from a file `.env` in the working directory; a
variable of the process wins over the file, even an empty one. An empty value means the default. In the file
`$` is an ordinary character: nothing is expanded.

`sendonce settings` prints what is in force and where it came from, with secrets masked. A wrong value stops
every command with a line that names the variable, the value and the fix; all wrong values are told at once.
What a transport cannot do without (`SES_FROM_EMAIL` and `AWS_REGION`, or `SMTP_HOST` and
`SMTP_FROM_EMAIL`) is asked for only by commands that send.

Lists are comma-separated. Yes and no are `true`/`false`, `yes`/`no`, `on`/`off` or `1`/`0`. Seconds may
have a fraction. Addresses of outside services (`…_URL`) are settings too, so that a local stand-in is one
variable.

Settings of parts that are still being built are read and checked like the others, and nothing uses them yet:
prospecting, campaigns and alerts. `sendonce` keeps their names, so that an environment can be prepared.
"""


_NOT_USED_YET = "This part is being built: nothing uses these settings yet."
_TABLE_HEAD = "| variable | default | what it is, and where to get it |\n|---|---|---|\n"


def env_example() -> str:
    """The text of ``.env.example``."""
    parts = [_EXAMPLE_HEAD]
    for group, members in _by_group():
        parts.append(f"\n# ── {GROUPS[group]} " + "─" * (80 - len(GROUPS[group])) + "\n")
        parts += [f"# {_NOT_USED_YET}\n"] if group in BEING_BUILT else []
        parts += (_example_entry(it) for it in members)
    return "".join(parts)


def reference() -> str:
    """The text of ``docs/reference/settings.md``."""
    parts = [_REFERENCE_HEAD]
    for group, members in _by_group():
        note = f"{_NOT_USED_YET}\n\n" if group in BEING_BUILT else ""
        parts.append(f"\n## {GROUPS[group]}\n\n{note}{_TABLE_HEAD}")
        parts += (f"| `{it.name}` | {_default_cell(it)} | {_cell(_sentence(it))} |\n" for it in members)
    return "".join(parts)


def _by_group() -> list[tuple[str, list[Declaration]]]:
    return [(group, list(members)) for group, members in groupby(DECLARED.values(), lambda it: it.group)]


def _example_entry(it: Declaration) -> str:
    comment = _sentence(it) + (f" Default: {it.otherwise}." if it.otherwise else "")
    wrapped = textwrap.fill(comment, 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return f"\n{wrapped}\n#{it.name}={display(it.default) if _has_default(it) else it.example}\n"


def _sentence(it: Declaration) -> str:
    taken = f" If it is not set, {it.fallback} is taken." if it.fallback else ""
    return it.help + taken + (" Secret." if it.secret else "")


def _has_default(it: Declaration) -> bool:
    return not it.otherwise and (it.default is False or bool(display(it.default)))


def _default_cell(it: Declaration) -> str:
    if it.otherwise:
        return _cell(it.otherwise)
    return f"`{display(it.default)}`" if _has_default(it) else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    Path(".env.example").write_text(env_example(), encoding="utf-8")
    Path("docs/reference/settings.md").write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
