"""Addresses in attributes: in plain text, in pieces, or in a code that a script of the page undoes."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from enum import Enum
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from sendonce.adapters.contacts.markup import Page
from sendonce.adapters.contacts.script_codes import Undoing, shifted_back
from sendonce.adapters.contacts.scripts import decoded_base64

_MAX_HOLDERS = 1000
_MAX_NAMES = 20
_MAX_METAS = 100
_LONGEST_VALUE = 300
_LONGEST_COMMENT = 3000
_ATTRIBUTE = re.compile(rb"[\s\"']([a-zA-Z_:@][\w:.-]{0,60})\s{0,9}=\s{0,9}([\"'])")
_UNQUOTED = re.compile(rb"\s([a-zA-Z][\w-]{0,60})=([^\s\"'<>=]{0,64})\Z")
_END_OF_UNQUOTED = re.compile(rb"[\s>]")
_FIELD = re.compile(rb"<(?:input|textarea)\b", re.IGNORECASE)
# The visitor's own address, or a sample of one.
_TO_FILL_IN = re.compile(
    rb"<input\b(?![^<>]*\b(?:readonly|disabled)\b)[^<>]*\btype\s{0,9}=\s{0,9}[\"']?email", re.IGNORECASE
)
_SAMPLES = re.compile(r"placeholder|mask|pattern|example|sample|user-?e?mail", re.IGNORECASE)
# Handlers of clicks, and what Vue, Alpine and Angular fill in.
_SCRIPTED = re.compile(r"on[a-z]+\Z|(?:x-|v-)?bind:|:|x-(?:text|html|data)\Z|@", re.IGNORECASE)
_TELLING = re.compile(
    r"data-[\w-]+\Z|title\Z|aria-label\Z|alt\Z|rel\Z|name\Z|wire:|[\w-]*(?:mail|address|contact)|(?:ng-|xlink:|form)\w+",
    re.IGNORECASE,
)
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
# A link that lacks its "mailto:", or has it misspelt.
_LONE_ADDRESS = re.compile(
    r"(?:/|e?-?mail\s?:\s?|mailto(?:[;\s]|%3a)[\s:]{0,3})?([A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{4,250})",
    re.IGNORECASE,
)
_EVENTS = (
    *("onclick", "onmouseover", "onmousedown", "onmouseenter", "onmouseup"),
    *("onfocus", "onpointerdown", "ontouchstart"),
)
_HANDLERS = ",".join(f'[{name}*="ail"],[{name}*="lto:"]' for name in _EVENTS)
# Looking through the markup first is quicker than to ask the tree for what most pages do not have.
_META = re.compile(rb"<meta[^<>]*\Z", re.IGNORECASE)
_METAS_WITH_SIGNS = ",".join(f'meta[content*="{sign}"]' for sign in ("@", "(at)", "[at]", "(соб", "[соб"))
_LONGEST_META = 500
_IN_HANDLER = re.compile(rb"\son[a-z]{3,20}\s*=[^<>]*\Z")
_LONGEST_HANDLER = 300
_MAILTO_IN_BASE64 = re.compile(rb"bWFpbHRv[A-Za-z0-9+/]{8,400}={0,2}")
_HELD_IN_BASE64 = re.compile(rb"""data-[\w-]+\s*=\s*["']([A-Za-z0-9+/]{12,400}={0,2})["']""")
_METAS_OF_MAKERS = re.compile(r"author|creator|generator|developer|designer|twitter|copyright", re.IGNORECASE)
_SEPARATED = re.compile(
    r"\s*([A-Za-z0-9._-]{1,64})\s*(?:[|#;,:*]{1,2}|\s)\s*([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)\s*\Z"
)
_THREE_PARTS = re.compile(r"([a-z0-9._-]{2,40})([|#;,:*/ ])([a-z0-9-]{2,60})\2([a-z]{2,6})")
_OWN_TAG = re.compile(rb"[a-z]+(?:-[a-z]+){1,4}")
_LONGEST_TAG = 30
_NAME = re.compile(r"[a-z][a-z0-9._-]{1,40}")
_REVERSED_HOST = re.compile(r"(?:ur|us|yb|zk|ten|gro|moc)\.[\w-]")
_OF_MAIL = re.compile(r"e?-?mail-(?=(?:user|name|login|local|host|server|site|domain|tld|zone)\Z)")
_IN_JSON = re.compile(
    r"""[\[{](?:"\w{1,12}":)?"([\w.+-]{1,64})",(?:"\w{1,12}":)?"([\w-]+(?:\.[\w-]+)+)"[\]}]"""
)
_CODED_KEYS = ("mail", "enc", "addr", "contact", "cf", "protect", "hex")
_IN_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,120}")
_DATA = r"(?:dataset\.|data-|data\([\"'])([\w-]{1,30})"
_DATA_NAME = re.compile(_DATA)
# const {user, host} = e.dataset
_DATA_NAMES = re.compile(r"\{([\w,\s]{3,60})\}\s{0,9}=\s{0,9}[\w.$]{1,30}\.dataset\b")
_IS_NAME = re.compile(r"[\w-]+", re.ASCII)
_JOINS = ("'@'", '"@"', "}@$", "&#64;", "x40", "fromCharCode(64)")


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
    for name, value in _attributes_with_signs(page):
        if _SAMPLES.search(name):
            continue
        if _SCRIPTED.match(name):
            yield Held(What.SCRIPT, html.unescape(value))
        elif _TELLING.match(name):
            yield Held(What.CODED, value)
        elif name.lower() in ("href", "value") and (lone := _LONE_ADDRESS.fullmatch(value.strip())):
            yield Held(What.FIELD if name.lower() == "value" else What.PLAIN, lone[1])
    yield from _metas(page)
    yield from _pieces(page)
    yield from _joined_by_scripts(page)
    yield from _of_joomla(page)
    yield from _handlers(page)
    yield from _in_base64(page)


