"""Where a letter leads: links that work for a stranger, and that do not make spam filters wonder."""

from __future__ import annotations

import ipaddress
from html.parser import HTMLParser
from urllib.parse import urlsplit

from sendonce.adapters.doctor.word_lists import SHORTENERS
from sendonce.domain.engine.checks import Check, count_of, listed, ok, stop, warning

_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test", ".invalid")
_ALLOWED = frozenset({"http", "https"})
_ALLOWED_IN_LINKS = _ALLOWED | {"mailto", "tel"}


class _Links(HTMLParser):
    """The addresses in a document: links, and images among them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, bool] = {}  # address -> is an image

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "href" and tag in ("a", "area"):
                self.found.setdefault((value or "").strip(), False)
            elif name in ("src", "background") and tag != "script":
                self.found.setdefault((value or "").strip(), True)


def links_check(html: str, base_url: str, *, leaves: bool) -> Check:
    name = "letter.links"
    parser = _Links()
    parser.feed(html)
    parser.close()
    links = {url: image for url, image in parser.found.items() if not url.startswith("#")}
    outside = {url: image for url, image in links.items() if not url.startswith(base_url + "/")}
    broken = [_shown(url) for url, image in outside.items() if _leads_nowhere(url, image=image)]
    if broken:
        what = f"Links that no mail program can open: {listed(broken)}."
        return stop(name, what, "Write whole addresses that begin with https://.")
    private = [_shown(url) for url in outside if _is_private(_host(url))]
    if private:
        what = f"Links that lead to your own machine or network: {listed(private)}."
        fix = "Write the address that the world reaches."
        return stop(name, what, fix) if leaves else warning(name, what, fix)
    short = [_shown(url) for url in outside if _host(url).removeprefix("www.") in SHORTENERS]
    if short:
        what = f"Links through a shortener: {listed(short)}."
        return warning(name, what, "Link to the page itself: spam filters distrust shorteners.")
    return ok(name, f"{count_of(len(links), 'link')}, all whole addresses.")


def _leads_nowhere(url: str, *, image: bool) -> bool:
    scheme = url.partition(":")[0].lower() if ":" in url else ""
    if scheme in _ALLOWED:
        return not _host(url)
    return image or scheme not in _ALLOWED_IN_LINKS


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_private(host: str) -> bool:
    """mailto: and tel: have no host, and are nobody's machine."""
    if not host:
        return False
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def _shown(url: str) -> str:
    return repr(url[:80])
