"""Bytes of a page to UTF-8: a byte order mark, then what the page says of itself, then what its bytes tell.

Old Russian sites are windows-1251 or koi8-r, often without saying so, sometimes saying the wrong one.
"""

from __future__ import annotations

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The standard gives the first 1024 bytes; real pages put scripts before it.
_HEAD = 8192
_DECLARED = re.compile(rb"""<meta[^<>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^<>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{2,40})""")
_SINGLE_BYTE = ("cp1251", "koi8-r", "cp866")
# The WHATWG encoding standard reads these labels as the wider set.
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-5": "iso8859-5", "koi8-u": "koi8-u"}
_FREQUENT = frozenset("оеаинтсрвлкмдпуяыьгзбчй")
_SAMPLE = 20_000


def page_in_utf8(data: bytes, declared: str | None = None) -> bytes:
    """``declared`` is the charset of the HTTP header, where there was one."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _to_utf8(data[len(mark) :], name)
    try:
        data.decode("utf-8")
        return data
    except UnicodeDecodeError:
        pass
    named = _codec(declared) or _codec_in(data)
    if named in (None, "utf-8"):
        named = _detected(data)
    elif named in _SINGLE_BYTE:
        named = _likelier(data, named)
    return _to_utf8(data, named)


def _to_utf8(data: bytes, name: str) -> bytes:
    """Half of a surrogate pair is no character."""
    return data.decode(name, "replace").encode("utf-8", "replace")


def _codec_in(data: bytes) -> str | None:
    found = _XML.search(data[:_HEAD]) or _DECLARED.search(data[:_HEAD])
    return _codec(found[1].decode("ascii")) if found else None


def _codec(label: str | None) -> str | None:
    try:
        name = codecs.lookup(label.strip().lower()).name if label else None
        "".encode(name or "ascii")
    except (LookupError, ValueError):
        return None
    return _WIDER.get(name, name) if name else None


def _detected(data: bytes) -> str:
    """UTF-8 with a few broken bytes is still UTF-8; else the Cyrillic set that gives Russian."""
    high = sum(1 for byte in data[:_SAMPLE] if byte > 0x7F)
    broken = data[:_SAMPLE].decode("utf-8", "replace").count("\ufffd")
    if broken * 10 < high:
        return "utf-8"
    return _likelier(data, "cp1251")


def _likelier(data: bytes, named: str) -> str:
    """What it says it is, unless another Cyrillic set reads far better."""
    sample = bytes(byte for byte in data[: 4 * _SAMPLE] if byte > 0x7F)[:_SAMPLE]
    scores = {name: _russian(sample.decode(name, "replace")) for name in _SINGLE_BYTE}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 2 * scores[named] else named


def _russian(text: str) -> int:
    """Small letters that Russian is full of. In the wrong set they are capitals or rare ones."""
    return sum(map(text.count, _FREQUENT))
