"""JSON from strangers: no second key of the same name, no NaN, no bottomless nesting, no text that a
database would refuse."""

from __future__ import annotations

import json
import math
from typing import Any

from sendonce.errors import BadInput

MAX_DEPTH = 32


def strict_object(text: str | bytes, what: str) -> dict[str, Any]:
    """The JSON object in ``text``. Raises BadInput, which names ``what`` was being read."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = _DECODER.decode(decoded)
        cleaned = _not_too_deep(value) if is_plain(decoded) else _clean(value, 0)
    except UnicodeDecodeError as exc:
        raise BadInput(f"{what} is not UTF-8.") from exc
    except RecursionError as exc:
        raise BadInput(f"{what} is nested too deeply.") from exc
    except ValueError as exc:
        raise BadInput(f"{what} is not good JSON: {exc}"[:200]) from exc
    if not isinstance(cleaned, dict):
        raise BadInput(f"{what} is not a JSON object.")
    return cleaned


def is_plain(text: str) -> bool:
    """Whether every character of a good JSON text stands for itself: then all of it can be stored as it came.

    JSON itself forbids a bare NUL, so one can only come as an escape, as can half of a surrogate pair.
    """
    return "\\u" not in text and "\\/" not in text and (text.isascii() or storable(text) is text)


_MOST_DIGITS = 100


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key comes twice")
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _short_int(digits: str) -> int:
    # Python refuses 4,300 digits in words that are meant for programmers.
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"{digits[:20]}… is too long a number")
    return int(digits)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite_float, parse_int=_short_int
)
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"


def _not_too_deep(value: Any) -> Any:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return value
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    if any(level):
        raise ValueError(_TOO_DEEP)
    return value


def _clean(value: Any, depth: int) -> Any:
    """PostgreSQL stores neither NUL nor half a surrogate pair, and a mail server may say either."""
    if depth > MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {storable(key): _clean(item, depth + 1) for key, item in value.items()}
    return value


def storable(text: str) -> str:
    """The text with U+FFFD in place of what cannot be stored."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(["\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text])
    return text
