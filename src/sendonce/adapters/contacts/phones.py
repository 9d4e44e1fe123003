"""Phone numbers: what looks like one, judged and put into E.164 by libphonenumber's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

_MAX_CANDIDATES = 300
_MOST_DIGITS = 12
# Numbers in a row, one by one: each begins with a country code, an 8 or a parenthesis.
_SEVERAL = re.compile(
    r"(?:\+|\b[78](?=[ (\xa0-])|\()[0-9 \xa0().‑–—-]{8,20}?[0-9]"
    r"(?=[ \xa0\x1e]*(?:\+|[78][ (\xa0-]|\(|\Z|\x1e))"
)
# Begins with one of few characters, so that a page is passed quickly; what is found is then judged.
# \x1e stands where one element ends and the next begins.
_WRITTEN = re.compile(r"[+(0-9][0-9 \xa0\x1e\u2009().‑–—-]{8,50}")
_GLUED = re.compile(r"[\w./@-]")
_EXTENSION = re.compile(
    r"[\s,;(]*(?:доб(?:авочный|\.)?|вн(?:утр)?\.|ext\.?|x|#)[\s.:№]*(\d{1,6})", re.IGNORECASE
)
_EXTENSION_IN_LINK = re.compile(r"(?:;ext=|[,;pwPW#]+)(\d{1,6})\Z")
_LABELS = ("тел", "факс", "моб", "phone", "tel", "call", "звон", "whatsapp", "viber", "горячая линия")
# Numbers of other things: a registry, a bank, a standard, an article. «Инна» and «Гостиница» are none.
_OTHERS = re.compile(
    r"(?<!\w)(?:инн|кпп|огрн(?:ип)?|окпо|оквэд|октмо|окато|бик|снилс|гост|inn|ogrn|iban|vat)(?!\w)"
    r"|(?<!\w)(?:сч[её]т|артикул|арт\.|лиценз)|[рк][/.]с|№"
)
_DIGIT = re.compile(r"\d")
_REACH = 25
_MESSENGER = re.compile(
    r"(?:wa\.me/|whatsapp(?:\.com/|://)send/?\?phone=|viber://\w+\?number=|//t\.me/(?=\+\d))"
    r"(?:%2B|\+)?(\d{8,15})(?!\w)",
    re.IGNORECASE,
)
_COUNTRIES = {
    "xn--p1ai": "RU",
    "su": "RU",
    "uk": "GB",
    "xn--80ao21a": "KZ",
    "xn--90ais": "BY",
    "xn--j1amh": "UA",
}
# Two letters that are sold as words; their sites are anywhere.
_NO_COUNTRY = frozenset(("io", "co", "me", "tv", "ai", "cc", "ws", "eu", "pro", "to", "gg", "sh", "ly", "fm"))
_DEFAULT = "RU"


@dataclass(frozen=True, slots=True)
class Number:
    e164: str
    extension: str | None


def country_of(domain: str | None) -> str:
    top = (domain or "").rpartition(".")[2]
    if top in _COUNTRIES:
        return _COUNTRIES[top]
    return top.upper() if len(top) == 2 and top not in _NO_COUNTRY else _DEFAULT


def phone_in_link(href: str, country: str) -> Number | None:
    """``tel:+7%20(843)%20233-44-55;ext=12``"""
    text = unquote(href[:200]).partition(":")[2].lstrip("/").strip()
    extension = _EXTENSION_IN_LINK.search(text)
    if extension:
        text = text[: extension.start()]
    return _number(text, country, extension[1] if extension else None)


def phone_in_field(text: str, country: str) -> Number | None:
    """A field that holds a number, such as ``telephone`` of JSON-LD."""
    extension = _EXTENSION.search(text)
    if extension:
        text = text[: extension.start()]
    return _number(text, country, extension[1] if extension else None)


def messenger_phone(href: str, country: str) -> Number | None:
    found = _MESSENGER.search(href[:300])
    return _number(f"+{found[1]}", country, None) if found else None


def phones_in_text(text: str, country: str) -> Iterator[tuple[Number, int]]:
    """Numbers with their place. Ten digits in a row may be anything, unless their label says phone."""
    for count, found in enumerate(_WRITTEN.finditer(text)):
        if count >= _MAX_CANDIDATES:
            return
        for start, written in _pieces(found):
            number = _judged(text, start, written, country)
            if number is not None:
                yield number, start


def _pieces(found: re.Match[str]) -> Iterator[tuple[int, str]]:
    """One number may be spread over elements, and two may stand in neighbouring ones."""
    start, written = found.start(), found[0].rstrip(" \xa0\x1e(.-–—")
    if sum(map(str.isdigit, written)) <= _MOST_DIGITS:
        yield start, written
        return
    for piece in _SEVERAL.finditer(written):
        yield start + piece.start(), piece[0]


def _judged(text: str, start: int, written: str, country: str) -> Number | None:
    digits = sum(map(str.isdigit, written))
    if not 10 <= digits <= _MOST_DIGITS or _GLUED.match(text[start - 1 : start]):
        return None
    before = text[max(0, start - _REACH) : start].rpartition("\n")[2].lower()
    # What stands before another number belongs to that one: «ИНН 7707083893, тел. …».
    if _OTHERS.search(_DIGIT.split(before)[-1]):
        return None
    end = start + len(written)
    if text[end : end + 1].isalnum() or not _shaped_like_a_phone(written, digits, before):
        return None
    extension = _EXTENSION.match(text, end)
    return _number(written, country, extension[1] if extension else None)


def _shaped_like_a_phone(written: str, digits: int, before: str) -> bool:
    if written[0] == "+" or before.endswith("+"):
        return True
    if any(word in before for word in _LABELS):
        return True
    grouped = "(" in written or len(re.findall(r"\d+", written)) >= 4
    if digits == 11 and written[0] in "78":
        return grouped or written[0] == "8"
    return digits == 10 and "(" in written


@lru_cache(maxsize=4096)
def _number(text: str, country: str, extension: str | None) -> Number | None:
    # 50 ms of tables, which no other command needs.
    import phonenumbers

    digits = "".join(char for char in text if char.isdecimal())
    # Russians write 8 for their own country code; abroad the same digits would mean something else.
    if country in ("RU", "KZ") and len(digits) == 11 and digits[0] in "78":
        parsed = phonenumbers.PhoneNumber(country_code=7, national_number=int(digits[1:]))
    else:
        try:
            parsed = phonenumbers.parse(text, country)
        except phonenumbers.NumberParseException:
            return None
    if not phonenumbers.is_valid_number(parsed):
        return None
    e164 = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
    return Number(e164, extension or parsed.extension)
