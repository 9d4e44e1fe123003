"""Mail programs: every feature that our letters use is known to them, or does no harm where it is not."""

from __future__ import annotations

import json

import pytest

from tests.golden.support import BASELINE, CORPUS, PROGRAMS, support_of, used_features

FROZEN = json.loads(BASELINE.read_text(encoding="utf-8"))


def test_no_feature_is_used_that_was_not_looked_up() -> None:
    """A new tag, attribute or property has to be looked up: run ``python -m tests.golden``."""
    slugs, unknown = used_features()
    assert unknown == set()
    assert slugs == set(FROZEN)


def test_what_a_program_does_not_know_is_there_for_a_reason() -> None:
    for slug, entry in FROZEN.items():
        if entry["unsupported"]:
            assert entry["why it is harmless"], slug


def test_what_carries_the_letter_works_everywhere() -> None:
    """Tables, their attributes, padding, grounds, images, lists and headings."""
    carrying = ["html-table", "html-width", "html-align", "html-valign", "html-img", "html-p", "html-h1-h6"]
    carrying += ["html-lists", "html-div", "css-padding", "css-background-color", "css-margin", "css-border"]
    for slug in carrying:
        assert FROZEN[slug]["unsupported"] == [], slug


@pytest.mark.skipif(not CORPUS.exists(), reason="caniemail.json is not beside this checkout")
def test_the_baseline_is_what_caniemail_says() -> None:
    assert support_of(set(FROZEN)) == FROZEN
    assert set(PROGRAMS) == {"gmail", "outlook", "apple-mail", "yahoo", "mail-ru"}
