"""Templates without logic: ``{{ name }}`` and ``{{ name | default: "friends" }}``, and nothing else.

There is nothing to loop over or to call, so a letter from a stranger cannot do anything but be read.
A value is never looked at again: one that contains ``{{ x }}`` arrives as these five characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sendonce.errors import BadInput

_NAME = r"[^\W\d]\w*"
# Editors turn straight quotes into typographic ones behind the writer's back.
_DEFAULT = "|".join([r'"([^"\n]*)"', r"'([^'\n]*)'", r"“([^”\n]*)”", r"«([^»\n]*)»"])

VARIABLE = re.compile(rf"\{{\{{\s*({_NAME})\s*(?:\|\s*default\s*:\s*(?:{_DEFAULT})\s*)?\}}\}}")


@dataclass(frozen=True, slots=True)
class Variable:
    """``name`` is in lower case: ``{{ Name }}`` and ``{{ name }}`` mean the same field."""

    name: str
    default: str | None = None

    def resolve(self, fields: Mapping[str, str]) -> str | None:
        """The value, else the default, else None. An empty value is no value."""
        return fields.get(self.name) or self.default


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[str | Variable, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Raises BadInput, with the line, for a ``{{`` that does not begin a variable."""
        parts: list[str | Variable] = []
        end = 0
        for match in VARIABLE.finditer(text):
            parts.append(_literal(text, end, match.start()))
            name, *defaults = match.groups()
            parts.append(Variable(name.lower(), next((d for d in defaults if d is not None), None)))
            end = match.end()
        parts.append(_literal(text, end, len(text)))
        return cls(tuple(part for part in parts if part != ""))

    def variables(self) -> list[str]:
        """The names of the fields, each once, in the order they appear in."""
        return list(dict.fromkeys(part.name for part in self.parts if isinstance(part, Variable)))

    def missing(self, fields: Mapping[str, str]) -> list[str]:
        """The variables that these fields leave unresolved: no value and no default."""
        unresolved = (
            part.name for part in self.parts if isinstance(part, Variable) and part.resolve(fields) is None
        )
        return list(dict.fromkeys(unresolved))


def _literal(text: str, start: int, end: int) -> str:
    """A stretch of plain text. Only ``{{`` is refused in it: style sheets end in ``}}``."""
    stray = text.find("{{", start, end)
    if stray >= 0:
        line = text.count("\n", 0, stray) + 1
        shown = text[stray : stray + 40].partition("\n")[0]
        raise BadInput(
            f"Line {line}: {shown!r} is not a variable. "
            'Write {{ name }} or {{ name | default: "friends" }}, with letters, digits and _ in the name.'
        )
    return text[start:end]
