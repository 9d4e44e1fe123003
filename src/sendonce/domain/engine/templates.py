"""Templates without logic: ``{{ name }}`` and ``{{ name | default: "friends" }}``, and nothing else.

``| url`` at the end of a variable percent-encodes its value: links carry it (see ``links``). ``| rule =``
gives as many ``=`` as its value has characters: the line below a heading in plain text carries it.
There is nothing to loop over or to call, so a letter from a stranger cannot do anything but be read.
A value is never looked at again: one that contains ``{{ x }}`` arrives as these five characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from sendonce.errors import BadInput

_NAME = r"[^\W\d]\w*"
# Editors turn straight quotes into typographic ones behind the writer's back. A default holds no opening
# quote of its own kind, so that no search for the closing one passes the next variable.
_DEFAULT = "|".join([r'"([^"\n]*)"', r"'([^'\n]*)'", r"“([^“”\n]*)”", r"«([^«»\n]*)»"])
_FORM = r"\|\s*(url|rule [=-])\s*"

VARIABLE = re.compile(rf"\{{\{{\s*({_NAME})\s*(?:\|\s*default\s*:\s*(?:{_DEFAULT})\s*)?(?:{_FORM})?\}}\}}")
_HALF_WRITTEN = re.compile(rf"(?<!\{{)\{{\s*{_NAME}\s*(?:\|[^{{}}\n]*)?\}}(?!\}})")


def half_written(text: str) -> str | None:
    """A word in single braces: a variable as other tools write it, which would be sent as it stands."""
    found = _HALF_WRITTEN.search(text)
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Variable:
    """``name`` is in lower case: ``{{ Name }}`` and ``{{ name }}`` mean the same field.

    ``rule`` is the character to draw a line of, as long as the value; empty for the value itself.
    """

    name: str
    default: str | None = None
    url: bool = False
    rule: str = ""

    def resolve(self, fields: Mapping[str, str]) -> str | None:
        """The value, else the default, else None. An empty value is no value."""
        value = fields.get(self.name) or self.default
        if self.rule and value:
            return ruled(value, self.rule)
        return url_encoded(value) if self.url and value else value

    def unresolved(self) -> BadInput:
        """What to say when ``resolve`` found nothing."""
        return BadInput(
            f"The variable {self.name!r} has no value for this recipient and no default. "
            f'Write {{{{ {self.name} | default: "…" }}}} in the letter.'
        )


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[str | Variable, ...]

    @classmethod
    def parse(cls, text: str, where: str | None = None) -> Template:
        """Raises BadInput for a ``{{`` that begins no variable, with its line or with ``where`` it is."""
        parts: list[str | Variable] = []
        end = 0
        for match in VARIABLE.finditer(text):
            parts.append(_literal(text, end, match.start(), where))
            name, *defaults, form = match.groups()
            default = next((d for d in defaults if d is not None), None)
            rule = form[-1] if form and form != "url" else ""
            parts.append(Variable(name.lower(), default, form == "url", rule))
            end = match.end()
        parts.append(_literal(text, end, len(text), where))
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


def url_encoded(value: str) -> str:
    """Fit for any place of a URL after its host: RFC 3986 §2.3 leaves letters, digits and ``-._~``."""
    return quote(value, safe="", errors="replace")


def ruled(value: str, rule: str) -> str:
    """A line below the value, as long as its longest line."""
    return rule * max(map(len, value.splitlines()), default=0)


def url_marked(source: str) -> str:
    """The template with ``| url`` in each of its variables."""
    return VARIABLE.sub(lambda match: match[0] if match[6] else match[0][:-2].rstrip() + " | url }}", source)


def rule_below(source: str, rule: str) -> str:
    """The template of a line of ``rule`` that is as long as this template's value."""
    below, end = [], 0
    for match in VARIABLE.finditer(source):
        bare = match[0][:-2] if match[6] is None else match[0].rpartition("|")[0]
        below += [rule * (match.start() - end), f"{bare.rstrip()} | rule {rule} }}}}"]
        end = match.end()
    return "".join([*below, rule * (len(source) - end)])


def map_literals(source: str, convert: Callable[[str], str]) -> str:
    """The template with its plain stretches converted and its variables as they stand."""
    converted: list[str] = []
    end = 0
    for match in VARIABLE.finditer(source):
        converted += (convert(_literal(source, end, match.start(), "In the letter")), match[0])
        end = match.end()
    converted.append(convert(_literal(source, end, len(source), "In the letter")))
    return "".join(converted)


def _literal(text: str, start: int, end: int, where: str | None) -> str:
    """A stretch of plain text. Only ``{{`` is refused in it: style sheets end in ``}}``."""
    stray = text.find("{{", start, end)
    if stray >= 0:
        where = where or f"Line {text.count(chr(10), 0, stray) + 1}"
        shown = text[stray : stray + 40].partition("\n")[0]
        raise BadInput(
            f"{where}: {shown!r} is not a variable. "
            'Write {{ name }} or {{ name | default: "friends" }}, with letters, digits and _ in the name.'
        )
    return text[start:end]
