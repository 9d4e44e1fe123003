"""Addresses in attributes: in plain text, in pieces, or in a code that a script of the page undoes."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from sendonce.adapters.contacts.markup import Page
from sendonce.adapters.contacts.scripts import decoded_base64

_MAX_HOLDERS = 1000
_MAX_NAMES = 20
_MAX_METAS = 100
_LONGEST_VALUE = 300
_ATTRIBUTE = re.compile(rb"\s([a-zA-Z_:][\w:.-]{0,60})\s{0,9}=\s{0,9}([\"'])")
_FIELD = re.compile(rb"<(?:input|textarea)\b", re.IGNORECASE)
_SCRIPTED = re.compile(r"on[a-z]+\Z", re.IGNORECASE)
_TELLING = re.compile(r"data-[\w-]+\Z|title\Z|aria-label\Z|alt\Z", re.IGNORECASE)
_PARTS = re.compile(
    rb"data-((?:[a-z0-9-]*(?:domain|host|server|site|mail|enc|addr|contact|second|after|part|last|hex)[a-z0-9-]*|d|e))\s*="
)
_USER_NAMES = (
    "user",
    "name",
    "login",
    "local",
    "account",
    "mailbox",
    "u",
    "first",
    "before",
    "part1",
    "email-user",
    "id",
    "mail",
    "email",
)
_DOMAIN_NAMES = (
    "domain",
    "host",
    "server",
    "site",
    "website",
    "d",
    "second",
    "after",
    "part2",
    "email-domain",
    "mail-domain",
    "last",
)
_TOP_NAMES = ("tld", "zone", "ext", "top", "part3", "t")
_LONE_ADDRESS = re.compile(r"/?[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{4,250}")
_EVENTS = (
    *("onclick", "onmouseover", "onmousedown", "onmouseenter", "onmouseup"),
    *("onfocus", "onpointerdown", "ontouchstart"),
)
_HANDLERS = ",".join(f'[{name}*="ail"],[{name}*="lto:"]' for name in _EVENTS)
# Looking through the markup first is quicker than to ask the tree for what most pages do not have.
_META = re.compile(rb"<meta[^<>]*\Z", re.IGNORECASE)
_LONGEST_META = 500
_IN_HANDLER = re.compile(rb"\son[a-z]{3,20}\s*=[^<>]*\Z")
_LONGEST_HANDLER = 300
_MAILTO_IN_BASE64 = re.compile(rb"bWFpbHRv[A-Za-z0-9+/]{8,400}={0,2}")
_HELD_IN_BASE64 = re.compile(rb"""data-[\w-]+\s*=\s*["']([A-Za-z0-9+/]{12,400}={0,2})["']""")
_METAS_OF_MAKERS = re.compile(r"author|creator|generator|developer|designer|twitter|copyright", re.IGNORECASE)
_SEPARATED = re.compile(
    r"\s*([A-Za-z0-9._-]{1,64})\s*[|#;,:*]{1,2}\s*([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)\s*\Z"
)
_REVERSED_HOST = re.compile(r"(?:ur|us|yb|zk|ten|gro|moc)\.[\w-]")
_OF_MAIL = re.compile(r"e?-?mail-(?=(?:user|name|login|local|host|server|site|domain)\Z)")
_IN_JSON = re.compile(
    r"""[\[{](?:"\w{1,12}":)?"([\w.+-]{1,64})",(?:"\w{1,12}":)?"([\w-]+(?:\.[\w-]+)+)"[\]}]"""
)
_CODED_KEYS = ("mail", "enc", "addr", "contact", "cf", "protect", "hex")
_IN_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,120}")
_DATA = r"(?:dataset\.|data-|data\([\"'])([\w-]{1,30})[\"')\]]{0,3}"
# e.dataset.a + '@' + e.dataset.b
_JOINED = re.compile(
    rf"{_DATA}\s{{0,9}}\+\s{{0,9}}[\"']@[\"']\s{{0,9}}\+\s{{0,9}}[\w.$()'\"]{{0,40}}?{_DATA}"
)


class What(Enum):
    PLAIN = "an address, or text with one"
    CODED = "text that may be in some code: see ``readings_of``"
    SCRIPT = "what a click runs"
    FIELD = "the value of a form's field"
    META = "a meta element's content"


class Held(NamedTuple):
    what: What
    text: str


def attributes_of(page: Page) -> Iterator[Held]:
    """What attributes hold that may be, or make, an address."""
    for name, value in _attributes_with_at(page):
        if _SCRIPTED.match(name):
            yield Held(What.SCRIPT, html.unescape(value))
        elif _TELLING.match(name):
            yield Held(What.CODED, value)
        elif _LONE_ADDRESS.fullmatch(value) and name.lower() in ("href", "value"):
            # A link that lacks its "mailto:", or a field.
            yield Held(What.FIELD if name.lower() == "value" else What.PLAIN, value.lstrip("/"))
    yield from _metas(page)
    yield from _pieces(page)
    yield from _joined_by_scripts(page)
    yield from _of_joomla(page)
    yield from _handlers(page)
    yield from _in_base64(page)


