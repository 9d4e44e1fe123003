"""Sites that mean harm, or that cannot be read for other reasons."""

from __future__ import annotations

import gzip
from functools import cache

from sendonce.sandbox.companies.registry import Manner
from sendonce.sandbox.http_server import Ending, Reply

HTML = "text/html"


def moved(place: str, status: int = 301) -> Reply:
    return Reply(status, b"", HTML, (("Location", place),))


@cache
def _bomb() -> bytes:
    """30 MB in 30 KB."""
    return gzip.compress(bytes(30 << 20), 9)


def hostile_reply(manner: Manner, path: str) -> Reply:
    match manner:
        case Manner.BOMB:
            return Reply(200, _bomb(), HTML, (("Content-Encoding", "gzip"),))
        case Manner.ENDLESS:
            return Reply(200, b"<p>\n" * 16_000, HTML, ending=Ending.ENDLESS)
        case Manner.INWARD:
            return moved("http://169.254.169.254/latest/meta-data/iam/", 302)
        case Manner.HEADERS:
            return Reply(200, b"", HTML, tuple((f"X-Filler-{number}", "x" * 4000) for number in range(100)))
        case Manner.CIRCLE:
            return moved("/a" if path != "/a" else "/b", 302)
        case Manner.SOCIAL:
            return moved("https://vk.com/club1")
        case Manner.SCRIPTED:
            return Reply(200, b'<div id="root"></div><script src="/app.js"></script>', HTML)
        case _:
            return Reply(503, b"", HTML, (("Retry-After", "3600"),))
