"""Whose an address in a script is: the company's, or that of a visitor, a test, or an account somewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Names of variables, fields and functions. Counters are told who looks at the page, and forms show samples.
_OF_OTHERS = re.compile(
    r"setContactInfo|default|placeholder|hint|example|sample|demo|dummy|fake|mock|fixture|(?<![a-z])test"
    r"|visitor|customer|subscriber|user|member|admin|account(?!ing)|login|auth|session|smtp|identify"
    r"|analytic|metri[ck]|counter|dataLayer|intercom|sentry|raven|console|error"
    r"|(?<![a-z])(?:ym|ga|gtag|fbq|hj|_?tmr|_?paq)(?![a-z])",
    re.IGNORECASE,
)
_CLOSED_BY = {")": "(", "]": "[", "}": "{"}
_MAX_PATH = 3

Token = tuple[str, str]


def is_called_others(name: str) -> bool:
    return _OF_OTHERS.search(name) is not None


def places_of_others(tokens: Sequence[Token]) -> list[bool]:
    """For each token, whether it stands in brackets of somebody else: ``users = [{email: …``, or
    ``identify({email: …``.
    """
    places: list[bool] = []
    around: list[tuple[str, bool]] = [("", False)]
    for at, (kind, word) in enumerate(tokens):
        if kind == "sign":
            if word in "([{":
                theirs = around[-1][1] or is_called_others(_name_before(tokens, at))
                around.append((word, theirs))
            elif _CLOSED_BY.get(word) == around[-1][0]:
                around.pop()
        places.append(around[-1][1])
    return places


def _name_before(tokens: Sequence[Token], bracket: int) -> str:
    """``analytics.identify`` of ``analytics.identify(``, ``users`` of ``users = [``."""
    at = bracket - 1
    if at > 0 and tokens[bracket][1] != "(":
        if tokens[at][1] not in ("=", ":"):
            return ""
        at -= 1
    path: list[str] = []
    while at >= 0 and tokens[at][0] in ("name", "string") and len(path) < _MAX_PATH:
        path.append(tokens[at][1])
        if at == 0 or tokens[at - 1][1] != ".":
            break
        at -= 2
    return ".".join(reversed(path))