def readings_of(value: str, *, rot13: bool, undoing: Undoing | None) -> Iterator[str]:
    """An attribute's text: plain, in base64, reversed, parted; first in ``rot13`` if the page undoes that,
    and last as the page's script would undo it.
    """
    value = html.unescape(value).strip()[:2000]
    if rot13:
        yield unquote(codecs.encode(value, "rot13"))
    yield unquote(value)
    for text in (decoded_base64(value) or "", value[::-1], decoded_base64(value[::-1]) or ""):
        yield unquote(text)
        yield _parted(text)
    if _IN_HEX.fullmatch(value):
        yield bytes.fromhex(value).decode("utf-8", "replace")
    yield _parted(value)
    if undoing is not None:
        yield undoing.text_of(value) or ""


def _parted(value: str) -> str:
    """``info|firma.ru``, ``info,firma,ru``, ``["info","firma.ru"]``"""
    if three := _THREE_PARTS.fullmatch(value):
        return f"{three[1]}@{three[3]}.{three[4]}"
    pair = _SEPARATED.match(value) or _IN_JSON.fullmatch(value.replace(" ", ""))
    return f"{pair[1]}@{pair[2]}" if pair else ""


def _attributes_with_signs(page: Page) -> Iterator[tuple[str, str]]:
    """Name and value of attributes with an @ in them, or a word for it in brackets. Of a field only the
    value: others are hints.
    """
    html = page.html
    for at in chain(*page.signs):
        tag = html.rfind(b"<", max(0, at - _LONGEST_VALUE), at)
        found = _attribute_around(html, max(tag, at - _LONGEST_VALUE), at)
        if found is None or _is_commented_out(html, at):
            continue
        is_value = found[0].lower() == "value"
        if _FIELD.match(html, tag) and (not is_value or _TO_FILL_IN.match(html, tag)):
            continue
        yield found


def _is_commented_out(html: bytes, at: int) -> bool:
    start = max(0, at - _LONGEST_COMMENT)
    return html.rfind(b"<!--", start, at) > html.rfind(b"-->", start, at)


def _attribute_around(html: bytes, start: int, at: int) -> tuple[str, str] | None:
    opened = _ATTRIBUTE.finditer(html, start, at)
    around = next((found for found in opened if html.find(found[2], found.end(), at) < 0), None)
    if around is not None:
        end = html.find(around[2], at, at + 2000)
        value = html[around.end() : end if end > 0 else at + 200]
    else:
        around = _UNQUOTED.search(html, start, at)
        closing = _END_OF_UNQUOTED.search(html, at) if around else None
        if around is None or closing is None:
            return None
        value = html[around.start(2) : closing.start()]
    return around[1].decode(), value.decode("utf-8", "replace")


