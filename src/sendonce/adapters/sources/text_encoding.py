"""Which encoding a file is in: its byte order mark says so, or its bytes do.

Lists come from spreadsheets: Excel writes UTF-8 with a mark, «Unicode text» as UTF-16, and in Russia plain
«CSV» as cp1251. UTF-8 is recognisable, for other text hardly ever happens to be it.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO

from sendonce.errors import BadInput

_BLOCK = 1 << 16
_SAMPLE = 1 << 16

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# RFC 3629 §4, without the finer limits on second bytes: enough to tell text from text.
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_ARCHIVE, _OLD_WORKBOOK = b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1")
_NAMES_IN_SHEETS = (b"[Content_Types].xml", b"xl/", b"opendocument.spreadsheet", b"Index/Document.iwa")
_HIGH = re.compile(rb"[\x80-\xff]")
_WORD = re.compile("[A-Za-zА-Яа-яЁё]{2,}")
_CYRILLIC_WORD = re.compile("[А-Яа-яЁё]+")


def open_text(file: BinaryIO, path: str, encoding: str | None = None) -> io.TextIOWrapper:
    """The text of a file at its beginning, line ends as they are.

    What cannot be decoded becomes a lone surrogate where the codec allows it, U+FFFD elsewhere, so that
    the line can be told. Raises BadInput for an unknown ``encoding``, where none fits, and for a file that
    is no text at all, such as a workbook of Excel.
    """
    _refuse_other_formats(_first_bytes(file), path)
    chosen = _known(encoding) if encoding else _detect(file, path)
    errors = "replace" if chosen.startswith(("utf-16", "utf-32")) else "surrogateescape"
    return io.TextIOWrapper(file, encoding=chosen, errors=errors, newline="")


def _refuse_other_formats(start: bytes, path: str) -> None:
    """By what the file begins with, whatever it is called."""
    # An .xlsx or .ods is an archive, with telling names in it.
    sheet = start.startswith(_ARCHIVE) and any(name in start for name in _NAMES_IN_SHEETS)
    if sheet or start.startswith(_OLD_WORKBOOK):
        raise BadInput(
            f"{path!r} is a spreadsheet, not CSV. Open it, save it as CSV (in Excel: Save as, «CSV UTF-8»), "
            "and import that file."
        )
    if start.startswith((_ARCHIVE, b"\x1f\x8b")):
        raise BadInput(f"{path!r} is an archive: unpack it, and import the CSV files that are in it.")


def _known(encoding: str) -> str:
    try:
        found = codecs.lookup(encoding)
        "".encode(encoding)
    except LookupError as exc:
        raise BadInput(f"There is no encoding {encoding!r}: give one such as utf-8, cp1251, utf-16.") from exc
    # A mark at the beginning is no part of the first title, whoever named the encoding.
    return "utf-8-sig" if found.name == "utf-8" else found.name


def _detect(file: BinaryIO, path: str) -> str:
    start = _first_bytes(file)
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    # The first title is written in ASCII or Cyrillic: without a mark, its zero or 0x04 bytes tell UTF-16.
    if start[:1] in (b"\x00", b"\x04"):
        return "utf-16-be"
    if start[1:2] in (b"\x00", b"\x04"):
        return "utf-16-le"
    sample = _sample_with_high_bytes(file, start)
    valid = sum(map(len, _UTF8_SEQUENCE.findall(sample)))
    invalid = len(_HIGH.findall(_UTF8_SEQUENCE.sub(b"", sample)))
    if invalid <= valid:
        return "utf-8"
    if _looks_cyrillic(sample):
        return "cp1251"
    raise BadInput(
        f"{path!r} is not UTF-8, and not cp1251 either: give --encoding, or save it as «CSV UTF-8»."
    )


def _first_bytes(file: BinaryIO) -> bytes:
    if file.seekable():
        start = file.read(_BLOCK)
        file.seek(0)
        return start
    assert isinstance(file, io.BufferedReader)
    return file.peek(_BLOCK)


def _sample_with_high_bytes(file: BinaryIO, start: bytes) -> bytes:
    """Blocks that are not plain ASCII. The first names that tell may come late in a list."""
    if not file.seekable():
        return start
    found = bytearray()
    while len(found) < _SAMPLE and (block := file.read(_BLOCK)):
        if not block.isascii():
            # Cut at line ends, so that no character is halved.
            found += block + file.readline(_BLOCK)
    file.seek(0)
    return bytes(found)


def _looks_cyrillic(sample: bytes) -> bool:
    """Whether cp1251 gives words. A western «José» would become «Josй»: two alphabets in one word."""
    words = _WORD.findall(sample.decode("cp1251", "replace"))
    telling = [word for word in words if not word.isascii()]
    return 2 * sum(_CYRILLIC_WORD.fullmatch(word) is not None for word in telling) > len(telling)
