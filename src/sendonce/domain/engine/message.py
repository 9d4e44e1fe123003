"""Builds messages: everything that recipients share is encoded once, then their fields are spliced in.

    compile_letter ─► CompiledLetter: the bytes of the message, with a gap for each thing that varies
    build          ─► fills the gaps and joins

A gap in a body stands on lines of its own between soft line breaks of quoted-printable (RFC 2045 §6.7),
so no value can make a line too long or change the encoding of its neighbours. No line begins with a
dot, so SMTP's dot-stuffing has nothing to do, and none with ``From ``, which mbox files would mark.

What a value may hold: any text but control characters, lone surrogates and bidirectional overrides.
Line breaks and tabs are welcome in bodies and refused in headers. A refusal names the field.
"""

from __future__ import annotations

import re
from binascii import b2a_base64, b2a_qp
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import IntEnum
from functools import lru_cache, partial
from hashlib import sha256
from html import escape
from typing import Any

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import (
    NAMELESS,
    Footer,
    Letter,
    MessageSettings,
    language_of,
    unsubscribe_prefix,
)
from sendonce.domain.engine.templates import Template, Variable, ruled, url_encoded
from sendonce.domain.engine.tokens import VIEW, sign_token
from sendonce.errors import BadInput

_SOFT_BREAK = b"=\r\n"
# RFC 2047 §2: a line that holds encoded words has at most 76 characters.
_HEADER_LINE = 76
_WORD_START, _WORD_END = b"=?utf-8?b?", b"?="
# Sendmail drops the name of a longer mailbox from the header ("invalid comments"): its buffer has 256 bytes.
_MAILBOX_LENGTH = 240
# A bound on what the caches below may hold.
_CACHED_LENGTH = 128

_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_BIDI_OVERRIDES = "\u202a-\u202e\u2066-\u2069"
_UNFIT_IN_LETTER = re.compile(f"[{_CONTROL}]")
_UNFIT_IN_BODY = re.compile(f"[{_CONTROL}{_BIDI_OVERRIDES}]")
_UNFIT_IN_HEADER = re.compile(f"[{_CONTROL}{_BIDI_OVERRIDES}\t\r\n\u2028\u2029]")
# An encoded word that arrives as text: readers that decode twice would find a header in it.
_ENCODED_WORD = re.compile(r"=\?[^?\s]*\?[BbQq]\?")
_SECOND_ADDRESS = re.compile(r"[^\s@]@[^\s@]")

_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ATOMS = re.compile(rf"{_ATEXT}(?: {_ATEXT})*")
_MESSAGE_ID_DOMAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")

# No dot begins a line of a header that is folded between ids: each begins with its bracket.
_MESSAGE_ID = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,200}@[A-Za-z0-9.\[\]:-]{1,200}")

_MARKUP = re.compile("[&<>\"']")
_BODY_START = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)


class _Gap(IntEnum):
    """What varies besides the fields."""

    TO = 0
    SUBJECT = 1
    DATE = 2
    JOB = 3
    TOKEN = 4
    VIEW_TOKEN = 5
    THREAD = 6


_Part = str | Variable | _Gap
_Encoder = Callable[[str], bytes]


class _Unfit(Exception):
    """A value cannot stand where it was put; caught by whoever knows the field's name."""