def readings_of(value: str, *, rot13: bool) -> Iterator[str]:
    """An attribute's text: plain, in base64, reversed, parted; first in ``rot13`` if the page undoes that."""
    value = html.unescape(value).strip()[:2000]
    if rot13:
        yield unquote(codecs.encode(value, "rot13"))
    yield unquote(value)
    yield unquote(decoded_base64(value) or "")
    yield unquote(value[::-1])
    if _IN_HEX.fullmatch(value):
        yield bytes.fromhex(value).decode("utf-8", "replace")
    if pair := _SEPARATED.match(value) or _IN_JSON.fullmatch(value.replace(" ", "")):
        yield f"{pair[1]}@{pair[2]}"


def _attributes_with_at(page: Page) -> Iterator[tuple[str, str]]:
    """Name and value of quoted attributes with an @ in them. Of a field only the value: others are hints."""
    html = page.html
    for at in page.signs:
        tag = html.rfind(b"<", max(0, at - _LONGEST_VALUE), at)
        opened = (found for found in _ATTRIBUTE.finditer(html, max(tag, at - _LONGEST_VALUE), at))
        around = [found for found in opened if html.find(found[2], found.end(), at) < 0]
        if not around or (_FIELD.match(html, tag) and around[0][1].lower() != b"value"):
            continue
        end = html.find(around[0][2], at, at + 2000)
        value = html[around[0].end() : end if end > 0 else at + 200]
        yield around[0][1].decode(), value.decode("utf-8", "replace")


def _metas(page: Page) -> Iterator[Held]:
    if not any(_META.search(page.html, max(0, at - _LONGEST_META), at) for at in page.signs):
        return
    for node in page.tree.css('meta[content*="@"]')[:_MAX_METAS]:
        named = node.attributes.get("name") or node.attributes.get("property") or ""
        if not _METAS_OF_MAKERS.search(named) and not node.attributes.get("itemprop"):
            yield Held(What.META, node.attributes.get("content") or "")


def _pieces(page: Page) -> Iterator[Held]:
    """``data-user`` and ``data-domain``, or one attribute that holds the address in some code."""
    names = sorted({name.decode() for name in _PARTS.findall(page.lowered)})[:_MAX_NAMES]
    if not names:
        return
    for node in page.tree.css(",".join(f"[data-{name}]" for name in names))[:_MAX_HOLDERS]:
        data = {key[5:].lower(): value or "" for key, value in node.attributes.items() if key[:5] == "data-"}
        data |= {_OF_MAIL.sub("", key): value for key, value in data.items() if _OF_MAIL.match(key)}
        user, domain, top = (_first(data, names) for names in (_USER_NAMES, _DOMAIN_NAMES, _TOP_NAMES))
        if user and domain and "@" not in user:
            domain = domain.lstrip("@")
            host = domain if "." in domain or not top else f"{domain}.{top.lstrip('.')}"
            yield Held(What.PLAIN, f"{user}@{host}")
            if _REVERSED_HOST.match(host):
                yield Held(What.PLAIN, f"{host}@{user}"[::-1])
        for key, value in data.items():
            if key == "enc-email":  # of a plugin for WordPress
                yield Held(What.PLAIN, codecs.encode(value, "rot13").replace("[ng]", "@"))
            elif key == "e" or any(word in key for word in _CODED_KEYS):
                yield Held(What.CODED, value)


def _joined_by_scripts(page: Page) -> Iterator[Held]:
    """Attributes, whatever they are called, between which a script puts an @."""
    bodies = (script.body for script in page.scripts if "data" in script.body)
    for found in islice((found for body in bodies for found in _JOINED.finditer(body)), _MAX_NAMES):
        for node in page.tree.css(f"[data-{found[1]}][data-{found[2]}]")[:_MAX_HOLDERS]:
            user, host = (node.attributes.get(f"data-{name}") for name in found.groups())
            yield Held(What.PLAIN, f"{user}@{host}")


def _of_joomla(page: Page) -> Iterator[Held]:
    """Joomla since its version 4 hides both halves in base64."""
    for node in page.select("joomla-hidden-mail", b"joom"):
        halves = [decoded_base64(node.attributes.get(name) or "") or "" for name in ("first", "last")]
        yield Held(What.PLAIN, "@".join(halves))


def _handlers(page: Page) -> Iterator[Held]:
    if any(_in_handler(page.lowered, mark) for mark in (b"ail", b"lto:")):
        for node in page.tree.css(_HANDLERS)[:_MAX_HOLDERS]:
            yield from (Held(What.SCRIPT, node.attributes.get(name) or "") for name in _EVENTS)


def _in_handler(lowered: bytes, mark: bytes) -> bool:
    """Whether the mark stands in what a click runs, somewhere on the page."""
    at = lowered.find(mark)
    for _ in range(_MAX_HOLDERS):
        if at < 0:
            return False
        if _IN_HANDLER.search(lowered, max(lowered.rfind(b"<", 0, at), at - _LONGEST_HANDLER), at):
            return True
        at = lowered.find(mark, at + 1)
    return True


def _in_base64(page: Page) -> Iterator[Held]:
    """Attributes that a script decodes, whatever they are called, and links to mail."""
    held: list[bytes] = []
    if b"bwfpb" in page.lowered:
        held += [found[0] for found in islice(_MAILTO_IN_BASE64.finditer(page.html), _MAX_NAMES)]
    if any("atob" in script.body for script in page.scripts):
        held += [found[1] for found in islice(_HELD_IN_BASE64.finditer(page.html), _MAX_HOLDERS)]
    yield from (Held(What.PLAIN, decoded_base64(value.decode()) or "") for value in held)


def _first(data: dict[str, str], names: tuple[str, ...]) -> str:
    return next((data[name] for name in names if data.get(name)), "")
