"""Reads a message from outside within bounds: whatever it holds, reading ends soon and raises nothing.

The standard library's parser recurses once for every level of nesting and keeps every part. Here depth,
number and size are capped. What lies beyond a cap is not seen; mail of people and servers never gets there.
"""

from __future__ import annotations

import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header
from html import unescape

MOST_BYTES = 1_000_000
_MOST_HEADERS = 500
_MOST_HEADER_BYTES = 128_000
_LONGEST_VALUE = 20_000
_MOST_PARTS = 50
_DEEPEST = 8
_LONGEST_TEXT = 100_000
_LONGEST_ENCODED = 4_000
_MOST_ENCODED = 6 * _LONGEST_TEXT
"""Quoted-printable makes three bytes of one, and a letter is often two."""

_FIELD = re.compile(rb"([!-9;-~]{1,100})[ \t]*:(.*)", re.DOTALL)
_PARAMETER = re.compile(r';\s*([A-Za-z0-9*_-]+)\s*=\s*(?:"([^"]{0,500})"|([^\s;"]{1,500}))')
_END_OF_HEAD = re.compile(rb"\r?\n[ \t]*\r?\n")
_UNSEEN = re.compile(r"<(/?)(script|style|head|title)\b[^<>]{0,1000}>", re.IGNORECASE)
_LINE_TAG = re.compile(r"<(?:br|/p|/div|/tr|/li|/h[1-6]|/table|/blockquote)\b[^<>]{0,1000}>", re.IGNORECASE)
_QUOTE_TAG = re.compile(
    r"<(?:blockquote|div[^<>]{0,300}class=\"?(?:gmail_quote|moz-cite-prefix))[^<>]{0,1000}>", re.IGNORECASE
)
_TAG = re.compile(r"<[^<>]{0,5000}>")
_BLANK = re.compile(r"[^\S\n]+")

# Python knows codecs that are no charsets, and of which some take quadratic time (punycode).
_CHARSET = re.compile(
    r"(?:x-|cs)?(?:utf|us-?ascii|ascii|iso|latin|windows|cp|koi8|mac|big5|gb|hz|euc|shift|sjis|ks|tis|viscii)"
    r"[a-z0-9_:.-]{0,30}"
)
_ONE_BYTE_CHARSET = re.compile(r"(?:us-)?ascii|iso-?8859|latin|windows-125|cp-?125|koi8|mac")
_WESTERN_CHARSET = re.compile(r"(?:us-)?ascii|iso-?8859-?1(?:5)?|latin-?1|(?:windows-|cp-?)1252")
_ACCENTED = re.compile(rb"[\xc0-\xff]")
_PLAIN_LETTER = re.compile(rb"[A-Za-z]")
_TAG_BYTES = re.compile(rb"<[^<>]{0,1000}>")

QUOTE_MARK = "-----Original Message-----"
"""What stands in the text of an HTML letter where the quoted letter begins."""


