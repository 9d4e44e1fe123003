"""Reading a letter costs in proportion to its length, whatever a stranger wrote into it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from sendonce.adapters.sources.html import read_html
from sendonce.adapters.sources.markdown import read_markdown
from sendonce.domain.engine.letters import Letter
from sendonce.errors import BadInput

HOSTILE: dict[str, tuple[Callable[[str], Letter], str, str]] = {
    "defaults without an end": (read_markdown, "", "{{a|default:“"),
    "the same in HTML": (read_html, "", "{{a|default:«"),
    "bold variables": (read_markdown, "", "**{{a}}** x "),
    "a box of titles": (read_html, "<details>", "<summary>a</summary>b"),
    "boxes in titles": (read_html, "", "<details><summary>a"),
    "stand-ins": (read_markdown, "", "sendoncevariablexxxxxxxx {{a}} "),
}
HEAD = {read_markdown: "---\nsubject: x\n---\n", read_html: "<title>x</title>"}


@pytest.mark.parametrize("name", HOSTILE)
def test_eight_times_the_letter_is_not_fifty_times_the_work(name: str) -> None:
    """Quadratic cost would be 64 times; the best of three tries is taken, for the machine may be busy."""
    read, once, again = HOSTILE[name]

    def cost(times: int) -> float:
        text = HEAD[read] + once + again * times
        began = time.process_time()
        with suppress(BadInput):
            read(text)
        return time.process_time() - began

    cost(10)
    small, large = (min(cost(times) for _ in range(3)) for times in (500, 4000))
    assert large < 30 * max(small, 0.001)
