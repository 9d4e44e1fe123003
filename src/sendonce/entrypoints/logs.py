"""Logs: one event a line, for people or as JSON, without secrets.

All code of the product logs through the standard library, so that flows and domain need no framework::

    logger = logging.getLogger(__name__)
    logger.info("mailout planned", extra={"fields": {"mailout": mailout.id, "planned": count}})

The text is a constant phrase and the facts are in ``fields``: lines can then be counted and searched.
On a hot path ask ``logger.isEnabledFor(logging.DEBUG)`` first, and a level that is off costs nothing else.

Whatever comes from outside may be in a field: each value is cut to a sane length, control characters
are escaped, e-mail addresses lose their local part (a log outlives an erasure request), and what is or
looks like a secret is masked. The ``@`` of ``message_id`` is left alone, and so is our own sender's address
in ``sender`` (its key) and ``after_mending`` (the command that takes it).
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote, quote_plus

from sendonce.entrypoints.log_files import RotatingFile, Sampler
from sendonce.errors import BadSetting
from sendonce.settings.kinds import MASK

Event = MutableMapping[str, Any]

_LONGEST_VALUE = 4_000
_LONGEST_TRACEBACK = 20_000
_DEEPEST = 6
_WIDEST = 100
# A shorter secret would take ordinary words out of every line.
_SHORTEST_SECRET = 4

_SECRET_KEY = re.compile(r"secret|password|passwd|token|authorization|api_?key|cookie", re.IGNORECASE)
_SECRET_LOOKS = (
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"(://[^\s:@/]{0,256}):[^\s@/]{1,256}@"), rf"\1:{MASK}@"),
    (
        re.compile(
            r"((?:secret|password|passwd|token|authorization|api[_-]?key|signature|credential)[\"']?\s?[=:]\s?[\"']?)"
            r"(?!bearer |basic )[^\s\"'&,;]+",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
    # Access keys of AWS, keys of OpenAI and Notion, a Telegram bot's token.
    (re.compile(r"\b(?:A[KS]IA[0-9A-Z]{16}|sk-[\w-]{16,}|ntn_\w{16,}|\d{6,12}:[\w-]{30,})"), MASK),
)
_LOCAL_PART = re.compile(r"([^\s@<>\"'(),:;=\[\]])[^\s@<>\"'(),:;=\[\]]{0,63}@(?=[\w.-]+)")

_NOBODYS_ADDRESS = frozenset({"message_id", "sender", "after_mending"})

# All that moves a cursor, ends a line somewhere, reorders text or is not a character: C0, C1, line and
# paragraph separators, zero-width and bidirectional marks, half surrogates.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}


def configure_logging(
    level: str = "info",
    fmt: str = "",
    file: Path | None = None,
    secrets: Iterable[str] = (),
    *,
    most_bytes: int = 0,
    keep: int = 0,
    colours: bool = True,
    stream: TextIO | None = None,
) -> None:
    """Send the logs of the process to standard error, and to ``file`` too if there is one.

    ``fmt`` is ``console`` (the default) or ``json``; the file always gets JSON. Libraries are heard from
    warnings on only: at debug level theirs show requests with their credentials. A file of ``most_bytes`` is
    rotated, and ``keep`` former ones stay. A second call replaces the first.
    """
    root = logging.getLogger()
    for old in [it for it in root.handlers if isinstance(it, _OurHandler)]:
        root.removeHandler(old)
        old.close()
    clean = Redactor(secrets)
    out = stream or sys.stderr
    renderer = _json_line if fmt == "json" else _console_line(colours and out.isatty())
    handlers: list[logging.Handler] = [_OurStreamHandler(out)]
    handlers[0].setFormatter(_formatter(clean, renderer))
    if file is not None:
        handlers.append(_file_handler(file, most_bytes, keep))
        handlers[1].setFormatter(_formatter(clean, _json_line))
    sampler = Sampler()
    for handler in handlers:
        handler.addFilter(sampler)
        root.addHandler(handler)
    wanted = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(wanted, logging.WARNING))
    logging.getLogger("sendonce").setLevel(wanted)


class Redactor:
    """Takes out of a value what must not be in a log."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms_of(secret) if len(form) >= _SHORTEST_SECRET}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def fields(self, fields: Event) -> dict[str, Any]:
        return {self.text(str(key)): self.field(str(key), value) for key, value in fields.items()}

    def field(self, key: str, value: object, depth: int = 0) -> Any:
        """The value as JSON can hold it, cleaned."""
        if value is None or isinstance(value, bool | int | float):
            return MASK if _SECRET_KEY.search(key) and isinstance(value, int | float) else value
        if _SECRET_KEY.search(key):
            return MASK if value else ""
        if depth >= _DEEPEST:
            return "…"
        if isinstance(value, dict):
            pairs = list(value.items())[:_WIDEST]
            return {self.text(str(name)): self.field(str(name), item, depth + 1) for name, item in pairs}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.field(key, item, depth + 1) for item in list(value)[:_WIDEST]]
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        return self.text(text, keep_addresses=key in _NOBODYS_ADDRESS)

    def text(self, text: str, longest: int = _LONGEST_VALUE, *, keep_addresses: bool = False) -> str:
        if self._known:
            text = self._known.sub(MASK, text)
        # Cut only after the known secrets are out: half a secret would not be recognised.
        if len(text) > longest:
            text = f"{text[:longest]}… ({len(text) - longest} more)"
        for look, instead in _SECRET_LOOKS:
            text = look.sub(instead, text)
        if "@" in text and not keep_addresses:
            text = _LOCAL_PART.sub(r"\1•••@", text)
        return text


