"""The lines of YAML above a letter, and variables kept out of the way of whoever parses it.

---
subject: Новости для вас, {{ name | default: "друзья" }}
preheader: Коротко о главном
---
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

from sendonce.domain.templates import VARIABLE
from sendonce.errors import BadInput

_FENCE = re.compile(r"---[ \t]*\n")
_CLOSING_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_OURS = {"subject", "preheader", "from_name", "from"}


class HiddenVariables:
    """Swaps variables for words of lower-case letters and digits, which nothing on the way touches."""

    def __init__(self, text: str) -> None:
        stem = "sendoncevariable"
        while stem in text:
            stem += "x"
        self._sources: list[str] = []
        self._word = re.compile(rf"{stem}q(\d+)q")
        self._stem = stem
        self.hidden = VARIABLE.sub(self._hide, text)

    def _hide(self, match: re.Match[str]) -> str:
        self._sources.append(match[0])
        return f"{self._stem}q{len(self._sources) - 1}q"

    def restore(self, text: str) -> str:
        return self._word.sub(lambda match: self._sources[int(match[1])], text)


class FrontMatter(NamedTuple):
    """``lines`` is how many lines of the file stand above the letter itself."""

    fields: dict[str, str]
    body: str
    lines: int

    def warnings(self) -> list[str]:
        """What its author may have meant otherwise."""
        known = ", ".join(sorted(_OURS))
        return [
            f"The front matter's {key[:60]!r} means nothing here. Known are {known}."
            for key in self.fields
            if key not in _OURS
        ]

    @property
    def from_name(self) -> str | None:
        return self.fields.get("from_name") or self.fields.get("from") or None


def has_front_matter(text: str) -> bool:
    return _FENCE.match(text) is not None


def split_front_matter(text: str) -> FrontMatter:
    """Raises BadInput, with the line, for what is missing or malformed."""
    opening = _FENCE.match(text)
    if opening is None:
        raise BadInput(
            "Line 1: the file has no front matter. Begin it with\n---\nsubject: Our news in May\n---\n"
            "and put the letter below."
        )
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        raise BadInput("Line 1: the front matter is not closed. Put a line of --- below the subject.")
    fields = _fields(text[opening.end() : closing.start()])
    if not fields.get("subject"):
        raise BadInput(
            "Line 1: the front matter has no subject. Add a line such as\nsubject: Our news in May"
        )
    return FrontMatter(fields, text[closing.end() :], text.count("\n", 0, closing.end()))


def _fields(source: str) -> dict[str, str]:
    try:
        # BaseLoader makes nothing but strings, lists and mappings: a subject of 2025 or «yes» stays text.
        loaded = yaml.load(source, Loader=yaml.BaseLoader)  # noqa: S506
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = mark.line + 2 if mark else 1  # the opening --- is line 1
        raise BadInput(
            f"Line {line}: the front matter is not YAML: {exc.problem}. "
            "If a value contains a colon or begins with a sign, put it in quotes."
        ) from exc
    except (yaml.YAMLError, RecursionError) as exc:  # a forbidden character, or brackets a mile deep
        raise BadInput(f"Line 1: the front matter is not YAML: {exc}.") from exc
    if not isinstance(loaded, dict):
        raise BadInput("Line 2: the front matter must be lines such as\nsubject: Our news in May")
    return {str(key).strip().lower(): _scalar(key, value) for key, value in loaded.items()}


def _scalar(key: object, value: object) -> str:
    """Words of a value on one line. Lists and mappings are other programs' front matter: not ours."""
    if isinstance(value, str):
        return " ".join(value.split())
    if str(key).strip().lower() in _OURS:
        raise BadInput(f"The front matter's {key} is not a line of text. Put it in quotes.")
    return ""
