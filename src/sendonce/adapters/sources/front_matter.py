"""The lines of YAML above a letter, and variables kept out of the way of whoever parses it.

---
subject: Новости для вас, {{ name | default: "друзья" }}
preheader: Коротко о главном
send_at: 2026-12-01 09:00
---
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import yaml

from sendonce.domain.engine.letters import language_named
from sendonce.domain.engine.templates import VARIABLE
from sendonce.errors import BadInput

_FENCE = re.compile(r"---[ \t]*\n")
_CLOSING_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KNOWN = ("subject", "preheader", "from_name", "reply_to", "language", "send_at", "text_only")
_OURS = {*_KNOWN, "from"}
_AUDIENCE = {
    "to",
    "cc",
    "bcc",
    "segment",
    "segments",
    "list",
    "lists",
    "tag",
    "tags",
    "audience",
    "recipients",
}
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0", ""}
_BRACED = re.compile(r"\{\{[^{}\n]*\}\}")
_STEM = "sendoncevariable"


class HiddenVariables:
    """Swaps variables for words of lower-case letters and digits, which nothing on the way touches."""

    def __init__(self, text: str) -> None:
        self._stem = _STEM + "x" * _longest_tail(text)
        self._sources: list[str] = []
        self._word = re.compile(rf"{self._stem}q(\d+)q")
        self.hidden = VARIABLE.sub(self._hide, text)

    def _hide(self, match: re.Match[str]) -> str:
        self._sources.append(match[0])
        return f"{self._stem}q{len(self._sources) - 1}q"

    def restore(self, text: str) -> str:
        return self._word.sub(lambda match: self._sources[int(match[1])], text)


def _longest_tail(text: str) -> int:
    """How many x a stem needs that does not occur in the text."""
    tails = re.findall(f"{_STEM}(x*)", text)
    return max(len(tail) for tail in tails) + 1 if tails else 0


class FrontMatter(NamedTuple):
    """``lines`` is how many lines of the file stand above the letter itself."""

    fields: dict[str, str]
    body: str
    lines: int

    @property
    def from_name(self) -> str | None:
        return self.fields.get("from_name") or self.fields.get("from") or None

    @property
    def language(self) -> str | None:
        return language_named(self.fields.get("language", ""))

    @property
    def text_only(self) -> bool:
        word = self.fields.get("text_only", "").lower()
        if word not in _TRUE | _FALSE:
            raise BadInput(f"The front matter's text_only is {word[:60]!r}: write true or false.")
        return word in _TRUE


def has_front_matter(text: str) -> bool:
    return _FENCE.match(text) is not None


def with_plain_quotes(text: str) -> str:
    r"""The file with ``\"`` in the variables of its front matter as ``"``.

    In ``subject: "Hi {{ name | default: \"friends\" }}"`` YAML wants the backslashes; a variable has none.
    """
    opening = _FENCE.match(text)
    closing = _CLOSING_FENCE.search(text, opening.end()) if opening else None
    if closing is None:
        return text
    head, body = text[: closing.start()], text[closing.start() :]
    return _BRACED.sub(lambda match: match[0].replace('\\"', '"'), head) + body


def split_front_matter(text: str) -> FrontMatter:
    """Raises BadInput, with the line, for what is missing or malformed, and for what is not honoured."""
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
    _refuse_unknown(fields)
    if not fields.get("subject"):
        raise BadInput(
            "Line 1: the front matter has no subject. Add a line such as\nsubject: Our news in May"
        )
    return FrontMatter(fields, text[closing.end() :], text.count("\n", 0, closing.end()))


def _refuse_unknown(fields: dict[str, str]) -> None:
    """A line that its author counts on and that we would pass over may send a letter to the wrong people."""
    unknown = [key for key in fields if key not in _OURS]
    if not unknown:
        return
    named = ", ".join(repr(key[:60]) for key in unknown[:10])
    everybody = " A mailout goes to all active subscribers." if _AUDIENCE & set(unknown) else ""
    meant = _meant(unknown[:10])
    advice = f"Did you mean {' and '.join(meant)}? Correct it, or remove it." if meant else "Remove it."
    raise BadInput(
        f"The front matter has {named}, which sendonce does not honour.{everybody} "
        f"{advice} Known are {', '.join(_KNOWN)}."
    )


def _meant(unknown: Sequence[str]) -> list[str]:
    """The names of ours that look like slips of the keyboard."""
    from difflib import get_close_matches

    close = [get_close_matches(key[:60], _KNOWN, n=1, cutoff=0.75) for key in unknown]
    return list(dict.fromkeys(name for names in close for name in names))


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
    return {_name(key): _scalar(key, value) for key, value in loaded.items()}


def _name(key: object) -> str:
    return str(key).strip().lower().replace("-", "_")


def _scalar(key: object, value: object) -> str:
    """Words of a value on one line. Lists and mappings are other programs' front matter: not ours."""
    if isinstance(value, str):
        return " ".join(value.split())
    if _name(key) in _OURS:
        raise BadInput(f"The front matter's {key} is not a line of text. Put it in quotes.")
    return ""
