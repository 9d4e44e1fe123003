"""What a site asks of robots, and which pages its sitemap names (RFC 9309)."""

from __future__ import annotations

import html
import re
from itertools import islice

from protego import Protego

MOST_BYTES = 500 * 1024  # RFC 9309 §2.5: at least that much is read
# Blanks can be read in one way only: two runs of them side by side would take quadratic time.
_LOCATION = re.compile(r"<loc>\s{0,100}(?:<!\[CDATA\[\s{0,100})?([^<\s\]]{1,2000})", re.IGNORECASE)
_MOST_PAGES = 20_000
_MOST_SITEMAPS = 3
# No visit waits that long.
_LONGEST_PAUSE = 86_400.0


class Robots:
    """``agent`` is the product name of the User-Agent header."""

    def __init__(self, text: str, agent: str) -> None:
        self._rules = Protego.parse(text)
        self._agent = agent

    def allow(self, url: str) -> bool:
        return bool(self._rules.can_fetch(url, self._agent))

    @property
    def pause(self) -> float:
        """Seconds that it asks for between two requests. "nan" and negative numbers ask for none."""
        asked = float(self._rules.crawl_delay(self._agent) or 0.0)
        return min(asked, _LONGEST_PAUSE) if asked >= 0 else 0.0

    @property
    def sitemaps(self) -> list[str]:
        return list(self._rules.sitemaps)[:_MOST_SITEMAPS]


EVERYTHING_ALLOWED = ""


def robots_of(status: int, body: bytes, agent: str) -> Robots | None:
    """The rules by the answer for /robots.txt; None where the site may not be visited.

    Without such a file all is allowed; a server in trouble is left alone (RFC 9309 §2.3.1).
    """
    if status == 200:
        return Robots(body.decode("utf-8", "replace"), agent)
    return Robots(EVERYTHING_ALLOWED, agent) if 400 <= status < 500 and status != 429 else None


def pages_of_sitemap(data: bytes) -> list[str]:
    """The addresses that a sitemap names. No XML parser: a hint is not worth an attack."""
    text = data.decode("utf-8", "replace")
    found = (html.unescape(match[1]) for match in _LOCATION.finditer(text))
    return list(dict.fromkeys(islice(found, _MOST_PAGES)))
