"""Contacts that a page states for machines: JSON-LD, microdata and vCards."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from sendonce.adapters.contacts.markup import Page, Script
from sendonce.adapters.contacts.scripts import decoded_base64

# schema.org's names, and what they hold for us.
_FIELDS = {
    "email": "email",
    "telephone": "phone",
    "phone": "phone",
    "taxid": "inn",
    "vatid": "inn",
    "inn": "inn",
    "ogrn": "ogrn",
}
# Under these are people and companies that made or reviewed the page.
_OTHERS = frozenset(
    (
        *("author", "creator", "review", "reviews", "editor", "sponsor", "accountableperson"),
        *("brand", "manufacturer", "funder", "copyrightholder"),
    )
)
_MAX_VALUES = 20_000
_LD = re.compile(r"ld\+json", re.IGNORECASE)
_COMMENTED = re.compile(
    r"^\s*(?:<!--|//\s*<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$"
)
# Templates leave one behind the last field.
_COMMENT = re.compile(r"/\*[^*]{0,500}\*/")
_NEXT_THING = re.compile(r"\}\s{0,100}\{")
_PLAIN_FIELD = re.compile(
    r"[\"'](email|telephone)[\"']\s{0,9}:\s{0,9}[\"']([^\"'\n]{5,200})[\"']", re.IGNORECASE
)
_MAX_PLAIN_FIELDS = 20
_PREFIX = re.compile(r".*[:/](?=\w)")
_TRAILING_COMMA = re.compile(r",(?=\s{0,100}[}\]])")


def json_ld(scripts: list[Script]) -> Iterator[tuple[str, str]]:
    """(email, phone, inn or ogrn; what is written there)."""
    for script in scripts:
        if _LD.search(script.attributes):
            yield from _fields(_parsed(script.body))
        elif "vcard" in script.attributes:
            yield from _card_fields(script.body)


def organisations(scripts: list[Script]) -> Iterator[tuple[str, str]]:
    """Name and city of each thing on the page that has an address or a phone: that is the company."""
    for script in scripts:
        if _LD.search(script.attributes):
            yield from filter(any, map(_name_and_city, _things(_parsed(script.body))))


def _things(root: Any) -> Iterator[dict[str, Any]]:
    stack = [root]
    for _ in range(_MAX_VALUES):
        if not stack:
            return
        value = stack.pop()
        if isinstance(value, dict):
            yield value
            stack += reversed(value.values())
        elif isinstance(value, list):
            stack += reversed(value)


def _name_and_city(thing: dict[str, Any]) -> tuple[str, str]:
    address = thing.get("address")
    if isinstance(address, list):
        address = next(iter(address), None)
    if address is None and not {"telephone", "email", "taxID"} & thing.keys():
        return "", ""
    city = address.get("addressLocality") if isinstance(address, dict) else ""
    return _string(thing.get("name") or thing.get("legalName")), _string(city)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parsed(text: str) -> Any:
    text = _COMMENTED.sub("", text).strip()
    return _loaded(text) or _loaded(_mended(text)) or _plain_fields(text)


def _mended(text: str) -> str:
    """Without what templates and plugins leave in it."""
    text = _COMMENT.sub("", text).rstrip("; \n")
    if text.startswith(("{&quot;", "[{&quot;")):
        text = html.unescape(text)
    if _NEXT_THING.search(text):
        text = f"[{_NEXT_THING.sub('},{', text)}]"
    return _TRAILING_COMMA.sub("", text)


def _plain_fields(text: str) -> list[dict[str, str]]:
    """Fields of what is no JSON, if no other people are in it: a quote within a name breaks it often."""
    if any(f'"{name}"' in text.lower() for name in _OTHERS):
        return []
    found = islice(_PLAIN_FIELD.finditer(text), _MAX_PLAIN_FIELDS)
    return [{field[1]: field[2]} for field in found]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _fields(root: Any) -> Iterator[tuple[str, str]]:
    """In the order of the document, without recursion."""
    stack: list[tuple[str, Any]] = [("", root)]
    for _ in range(_MAX_VALUES):
        if not stack:
            return
        key, value = stack.pop()
        if isinstance(value, dict):
            fields = ((_field_name(name), item) for name, item in reversed(value.items()))
            stack += [
                (key if name == "@value" else name, item) for name, item in fields if name not in _OTHERS
            ]
        elif isinstance(value, list):
            stack += [(key, item) for item in reversed(value)]
        elif key in _FIELDS and isinstance(value, str | int):
            yield _FIELDS[key], str(value)


def _field_name(name: object) -> str:
    """``email`` of ``schema:email`` and ``http://schema.org/email``."""
    return _PREFIX.sub("", str(name).lower())


def microdata(page: Page) -> Iterator[tuple[str, str]]:
    for node in page.select("[itemprop],[property]", b"mprop", b'y="em', b'y="te', b"ema:"):
        attributes = node.attributes
        name = (attributes.get("itemprop") or attributes.get("property") or "").lower().rpartition(":")[2]
        if name in _FIELDS:
            yield _FIELDS[name], _value(node, attributes)


def _value(node: LexborNode, attributes: dict[str, str | None]) -> str:
    return attributes.get("content") or attributes.get("href") or node.text(separator="").strip()


_VCARD_FIELD = re.compile(
    r"^(?:\w+\.)?(EMAIL|TEL)(?:;[^:\n]{0,100})?:([^\r\n]{3,200})", re.IGNORECASE | re.MULTILINE
)
_VCARD_NAMES = {"email": "email", "tel": "phone"}
# What QR codes hold: a card, or a letter to write. Services that draw them take it in a URL.
_CODE = re.compile(
    rb"(?:mecard|begin)(?::|%3a)[^\"'<>]{5,2000}|[?&;]\w{1,10}=mailto(?::|%3a)[^\"'<>\s&]{5,300}",
    re.IGNORECASE,
)
_CODE_FIELD = re.compile(
    r"(?:^|[:;\n])(?:(EMAIL)|TEL)(?:;[^:;\n]{1,100})?:([^;\r\n]{3,200})|=(mailto):([^?]{5,200})",
    re.IGNORECASE,
)
_MAX_CODES = 20


def codes(page: Page) -> Iterator[tuple[str, str]]:
    """``MECARD:N:Firma;EMAIL:info@firma.ru;;`` and its like, in links, pictures and attributes."""
    if any(mark in page.lowered for mark in (b"mecar", b"vcard", b"=mail")):
        for code in islice(_CODE.finditer(page.html), _MAX_CODES):
            text = unquote(html.unescape(code[0].decode("utf-8", "replace")))
            for email, value, link, address in _CODE_FIELD.findall(text):
                yield "email" if email or link else "phone", value or address


def vcard(href: str) -> Iterator[tuple[str, str]]:
    """``data:text/vcard,BEGIN:VCARD…``"""
    kind, _, data = href[:_MAX_VALUES].partition(",")
    if "vcard" in kind.lower():
        text = decoded_base64(unquote(data)) or "" if kind.lower().endswith(";base64") else unquote(data)
        yield from _card_fields(text)


def _card_fields(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _VCARD_FIELD.findall(text[:_MAX_VALUES]):
        yield _VCARD_NAMES[name.lower()], value
