"""The page about the legal gate says what the gate does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sendonce.domain.people.directions import Basis, NewDirection
from sendonce.domain.people.legal_gate import EEA, why_blocked

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "legal-gate.md"
ROWS = re.findall(r"^\| (`.+?`) \| (refused|no|allowed)", PAGE.read_text(encoding="utf-8"), re.M)
TOLD = {code: verdict for codes, verdict in ROWS for code in re.findall("`([A-Z]{2})`", codes)}
COUNTRIES = sorted({*EEA, "GB", "UK", "US", "RU"} - {"EU"})


@pytest.mark.parametrize("country", COUNTRIES)
def test_what_the_page_refuses_is_refused_and_nothing_else(country: str) -> None:
    direction = NewDirection("d", country, Basis.LEGITIMATE_INTEREST, "weighed on 1 March")
    assert (why_blocked(direction) is not None) == (TOLD.get(country) == "refused")
