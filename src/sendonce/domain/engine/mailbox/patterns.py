"""Lists of words and phrases, one a line, as one pattern."""

from __future__ import annotations

import re


def any_of(*phrases: str) -> re.Pattern[str]:
    """Finds any of them, in whatever case. Gaps in a phrase are bounded: a long hostile text costs little."""
    return re.compile("|".join(phrases), re.IGNORECASE)