def _forms_of(secret: str) -> set[str]:
    """A secret as it is, in a URL, and inside the quotes of JSON and of a Python repr."""
    return {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}


class _OurHandler(logging.Handler):
    """Marks the handlers of ``configure_logging``."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """The standard one prints the raw arguments of the record, secrets and all.

        A terminal that was closed takes not even this line. That must not stop a worker.
        """
        kind = getattr(sys.exc_info()[0], "__name__", "an error")
        place = f"{Path(record.pathname).name}:{record.lineno}"
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"a log line of {place} could not be written: {kind}\n")


class _OurStreamHandler(_OurHandler, logging.StreamHandler[TextIO]):
    pass


class _OurFileHandler(_OurHandler, RotatingFile):
    pass


def _file_handler(file: Path, most_bytes: int, keep: int) -> logging.Handler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return _OurFileHandler(file, most_bytes, keep)
    except OSError as exc:
        raise BadSetting(
            f"LOG_FILE is '{file}': it cannot be written ({exc.strerror}). Set it to a file in a directory"
            " that this user may write to, or leave it empty."
        ) from exc


def _formatter(clean: Redactor, renderer: Callable[[Any, str, Event], str]) -> logging.Formatter:
    import structlog

    def compose(_logger: Any, _method: str, given: Event) -> Event:
        return _compose(given["_record"], given, clean)

    return structlog.stdlib.ProcessorFormatter(processors=[compose, renderer])


def _compose(record: logging.LogRecord, given: Event, clean: Redactor) -> dict[str, Any]:
    """The event of a record: time, level, logger and text first, then its fields, then its exception.

    structlog has moved the text and the exception from the record into ``given``.
    """
    event: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "pid": record.process,
        "event": clean.text(str(given["event"])),
    }
    fields = getattr(record, "fields", None)
    for key, value in clean.fields(fields if isinstance(fields, dict) else {}).items():
        event[f"{key}_" if key in event else key] = value
    error = (given.get("exc_info") or (None, None, None))[1]
    if error is not None:
        event["error"] = clean.text(f"{type(error).__name__}: {error}")
        event["at"] = _place(error)
        event["traceback"] = clean.text("".join(traceback.format_exception(error)), _LONGEST_TRACEBACK)
    return event


def _place(error: BaseException) -> str:
    """The innermost frames, nearest first: ``engine.py:42 turn < worker.py:10 run``."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{Path(it.filename).name}:{it.lineno} {it.name}" for it in reversed(frames))


def _json_line(_logger: Any, _method: str, event: Event) -> str:
    line = json.dumps(event, ensure_ascii=False, allow_nan=True, default=str)
    # json.dumps lets C1 controls and separators through; outside strings there are none.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _console_line(colours: bool) -> Callable[[Any, str, Event], str]:
    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colours else text

    def render(_logger: Any, _method: str, event: Event) -> str:
        fixed = {key: event.pop(key) for key in ("time", "level", "logger", "pid", "event")}
        event.pop("traceback", None)  # it is in the JSON; a person gets the error and its place
        local = datetime.fromisoformat(fixed["time"]).astimezone()
        pairs = (f"{paint(_escaped(key), '36')}={_value(value)}" for key, value in event.items())
        level = paint(f"{fixed['level']:<8}", _COLOURS.get(fixed["level"], "0"))
        text = paint(_escaped(fixed["event"]), "1")
        return " ".join([paint(f"{local:%Y-%m-%d %H:%M:%S}", "2"), level, text, *pairs])

    return render


def _value(value: object) -> str:
    """Bare where it is one plain word, else quoted: a value must not look like the next field."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str) and (not value or re.search(r"[\s=\"'\\]", value)):
        text = json.dumps(value, ensure_ascii=False)
    return _escaped(text)


def _escaped(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