def _metas(page: Page) -> Iterator[Held]:
    signs = chain(*page.signs)
    if not any(_META.search(page.html, max(0, at - _LONGEST_META), at) for at in signs):
        return
    for node in page.tree.css(_METAS_WITH_SIGNS)[:_MAX_METAS]:
        named = node.attributes.get("name") or node.attributes.get("property") or ""
        if not _METAS_OF_MAKERS.search(named) and not node.attributes.get("itemprop"):
            yield Held(What.META, node.attributes.get("content") or "")


def _pieces(page: Page) -> Iterator[Held]:
    """``data-user`` and ``data-domain``, or one attribute that holds the address in some code."""
    for node in _holders_of_pieces(page):
        data = {key.lower().removeprefix("data-"): value or "" for key, value in node.attributes.items()}
        data |= {_OF_MAIL.sub("", key): value for key, value in data.items() if _OF_MAIL.match(key)}
        user, domain, top = (_first(data, names) for names in (_USER_NAMES, _DOMAIN_NAMES, _TOP_NAMES))
        if not user and "." in domain:
            user = _lone_name(node)
        if user and domain and "@" not in user:
            domain = domain.lstrip("@")
            host = domain if "." in domain or not top else f"{domain}.{top.lstrip('.')}"
            yield Held(What.PLAIN, f"{user}@{host}")
            if _REVERSED_HOST.match(host):
                yield Held(What.PLAIN, f"{host}@{user}"[::-1])
        for key, value in data.items():
            if key == "enc-email":  # of a plugin for WordPress
                yield Held(What.PLAIN, codecs.encode(value, "rot13").replace("[ng]", "@"))
            elif key == "mailto-token":  # of TYPO3
                yield Held(What.PLAIN, shifted_back(value))
            elif key in ("e", "value") or any(word in key for word in _CODED_KEYS):
                yield Held(What.CODED, value)


def _holders_of_pieces(page: Page) -> list[LexborNode]:
    names = sorted({name.decode() for name in _PARTS.findall(page.lowered)})[:_MAX_NAMES]
    wanted = [f"[data-{name}]" for name in names] + _tags_of_mail(page.lowered)
    return page.tree.css(",".join(wanted))[:_MAX_HOLDERS] if wanted else []


def _tags_of_mail(lowered: bytes) -> list[str]:
    """Elements of the page's own, such as ``<safe-mail>``."""
    found: set[str] = set()
    at = lowered.find(b"mail")
    for _ in range(_MAX_HOLDERS):
        if at < 0:
            break
        tag = _OWN_TAG.match(lowered, lowered.rfind(b"<", max(0, at - _LONGEST_TAG), at) + 1)
        if tag and tag.end() > at:
            found.add(tag[0].decode())
        at = lowered.find(b"mail", at + 4)
    return sorted(found)[:_MAX_NAMES]


def _lone_name(node: LexborNode) -> str:
    """``<span data-domain="firma.ru">info</span>``"""
    text = node.text(separator="").strip()
    return text if _NAME.fullmatch(text) else ""


def _joined_by_scripts(page: Page) -> Iterator[Held]:
    """Attributes, whatever they are called, between which a script puts an @."""
    bodies = [script.body for script in page.scripts]
    if b"datas" in page.lowered:  # in what a click runs
        bodies.append(page.html.decode("utf-8", "replace"))
    for body in bodies:
        if "data" in body and any(sign in body for sign in _JOINS):
            names = _data_names(body)
            for node in (
                page.tree.css("".join(f"[data-{name}]" for name in names))[:_MAX_HOLDERS] if names else ()
            ):
                yield Held(What.PLAIN, _joined([node.attributes.get(f"data-{name}") or "" for name in names]))


def _data_names(script: str) -> list[str]:
    """Of two or three attributes that a script reads, in their order."""
    names = [found[1] for found in islice(_DATA_NAME.finditer(script), _MAX_NAMES)]
    for found in islice(_DATA_NAMES.finditer(script), _MAX_NAMES):
        names += found[1].replace(" ", "").split(",")
    names = list(dict.fromkeys(filter(_IS_NAME.fullmatch, names)))
    return names if 2 <= len(names) <= 3 else []


def _joined(parts: list[str]) -> str:
    if len(parts) == 2 and "." in parts[0] and "." not in parts[1]:
        parts.reverse()
    return f"{parts[0]}@{'.'.join(parts[1:])}"


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