@dataclass(frozen=True, slots=True)
class CompiledLetter:
    """A letter ready to be addressed. Make it with ``compile_letter``."""

    pieces: tuple[bytes, ...]
    gaps: tuple[tuple[int, int], ...]  # position in pieces, which _Gap
    fields: tuple[tuple[int, Variable, _Encoder], ...]
    subject: Template
    fixed_subject: bytes | None
    secret: bytes = field(repr=False)
    view_links: bool = False

    def missing(self, fields: Mapping[str, str]) -> list[str]:
        """The variables, subject included, that these fields leave unresolved."""
        variables = (*self.subject.parts, *(variable for _, variable, _ in self.fields))
        return Template(variables).missing(fields)

    def build(
        self,
        job_id: str,
        recipient: str,
        fields: Mapping[str, str],
        date: datetime,
        thread: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The whole message with CRLF line ends. The same arguments give the same bytes.

        ``thread`` is a ``Thread`` as it is stored: the letter answers an earlier one.
        Raises BadInput for an unresolved variable or a value that cannot be sent.
        """
        if date.tzinfo is None:
            raise ValueError("date must be aware of its time zone")
        # First of all: it refuses an id that is no UUID and would not be safe in a header.
        token = sign_token(job_id, self.secret).encode("ascii")
        fillings = (  # in the order of _Gap
            _mailbox(recipient, None if NAMELESS in fields else fields.get("name")),
            self.fixed_subject or _subject(self.subject, fields),
            _date(int(date.timestamp())),
            job_id.encode("ascii"),
            token,
            sign_token(job_id, self.secret, VIEW).encode("ascii") if self.view_links else b"",
            _thread(thread) if thread else b"",
        )
        pieces = list(self.pieces)
        for position, gap in self.gaps:
            pieces[position] = fillings[gap]
        for position, variable, encode in self.fields:
            value = fields.get(variable.name) or variable.default
            if value is None:
                raise variable.unresolved()
            try:
                pieces[position] = encode(value)
            except _Unfit as exc:
                raise _refusal(variable.name, value, exc) from exc
        return b"".join(pieces)


def compile_letter(letter: Letter, settings: MessageSettings, dispatch_id: str) -> CompiledLetter:
    """Encode all that the messages of a dispatch share. Raises BadInput for what no copy could hold."""
    subject = _checked_subject(letter)
    footer = _footer(letter, settings)
    boundary = "=_" + sha256(dispatch_id.encode()).hexdigest()[:24]
    assembly = _Assembly()
    assembly.headers(_headers(letter, settings, dispatch_id))
    if letter.text_only:
        assembly.body_part("plain", _text_parts(letter, footer), _text_value)
        return assembly.finish(subject, settings)
    assembly.header_text(f'Content-Type: multipart/alternative; boundary="{boundary}"\r\n')
    # "=_" never comes out of quoted-printable, so no content can look like the boundary.
    assembly.header_text(f"\r\n--{boundary}\r\n")
    assembly.body_part("plain", _text_parts(letter, footer), _text_value)
    assembly.header_text(f"\r\n--{boundary}\r\n")
    assembly.body_part("html", _html_parts(letter, footer), _html_value)
    assembly.header_text(f"\r\n--{boundary}--\r\n")
    return assembly.finish(subject, settings)


# --- the parts of a message, in their order -----------------------------------------------------


def _headers(letter: Letter, settings: MessageSettings, dispatch_id: str) -> list[_Part]:
    if not _MESSAGE_ID_DOMAIN.fullmatch(settings.message_id_domain):
        raise BadInput(f"message_id_domain: {settings.message_id_domain!r} is not a host name.")
    name = letter.from_name or settings.from_name
    sender = _mailbox(settings.from_address, name, "from_address", "from_name").decode("ascii")
    parts: list[_Part] = [f"From: {sender}\r\nTo: ", _Gap.TO]
    parts += ["\r\nSubject: ", _Gap.SUBJECT, "\r\nDate: ", _Gap.DATE]
    parts += ["\r\nMessage-ID: <", _Gap.JOB, f"@{settings.message_id_domain.lower()}>\r\n", _Gap.THREAD]
    reply_to = letter.reply_to or settings.reply_to
    if reply_to:
        parts.append(f"Reply-To: {_mailbox(reply_to, None, 'reply_to').decode('ascii')}\r\n")
    # RFC 8058: one POST unsubscribes, without a page to confirm.
    parts += [f"List-Unsubscribe: <{unsubscribe_prefix(settings.base_url)}", _Gap.TOKEN, ">\r\n"]
    parts += ["List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n", f"List-Id: <{_list_id(settings)}>\r\n"]
    if settings.feedback_id:
        parts += [f"Feedback-ID: {_feedback_id(settings, dispatch_id)}\r\n"]
    parts += ["X-Sendonce-Job: ", _Gap.JOB, "\r\nMIME-Version: 1.0\r\n"]
    return parts


def _thread(thread: Mapping[str, Any]) -> bytes:
    """RFC 5322: the message that is answered, and the whole line of those before it."""
    answered = _message_id(thread["in_reply_to"])
    line = [_message_id(each) for each in thread.get("references", ())] or [answered]
    references = "\r\n ".join(line if answered in line else [*line, answered])
    return f"In-Reply-To: {answered}\r\nReferences: {references}\r\n".encode("ascii")


def _message_id(text: str) -> str:
    bare = text.strip().removeprefix("<").removesuffix(">")
    if not _MESSAGE_ID.fullmatch(bare):
        raise BadInput(f"thread: {text!r} is not a Message-ID such as <id@example.com>.")
    return f"<{bare}>"


def _list_id(settings: MessageSettings) -> str:
    """RFC 2919: a name that never changes, under a domain that is ours: ``news.example.com``."""
    local, _, domain = parse_address(settings.from_address).text.rpartition("@")
    label = re.sub("[^A-Za-z0-9]+", "-", local).strip("-").lower() or "list"
    return f"{label}.{domain.lower()}"


def _feedback_id(settings: MessageSettings, dispatch_id: str) -> str:
    """Gmail's feedback loop: the dispatch, the list, the kind, and a sender id of 5 to 15 characters."""
    dispatch = sha256(dispatch_id.encode()).hexdigest()[:12]
    sender = sha256(settings.message_id_domain.lower().encode()).hexdigest()[:12]
    return f"{dispatch}:{_list_id(settings)[:60]}:mailout:{sender}"


def _footer(letter: Letter, settings: MessageSettings) -> Footer:
    _check_letter("footer_address", settings.footer_address)
    return Footer.of(settings, letter.language or settings.language or language_of(letter.subject))


def _text_parts(letter: Letter, footer: Footer) -> list[_Part]:
    before, after = footer.text()
    links = _links((footer.view.text() if footer.view else None), footer.way_out.text())
    return [*_checked_template("text", letter.text).parts, before, *links, after]


def _html_parts(letter: Letter, footer: Footer) -> list[_Part]:
    """The letter with the preheader at the top of its body and the footer at the end of it."""
    parts: list[_Part] = list(_checked_template("html", letter.html).parts)
    before, after = footer.html()
    links = _links((footer.view.html() if footer.view else None), footer.way_out.html())
    before_tag = _seam(parts, _BODY_END, last=True)
    parts = _inserted(parts, [before, *links, after], before_tag or (len(parts), 0))
    if letter.preheader:
        after_tag = _seam(parts, _BODY_START, last=False)
        parts = _inserted(parts, _preheader(letter.preheader), after_tag or (0, 0))
    return parts


def _links(view: tuple[str, str] | None, way_out: tuple[str, str]) -> list[_Part]:
    """The links of the footer, each around its token."""
    shown: list[_Part] = [view[0], _Gap.VIEW_TOKEN, view[1]] if view else []
    return [*shown, way_out[0], _Gap.TOKEN, way_out[1]]


def _preheader(source: str) -> list[_Part]:
    """The line that mail programs show beside the subject; hidden in the letter itself."""
    template = _checked_template("preheader", source)
    words = [escape(part) if isinstance(part, str) else part for part in template.parts]
    style = "display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all"
    return [f'<div style="{style}">', *words, "</div>\n"]


def _seam(parts: list[_Part], tag: re.Pattern[str], *, last: bool) -> tuple[int, int] | None:
    """Where to cut: before the last match of a closing tag, or after the first of an opening one."""
    order = range(len(parts) - 1, -1, -1) if last else range(len(parts))
    for index in order:
        part = parts[index]
        matches = list(tag.finditer(part)) if isinstance(part, str) else []
        if matches:
            return index, matches[-1].start() if last else matches[0].end()
    return None


def _inserted(parts: list[_Part], added: list[_Part], at: tuple[int, int]) -> list[_Part]:
    index, offset = at
    if index == len(parts) or offset == 0:
        return [*parts[:index], *added, *parts[index:]]
    text = parts[index]
    assert isinstance(text, str)
    return [*parts[:index], text[:offset], *added, text[offset:], *parts[index + 1 :]]


class _Assembly:
    """Collects pieces and remembers where the gaps are."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = [b""]
        self._gaps: list[tuple[int, int]] = []
        self._fields: list[tuple[int, Variable, _Encoder]] = []

    def headers(self, parts: Iterable[_Part]) -> None:
        for part in parts:
            if isinstance(part, str):
                self.header_text(part)
            elif isinstance(part, _Gap):
                self._gap(part)

    def header_text(self, text: str) -> None:
        self._add(text.encode("ascii"))

    def body_part(self, subtype: str, parts: list[_Part], encode: _Encoder) -> None:
        self.header_text(
            f'Content-Type: text/{subtype}; charset="utf-8"\r\n'
            "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        )
        for part in _merged(parts):
            if isinstance(part, str):
                self._add(_spliceable(part))
            elif isinstance(part, Variable):
                self._field(part, encode)
            else:
                self._gap(part)
                self._add(_SOFT_BREAK)

    def finish(self, subject: Template, settings: MessageSettings) -> CompiledLetter:
        fixed = None if subject.variables() else _subject(subject, {})
        return CompiledLetter(
            tuple(self._pieces),
            tuple(self._gaps),
            tuple(self._fields),
            subject,
            fixed,
            settings.unsubscribe_secret,
            settings.view_links,
        )

    def _add(self, content: bytes) -> None:
        self._pieces[-1] += content

    def _gap(self, gap: _Gap) -> None:
        self._gaps.append((len(self._pieces), int(gap)))
        self._pieces += [b"", b""]

    def _field(self, variable: Variable, encode: _Encoder) -> None:
        if variable.rule:
            encode = partial(_rule_value, variable.rule)
        elif variable.url:
            encode = _url_value
        if variable.default:
            try:
                encode(variable.default)
            except _Unfit as exc:
                raise _refusal(variable.name, variable.default, exc) from exc
        self._fields.append((len(self._pieces), variable, encode))
        self._pieces += [b"", b""]


def _merged(parts: list[_Part]) -> list[_Part]:
    """Neighbouring texts in one, so that a soft break stands only where a value does."""
    merged: list[_Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _checked_subject(letter: Letter) -> Template:
    if not letter.subject.strip():
        raise BadInput("subject: it is empty. Give the letter a subject.")
    template = Template.parse(letter.subject)
    for part in template.parts:
        text = part if isinstance(part, str) else part.default or ""
        try:
            _check_header(text)
        except _Unfit as exc:
            raise _refusal("subject", text, exc) from exc
    return template


def _checked_template(where: str, source: str) -> Template:
    _check_letter(where, source)
    return Template.parse(source)


def _check_letter(where: str, source: str) -> None:
    unfit = _UNFIT_IN_LETTER.search(source)
    if unfit:
        raise _refusal(where, source[unfit.start() :], _Unfit(f"contains U+{ord(unfit[0]):04X}"))


def _check_body(value: str) -> None:
    # isprintable() is false for all that is unfit and for some that is fit; it is ten times as fast.
    unfit = None if value.isprintable() else _UNFIT_IN_BODY.search(value)
    if unfit:
        raise _Unfit(f"contains U+{ord(unfit[0]):04X}")


def _check_header(value: str) -> None:
    unfit = None if value.isprintable() else _UNFIT_IN_HEADER.search(value)
    if unfit:
        raise _Unfit(f"contains U+{ord(unfit[0]):04X}, which no header may hold")
    if "=?" in value and _ENCODED_WORD.search(value):
        raise _Unfit("looks like an encoded header")


def _refusal(where: str, value: str, why: _Unfit) -> BadInput:
    shown = value if len(value) <= 60 else value[:57] + "…"
    return BadInput(f"Field {where!r} {why}: {shown!r}. Correct the value and try again.")


# --- encodings ----------------------------------------------------------------------------------


def _text_value(value: str) -> bytes:
    return _cached_value(value) if len(value) <= _CACHED_LENGTH else _cached_value.__wrapped__(value)


def _html_value(value: str) -> bytes:
    return _text_value(escape(value) if _MARKUP.search(value) else value)


def _rule_value(rule: str, value: str) -> bytes:
    return _text_value(ruled(value, rule))


def _url_value(value: str) -> bytes:
    _check_body(value)
    return _text_value(url_encoded(value))


@lru_cache(maxsize=4096)
def _cached_value(value: str) -> bytes:
    _check_body(value)
    return _spliceable(value)


# Three characters short of 76: the soft break and a guarded start need room. Whole escapes only.
_QP_ROOM = 73
_QP_LINE = re.compile(rb".{1,%d}(?<!=)(?<!=.)" % _QP_ROOM, re.DOTALL)


def _spliceable(text: str) -> bytes:
    """Quoted-printable that begins and ends at the start of a line, whatever stands around it."""
    if text.isprintable():  # in one line, then
        encoded = b2a_qp(text.encode())
        if len(encoded) <= _QP_ROOM:
            return _guarded(encoded) + _SOFT_BREAK if encoded else b""
    data = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    # b2a_qp breaks lines without regard to what a line may begin with: its soft breaks are undone.
    encoded = b2a_qp(data).replace(b"=\n", b"")
    lines = (_SOFT_BREAK.join(map(_guarded, _QP_LINE.findall(line))) for line in encoded.split(b"\n"))
    content = b"\r\n".join(lines)
    return content if content.endswith(b"\r\n") else content + _SOFT_BREAK


def _guarded(line: bytes) -> bytes:
    if line.startswith((b".", b"From ")):
        return b"=%02X" % line[0] + line[1:]
    return line


def _mailbox(address: str, name: str | None, where: str = "recipient", name_where: str = "name") -> bytes:
    """``Name <address>``, or the bare address where there is no name, or the name is the address."""
    try:
        mailbox = parse_address(address).text
    except BadInput as exc:
        raise BadInput(f"{where}: {exc}") from exc
    name = name.strip() if name else ""
    if not name or name.lower() == mailbox.lower():
        return mailbox.encode("ascii")
    try:
        phrase = _phrase(name) if len(name) <= _CACHED_LENGTH else _phrase.__wrapped__(name)
    except _Unfit as exc:
        raise _refusal(name_where, name, exc) from exc
    if len(phrase) + len(mailbox) > _MAILBOX_LENGTH:
        phrase = _shortened(name, _MAILBOX_LENGTH - len(mailbox))
        if not phrase:
            return mailbox.encode("ascii")
    room = _HEADER_LINE - len("From: ") - len(phrase) - len(" <>")
    return phrase + (b" <" if len(mailbox) <= room else b"\r\n <") + mailbox.encode("ascii") + b">"


@lru_cache(maxsize=4096)
def _phrase(name: str) -> bytes:
    """A display name (RFC 5322 §3.2.5): atoms, a quoted string, or encoded words."""
    _check_header(name)
    if "@" in name and _SECOND_ADDRESS.search(name):
        raise _Unfit("holds an address where a name should be")
    if len(name) <= 60 and name.isascii() and "=?" not in name:
        if _ATOMS.fullmatch(name):
            return name.encode("ascii")
        return b'"' + name.replace("\\", "\\\\").replace('"', '\\"').encode("ascii") + b'"'
    return _encoded_words(name, len("From: "))


def _shortened(name: str, room: int) -> bytes:
    """The beginning of a name, in whole words if they are short, with an ellipsis; empty if none fits."""
    kept = min(len(name), max(room, 0))
    while kept > 0:
        start = name[:kept]
        words = start.rpartition(" ")[0]
        phrase = _encoded_words((words if 2 * len(words) > kept else start).rstrip() + "…", len("From: "))
        if len(phrase) <= room:
            return phrase
        kept -= max(
            (len(phrase) - room) // 8, 1
        )  # no character takes less than 4/3 in base64, most twice that
    return b""


def _subject(template: Template, fields: Mapping[str, str]) -> bytes:
    words: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            words.append(part)
            continue
        value = part.resolve(fields)
        if value is None:
            raise part.unresolved()
        try:
            _check_header(value)
        except _Unfit as exc:
            raise _refusal(part.name, value, exc) from exc
        words.append(value)
    return _unstructured("".join(words).strip(), len("Subject: "))


def _unstructured(text: str, used: int) -> bytes:
    """Header text: plain and folded at spaces if it is ASCII, encoded words if not."""
    if not text.isascii() or "=?" in text:
        return _encoded_words(text, used)
    if len(text) <= _HEADER_LINE - used:
        return text.encode("ascii")
    lines = [""]
    for word in re.findall(r" *[^ ]+", text):
        room = _HEADER_LINE - (used if len(lines) == 1 else 0)
        if len(word) > _HEADER_LINE - used:
            return _encoded_words(text, used)
        if len(lines[-1]) + len(word) > room:
            lines.append("")
        lines[-1] += word
    return "\r\n".join(lines).encode("ascii")


def _encoded_words(text: str, used: int) -> bytes:
    """RFC 2047 words of whole characters, one a line; readers drop the line breaks between them."""
    data = text.encode()
    words: list[bytes] = []
    start = 0
    while start < len(data):
        room = _HEADER_LINE - used - len(_WORD_START) - len(_WORD_END)
        end = min(start + room // 4 * 3, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # inside a character of UTF-8
            end -= 1
        words.append(_WORD_START + b2a_base64(data[start:end], newline=False) + _WORD_END)
        start, used = end, 1
    return b"\r\n ".join(words)


@lru_cache(maxsize=64)
def _date(timestamp: int) -> bytes:
    return format_datetime(datetime.fromtimestamp(timestamp, UTC)).encode("ascii")
