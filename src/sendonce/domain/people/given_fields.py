"""Fields as people write them down: objects or plain strings, under English or Russian names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sendonce.errors import BadInput

Names = Mapping[str, tuple[str, ...]]
"""Our name of each field, with all the names that people give it."""

_LONGEST = 2000
_LONGEST_TEXT = 100_000
_LIKE = 0.75
_CONTROL = re.compile("[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]")
_UNSEEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)


class UnknownField(BadInput):
    """``field`` is spelled as in the source, so that its line can be found there."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


def named(given: Any, names: Names, otherwise: str) -> dict[str, Any]:
    """The fields under our names; what is one string is the field ``otherwise``."""
    if not isinstance(given, Mapping):
        return {otherwise: given}
    lowered = {_plain(key): value for key, value in given.items()}
    return {
        ours: next((lowered[theirs] for theirs in every if lowered.get(theirs)), None)
        for ours, every in names.items()
    }


def unknown_fields(given: Any, names: Names) -> list[str]:
    """The fields that stand for none of ours, as they are spelled."""
    if not isinstance(given, Mapping):
        return []
    known = {theirs for every in names.values() for theirs in every}
    return [str(key) for key in given if _plain(key) not in known]


def likely_meant(field: str, names: Names) -> str | None:
    """The name that this one is probably a slip of."""
    known = [theirs for every in names.values() for theirs in every]
    return next(iter(difflib.get_close_matches(_plain(field), known, n=1, cutoff=_LIKE)), None)


def refusal_of(field: str, part: str, names: Names) -> UnknownField:
    meant = likely_meant(field, names)
    hint = f"did you mean {meant!r}?" if meant else f"it may have {', '.join(names)}."
    return UnknownField(f"The {part} has no field {field[:60]!r}: {hint}", field)


def listed(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.values()) if not given.keys() & {"text", "value", "url"} else [given]
    return list(given) if isinstance(given, list | tuple) else [given]


def text_of(given: Any) -> str:
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return str(given)[:_LONGEST_TEXT]
    return ""


def line_of(given: Any) -> str:
    """One line without what cannot be seen."""
    return " ".join(_seen(text_of(given)).split())[:_LONGEST]


def lines_of(given: Any) -> tuple[str, ...]:
    """Each of a list as one line; those that are empty are left out."""
    return tuple(filter(None, map(line_of, listed(given))))


def paragraphs_of(given: Any) -> str:
    lines: Iterable[str] = (" ".join(line.split()) for line in _seen(text_of(given)).split("\n"))
    return "\n".join(line for line in lines if line)[:_LONGEST]


def _plain(key: Any) -> str:
    return str(key).strip().casefold()


def _seen(text: str) -> str:
    return _CONTROL.sub(" ", _UNSEEN.sub("", text))
