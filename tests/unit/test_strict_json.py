"""JSON from strangers: the quick way for plain text refuses and gives what the thorough way does."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.strict_json import MAX_DEPTH, strict_object
from sendonce.errors import BadInput

PLAIN, ESCAPED = "A", "\\u0041"


@pytest.mark.parametrize("letter", [PLAIN, ESCAPED])
@pytest.mark.parametrize("innermost", ["{}", "[]", "1", '"x"'])
@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_depth_has_one_limit(letter: str, innermost: str, kind: str) -> None:
    """So many levels may lie in one another, and no more, whether or not the text has an escape in it."""

    def nested(depth: int) -> str:
        opened, closed = ("[", "]") if kind == "lists" else ('{"a":', "}")
        return f'{{"{letter}":' + opened * (depth - 1) + innermost + closed * (depth - 1) + "}"

    assert "A" in strict_object(nested(MAX_DEPTH), "It")
    with pytest.raises(BadInput, match="It is not good JSON: it is nested more than 32 levels deep"):
        strict_object(nested(MAX_DEPTH + 1), "It")


@pytest.mark.parametrize("text", ["1", '"{}"', "[]", "null", f'["{ESCAPED}"]'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="It is not a JSON object"):
        strict_object(text, "It")


@pytest.mark.parametrize("text", ['{"a": "\0"}', '{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a": "\ud800"}'])
def test_what_cannot_be_stored_is_replaced_or_refused(text: str) -> None:
    """A bare NUL is no JSON; an escaped one, and half of a surrogate pair, become U+FFFD."""
    if "\0" in text:
        with pytest.raises(BadInput):
            strict_object(text, "It")
    else:
        assert strict_object(text, "It") == {"a": "\N{REPLACEMENT CHARACTER}"}
