"""URLs as a browser reads them (WHATWG), in one spelling for each page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urljoin

import can_ada

from sendonce.domain.prospecting.sites import without_tracking

# Browsers stop far below; a search result longer than this is an attack or a mistake.
_MAX_URL = 8192
_MAX_HOST = 253
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# "firma.ru:8080/x" begins like a scheme, too.
_HOST_AND_PORT = re.compile(r"[^/?#@\s]+\.[^/?#@:\s]+:\d{1,5}(?:[/?#]|$)")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """``host`` is lower-case, in A-labels, without a final dot."""

    url: str
    host: str

    @property
    def is_ip(self) -> bool:
        try:
            ip_address(self.host.strip("[]"))
        except ValueError:
            return False
        return True


def read_url(text: str) -> WebAddress | None:
    """The canonical address; None where it is none of the web's.

    Without a scheme it is one of https, as people write it. Credentials, the fragment and tracking
    parameters are dropped. http becomes https: nearly every site answers there, and both are one page.
    """
    text = text.strip()
    if not text or len(text) > _MAX_URL:
        return None
    try:
        parsed = can_ada.parse(_with_scheme(text))
    except (ValueError, TypeError):  # TypeError: a lone surrogate, which is no text
        return None
    if parsed.protocol not in ("http:", "https:"):
        return None
    host = parsed.hostname.removesuffix(".")
    if not _is_host(host):
        return None
    query = without_tracking(parsed.search.removeprefix("?"))
    authority = f"{host}:{parsed.port}" if parsed.port else host
    scheme = parsed.protocol if parsed.port else "https:"
    return WebAddress(f"{scheme}//{authority}{parsed.pathname}{'?' if query else ''}{query}", host)


def _with_scheme(text: str) -> str:
    if text.startswith("//"):
        return "https:" + text
    if _SCHEME.match(text) and not _HOST_AND_PORT.match(text):
        return text
    return "https://" + text


def _is_host(host: str) -> bool:
    """What DNS asks of a name's length and labels; the URL standard leaves that open."""
    return 0 < len(host) <= _MAX_HOST and all(map(_is_label, host.split(".")))


def _is_label(label: str) -> bool:
    return 0 < len(label) <= 63 and not label.startswith("-") and not label.endswith("-")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is fetched from: a URL in parts, each as the parser gives it and nobody reads again.

    ``port`` is None for the usual one of the scheme.
    """

    url: str
    scheme: str
    host: str
    port: int | None
    target: str


def find_place(link: str, base: str = "") -> Place | None:
    """What a link on the page ``base`` leads to; None if it is no page of the web. http stays http."""
    try:
        parsed = can_ada.parse(urljoin(base, link.strip()) if base else link.strip())
    except (ValueError, TypeError):
        return None
    host = parsed.hostname.removesuffix(".")
    if parsed.protocol not in ("http:", "https:") or not _is_host(host) or len(parsed.href) > _MAX_URL:
        return None
    scheme, port = parsed.protocol[:-1], int(parsed.port) if parsed.port else None
    authority = f"{host}:{port}" if port else host
    target = parsed.pathname + parsed.search
    return Place(f"{scheme}://{authority}{target}", scheme, host, port, target)