class Headers:
    """Header fields by name, whatever its case; the first of several. Values are decoded single lines."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields: dict[str, list[str]] = {}
        for name, value in fields:
            self._fields.setdefault(name, []).append(value)

    def get(self, name: str) -> str:
        """Empty where there is no such field."""
        return self._fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self._fields


@dataclass(frozen=True, slots=True)
class Part:
    """A part that has no parts of its own. A message inside a message is one, with its text undecoded."""

    content_type: str
    headers: Headers
    text: str


@dataclass(frozen=True, slots=True)
class Mail:
    headers: Headers
    content_type: str
    parameters: dict[str, str]
    parts: tuple[Part, ...]

    def parts_of(self, *content_types: str) -> Iterator[Part]:
        return (part for part in self.parts if part.content_type in content_types)

    @property
    def returned(self) -> str:
        """The letter that a report gives back, or its headers; empty where it does not."""
        kinds = ("message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global")
        return next((part.text for part in self.parts_of(*kinds)), "")

    @property
    def text(self) -> str:
        """What a reader sees first: the plain text, or the words of the HTML."""
        plain = next((part.text for part in self.parts_of("text/plain") if part.text.strip()), "")
        return plain or next((words_of(part.text) for part in self.parts_of("text/html")), "")


def read_mail(raw: bytes) -> Mail:
    raw = raw[:MOST_BYTES]
    if b"\n" not in raw:  # saved by an old Mac program
        raw = raw.replace(b"\r", b"\n")
    if raw.startswith(b"From "):  # an mbox file's separator
        raw = raw.partition(b"\n")[2]
    head, body = _split(raw)
    headers = read_headers(head)
    parts: list[Part] = []
    _collect(headers, body, parts, depth=0)
    content_type, parameters = _content_type(headers)
    return Mail(headers, content_type, parameters, tuple(parts))


def read_headers(head: bytes) -> Headers:
    fields: list[tuple[str, str]] = []
    current: list[bytes] = []
    for line in [*head[:_MOST_HEADER_BYTES].splitlines(), b""]:
        if line[:1] in (b" ", b"\t") and current:
            current.append(line)
            continue
        if current and (field := _FIELD.match(b" ".join(current)[:_LONGEST_VALUE])):
            fields.append((field[1].decode("ascii").lower(), _decoded_header(field[2])))
        if len(fields) >= _MOST_HEADERS:
            break
        current = [line]
    return Headers(fields)


def words_of(html: str) -> str:
    """The text of an HTML letter, with a mark where a quoted letter begins."""
    html = _QUOTE_TAG.sub(f"\n{QUOTE_MARK}\n", _seen(html[:_LONGEST_TEXT]).replace("\n", " "))
    text = unescape(_TAG.sub("", _LINE_TAG.sub("\n", html)))
    return "\n".join(_BLANK.sub(" ", line).strip() for line in text.split("\n"))


def _seen(html: str) -> str:
    """Without scripts, styles and the head. One that is never closed hides nothing."""
    pieces, start, hidden = [], 0, ""
    for tag in _UNSEEN.finditer(html):
        closing, name = bool(tag[1]), tag[2].lower()
        if not hidden and not closing:
            pieces.append(html[start : tag.start()])
            start, hidden = tag.end(), name
        elif closing and name == hidden:
            start, hidden = tag.end(), ""
    return " ".join([*pieces, html[start:]])


def _split(raw: bytes) -> tuple[bytes, bytes]:
    if raw.startswith((b"\n", b"\r\n")):
        return b"", raw
    end = _END_OF_HEAD.search(raw)
    return (raw[: end.start()], raw[end.end() :]) if end else (raw, b"")


def _collect(headers: Headers, body: bytes, parts: list[Part], depth: int) -> None:
    if len(parts) >= _MOST_PARTS:
        return
    content_type, parameters = _content_type(headers)
    boundary = parameters.get("boundary", "").encode("utf-8", "replace")
    pieces = _pieces(body, boundary) if content_type.startswith("multipart/") and boundary else []
    if pieces and depth < _DEEPEST:
        for piece in pieces:
            head, inner_body = _split(piece)
            _collect(read_headers(head), inner_body, parts, depth + 1)
        return
    if content_type.startswith("multipart/"):
        content_type = "text/plain"  # nothing tells its parts apart
    parts.append(Part(content_type, headers, _text_of(headers, content_type, parameters, body)))


def _pieces(body: bytes, boundary: bytes) -> list[bytes]:
    """What lies between the lines of a boundary. The last one may be missing: returned mail is often cut."""
    dashed = b"--" + boundary
    pieces: list[bytes] = []
    current: list[bytes] | None = None
    for line in body.splitlines(keepends=True):
        if line.startswith(dashed):
            if current is not None:
                pieces.append(b"".join(current))
            current = []
            if line[len(dashed) :].startswith(b"--") or len(pieces) >= _MOST_PARTS:
                return pieces
        elif current is not None:
            current.append(line)
    if current:
        pieces.append(b"".join(current))
    return pieces


def _content_type(headers: Headers) -> tuple[str, dict[str, str]]:
    value = headers.get("content-type")
    kind = value.partition(";")[0].strip().lower()
    parameters = {found[1].lower(): found[2] or found[3] or "" for found in _PARAMETER.finditer(value[:4000])}
    return kind if "/" in kind else "text/plain", parameters


def _text_of(headers: Headers, content_type: str, parameters: dict[str, str], body: bytes) -> str:
    if not content_type.startswith(("text/", "message/")):
        return ""
    body = _transfer_decoded(body[:_MOST_ENCODED], headers.get("content-transfer-encoding").strip().lower())
    return decoded(body[: _LONGEST_TEXT * 2], parameters.get("charset", ""))[:_LONGEST_TEXT].replace(
        "\r\n", "\n"
    )


def _transfer_decoded(body: bytes, encoding: str) -> bytes:
    if encoding == "quoted-printable":
        return quopri.decodestring(body)
    if encoding == "base64":
        letters = b"".join(body.split())
        try:
            return binascii.a2b_base64(letters[: len(letters) // 4 * 4])
        except binascii.Error:
            return body
    return body


def decoded(body: bytes, charset: str) -> str:
    """As text: by its own word, as UTF-8, or as Windows-1251, in which old Russian mail comes unmarked."""
    own = charset.strip().lower()
    for name in (*_likelier(body, own), own if _CHARSET.fullmatch(own) else "utf-8", "utf-8", "windows-1251"):
        try:
            return body.decode(name)
        except (LookupError, ValueError):  # ValueError: a name with a NUL, and every UnicodeError
            continue
    return body.decode("latin-1")


def _likelier(body: bytes, own: str) -> list[str]:
    """Before its own word, where that is likely wrong.

    Bytes that are UTF-8 by chance are rare; and no language of Western Europe has that many accented letters.
    """
    if body.isascii() or not _ONE_BYTE_CHARSET.match(own):
        return []
    words = _TAG_BYTES.sub(b"", body)
    accented, plain = len(_ACCENTED.findall(words)), len(_PLAIN_LETTER.findall(words))
    western = _WESTERN_CHARSET.fullmatch(own) is not None
    return ["utf-8", "windows-1251"] if western and 2 * accented > plain else ["utf-8"]


def _decoded_header(value: bytes) -> str:
    text = decoded(value, "utf-8")
    if "=?" in text and len(text) <= _LONGEST_ENCODED:
        text = _words_decoded(text)
    return " ".join(text.split())


def _words_decoded(text: str) -> str:
    try:
        pieces = decode_header(text)
    except (ValueError, LookupError, MessageError):
        return text
    return "".join(
        piece if isinstance(piece, str) else decoded(piece, charset or "utf-8") for piece, charset in pieces
    )
