"""Addresses that a few lines of JavaScript put together: a tiny evaluator of constant string expressions.

It knows literals, variables, ``+``, ``join``, ``push``, ``reverse``, ``replace``, ``slice``,
``fromCharCode``, ``atob``, ``unescape`` and functions that join what they are given. Nothing is run: what it
does not know breaks the expression off. Each token is read once.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from sendonce.adapters.contacts.script_codes import (
    given_at_once,
    item_at,
    picked,
    shifted_back,
    slice_bounds,
    slice_of,
    undoing_of,
    with_sums_done,
)
from sendonce.adapters.contacts.script_owners import is_called_others, places_of_others

MAX_SCRIPT = 100_000
_MAX_VALUE = 4000
# What is put together, in characters: so many times the script's length, and a little for the shortest.
_WORK_BY_LENGTH, _LEAST_WORK = 2, 1000
_MAX_DEPTH = 20

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|<!--)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)
    |(?P<regex>(?<=[(,])/(?:[^/\\\n]|\\.)+/[gimsuy]*)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<number>0[xX][0-9a-fA-F]+|\d+)
    |(?P<sign>\+=|=>|===?|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|([0-3]?[0-7]{2})|(.))", re.DOTALL
)
_CODED_LETTER = re.compile(r"\\(?:[xu]|[0-3]?[0-7]{2})")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": "", "v": "", "0": "", "\n": ""}
_SLOT = re.compile(r"\$\{([^{}]{1,100})\}")
_PATH = re.compile(r"\s*[A-Za-z_$][\w$.]*\s*")
# A pattern of one character, of few kinds: no other is run.
_ONE_OF = re.compile(r"(?:\[[^\]\\]{1,40}\]|\\[dsDW])\+?")
# The idiom of rot13 in one line; the function that does it for many.
_ROT13 = re.compile(
    r"rot-?13|nopqrstuvwxyzabcdefghijklm|charCodeAt\s*\(\s*0?\s*\)\s*[+-]\s*13|\+\s*13\b|%\s*26",
    re.IGNORECASE,
)
_MARKS_OF_ROT13 = ("13", "26", "nopqrstuvwxyzabcdefghijklm")
_HINTS = (
    *("@", "%40", "x40", "u0040", "&#64", "&#x40", "fromCharCode", "atob", "mailto", "Mailto", "unescape"),
    *("fromCodePoint", "decodeURI", "\\100"),
    *("reverse", "[at]", "(at)", "rot13", "join(", "ail"),
)
_UNKNOWN = "\x00"
_SHORT_SCRIPT = 500
_MAX_SHORT, _MAX_SHARED = 50, 100
_MAX_ITEMS = 64
_MAX_HELPERS = 5
_MAX_APART = 30
# A function of a few parameters whose first words join them by an @.
_HELPER = re.compile(
    r"(?:function\s{1,9}(\w{1,40})\s?\(([\w\s,]{3,40})\)\s{0,9}\{([^{}]{0,120}?)"
    r"|\b(?:const|let|var)\s{1,9}(\w{1,40})\s?=\s?\(([\w\s,]{3,40})\)\s?=>([^;]{0,80}?))"
    r"((?:\+\s?[\"']@[\"']|\}@\$)[^;\n]{0,120})"
)
_WRITING = (("name", "write"), ("name", "writeln"))
_WITH_FUNCTION = ("map", "reduce", "reduceRight")
_TOPS = ("ru", "com", "net", "org", "su", "by", "kz")
_GLOBAL = frozenset(("window", "self", "globalThis"))

Value = str | list[str]


class Helper(NamedTuple):
    """A function that joins what it is given."""

    parameters: list[str]
    body: str


Helpers = Mapping[str, Helper]
NO_HELPERS: Helpers = {}


@dataclass(frozen=True, slots=True)
class Text:
    """A string that the script holds. ``made``: put together or decoded, and not simply written. ``sample``:
    it is said to be one, or a visitor's."""

    text: str
    made: bool
    name: str
    sample: bool = False


def script_texts(
    script: str, known: dict[str, Value] | None = None, helpers: Helpers = NO_HELPERS
) -> Iterator[Text]:
    """Strings that a script writes or puts together, in order. ``known`` are variables of other scripts."""
    script = script[:MAX_SCRIPT]
    if any(hint in script for hint in _HINTS) or any(f"{name}(" in script for name in helpers):
        shared: dict[str, Value] = {**(known or {}), **given_at_once(script)}
        yield from _Reader(with_sums_done(script), shared, helpers).texts()


def variables_of(scripts: list[str]) -> dict[str, Value]:
    """Those of short scripts, where another script has an @ to put between them. Long ones are libraries,
    whose names mean nothing elsewhere."""
    known: dict[str, Value] = {}
    if len(scripts) > 1 and any(map(_joins, scripts)):
        short = (script for script in scripts if len(script) <= _SHORT_SCRIPT)
        for script in islice(short, _MAX_SHORT):
            deque(_Reader(script, known).texts(), maxlen=0)
    return dict(islice(known.items(), _MAX_SHARED))


def helpers_of(scripts: list[str]) -> Helpers:
    """``function m(u, d) { return u + '@' + d }``"""
    found = (
        helper for script in scripts if _joins(script) for helper in _HELPER.finditer(script[:MAX_SCRIPT])
    )
    return {
        helper[1] or helper[4]: Helper(
            (helper[2] or helper[5]).replace(" ", "").split(","), (helper[3] or helper[6] or "") + helper[7]
        )
        for helper in islice(found, _MAX_HELPERS)
    }


def _joins(script: str) -> bool:
    return "'@'" in script or '"@"' in script or "}@$" in script


def rot13_is_used(script: str) -> bool:
    return any(mark in script for mark in _MARKS_OF_ROT13) and _ROT13.search(script) is not None


class _Reader:
    def __init__(self, script: str, known: dict[str, Value], helpers: Helpers = NO_HELPERS) -> None:
        self._tokens = [
            (found.lastgroup or "", found[0])
            for found in _TOKEN.finditer(script)
            if found.lastgroup != "blank"
        ]
        self._at = 0
        self._known = known
        self._helpers = helpers
        self._made = False
        self._left = _LEAST_WORK + _WORK_BY_LENGTH * len(script)
        self._rot13 = rot13_is_used(script)
        self._undoing = undoing_of(script)
        self._other_names: dict[str, str] = {}

    def texts(self) -> Iterator[Text]:
        while self._at < len(self._tokens):
            before = self._at
            yield from self._statement()
            self._at = max(self._at, before + 1)
        yield from (Text(text, True, "") for text in picked(self._known.values()))
        yield Text("".join(self._written()), True, "")

    def _written(self) -> Iterator[str]:
        """What calls of ``document.write`` put into the page, one after the other."""
        for place, token in enumerate(self._tokens):
            if token in _WRITING and self._tokens[place - 1][1] == ".":
                self._at = place + 1
                yield from map(_as_text, self._arguments())

    def _statement(self) -> Iterator[Text]:
        if self._token(0)[1] in _GLOBAL and self._token(1)[1] == ".":
            self._at += 2
        kind, word = self._token(0)
        name, began = "", self._at
        if kind == "sign" and word in "[{" and self._take_apart():
            return
        if (kind == "name" and self._token(1)[1] in ("=", "+=", ":")) or self._is_quoted_key(kind):
            name, sign = word.strip("\"'"), self._token(1)[1]
            self._at += 2
            value = self._evaluate()
            if value is None:
                return
            if sign == "+=" and isinstance(value, str):
                value = _as_text(self._paid(str(self._known.get(name, "")) + value))
                self._made = True
            self._known[name] = value if isinstance(value, list) else value[:_MAX_VALUE]
        elif self._token(2)[1] == "push" and isinstance(self._known.get(word), list):
            self._at += 3
            self._push(word)
            return
        elif kind == "name" and self._token(1)[1] == "(" and (word == "eval" or self._is_helper(word)):
            self._at += 1
            yield from self._run() if word == "eval" else self._call(word)
            return
        elif kind in ("string", "name") or word == "[":
            compared = self._at > 0 and self._token(-1)[1] in ("==", "===")
            value = self._evaluate()
            if compared:
                return
        else:
            return
        sample = "@" in str(value) and (is_called_others(name) or self._places_of_others[began])
        yield from self._told(value, "" if sample else name, sample=sample)

    @cached_property
    def _places_of_others(self) -> list[bool]:
        return places_of_others(self._tokens)

    def _take_apart(self) -> bool:
        """``[u, d] = ['info', 'firma.ru']``; ``{user: u} = {user: 'info'}``, whose fields are read next."""
        closing = "]" if self._token(0)[1] == "[" else "}"
        end = next((place for place in range(1, _MAX_APART) if self._token(place)[1] == closing), None)
        if end is None or self._token(end + 1)[1] != "=":
            return False
        words = [self._token(place)[1] for place in range(1, end)]
        self._at += end + 2
        if closing == "]":
            value = self._evaluate()
            if isinstance(value, list):
                self._known |= dict(zip(words[::2], value, strict=False))
        else:
            pairs = zip(words, words[1:], words[2:], strict=False)
            self._other_names |= {other: key for key, sign, other in pairs if sign == ":"}
        return True

    def _is_quoted_key(self, kind: str) -> bool:
        """``{"email": "info@firma.ru"}``"""
        return kind == "string" and self._token(1)[1] == ":"

    def _is_helper(self, name: str) -> bool:
        return "mail" in name.lower() or name in self._helpers

    def _push(self, name: str) -> None:
        items = self._known[name]
        if isinstance(items, list) and len(items) < _MAX_ITEMS:
            self._known[name] = [*items, *map(_as_text, self._arguments())][:_MAX_ITEMS]

    def _call(self, name: str) -> Iterator[Text]:
        """``mail('info', 'firma.ru')``: a helper that joins what it is given."""
        arguments = [value for value in self._arguments() if isinstance(value, str)]
        for value in arguments:
            yield from self._told(value, name)
            if "UnCrypt" in name:
                yield Text(shifted_back(value), True, name)
        if name in self._helpers:
            parameters, body = self._helpers[name]
            yield from _Reader(body, dict(zip(parameters, arguments, strict=False))).texts()
            return
        if (len(arguments) == 2 and "." in arguments[0] and "." not in arguments[1]) or arguments[0] in _TOPS:
            arguments.reverse()
        if 2 <= len(arguments) <= 3 and not any("@" in value for value in arguments):
            yield Text(f"{arguments[0]}@{'.'.join(arguments[1:])}", True, name)

    def _run(self) -> Iterator[Text]:
        """``eval("var e = 'info' + '@' + 'firma.ru'")``"""
        for script in self._arguments():
            yield from self._told(script, "")
            if isinstance(script, str) and "eval" not in script:
                yield from _Reader(script, self._known).texts()

    def _told(self, value: Value | None, name: str, *, sample: bool = False) -> Iterator[Text]:
        if isinstance(value, str):
            decoded = html.unescape(value)
            yield Text(decoded, self._made or decoded != value, name, sample)
            if self._rot13 and "@" in decoded:
                yield Text(codecs.encode(decoded, "rot13"), True, name)
        elif value is not None:
            yield from (Text(item, self._made, name, sample) for item in value if "mailto:" in item)
        if value and self._undoing is not None and len(value) > 5:
            yield Text(self._undoing.text_of(value) or "", True, name)
        elif (
            isinstance(value, list)
            and len(value) > 5
            and all(item.isdigit() and 31 < int(item[:4]) < 127 for item in value)
        ):
            yield Text("".join(chr(int(item)) for item in value), True, name)

    def _token(self, ahead: int) -> tuple[str, str]:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ("end", "")

    def _take(self, sign: str) -> bool:
        if self._token(0)[1] == sign and self._token(0)[0] == "sign":
            self._at += 1
            return True
        return False

    def _paid(self, value: Value) -> Value:
        """Unknown once the work that the script may cause is done; what it simply writes is still read."""
        if self._left > 0:
            self._left -= len(value) if isinstance(value, str) else sum(map(len, value)) + len(value)
        return value if self._left > 0 else _UNKNOWN

    def _recalled(self, name: str) -> Value:
        return self._paid(self._known.get(self._other_names.get(name, name), _UNKNOWN))

    def _evaluate(self) -> Value | None:
        self._made = False
        return self._sum(0)

    def _sum(self, depth: int) -> Value | None:
        value = self._term(depth)
        while value is not None and self._token(0)[1] == "+" and self._token(0)[0] == "sign":
            self._at += 1
            more = self._term(depth)
            self._made = True
            joined = "".join(_as_text(part) for part in (value, more))
            if len(joined) > _MAX_VALUE:
                return None
            value = joined
        return value

    def _term(self, depth: int) -> Value | None:
        if depth > _MAX_DEPTH:
            return None
        kind, word = self._token(0)
        value: Value | None = None
        if kind == "string":
            self._at += 1
            value = self._literal(word)
        elif kind == "number":
            self._at += 1
            value = str(int(word, 0) if word[:2] in ("0x", "0X") else word)
        elif word == "(":
            self._at += 1
            value = self._sum(depth + 1)
            self._take(")")
        elif word == "-" and self._token(1)[0] == "number":
            self._at += 2
            value = f"-{self._token(-1)[1]}"
        elif word == "[":
            value = self._list(depth)
        elif kind == "name":
            value = self._named(depth)
        return self._methods(value, depth) if value is not None else None

    def _literal(self, token: str) -> str:
        text = _ESCAPE.sub(_unescaped, token[1:-1])
        if token[0] == "`" and "${" in text:
            self._made = True
            filled = _SLOT.sub(self._slot, text)
            return filled[:_MAX_VALUE]
        if _CODED_LETTER.search(token):
            self._made = True
        return text

    def _slot(self, slot: re.Match[str]) -> str:
        if _PATH.fullmatch(slot[1]):
            return _as_text(self._recalled(slot[1].strip().rpartition(".")[2]))
        return _as_text(self._paid(_Reader(slot[1], self._known)._evaluate() or _UNKNOWN))

    def _list(self, depth: int) -> list[str]:
        self._at += 1
        items: list[str] = []
        while self._token(0)[0] != "end" and not self._take("]"):
            before = self._at
            spread = self._token(0)[1] == self._token(1)[1] == self._token(2)[1] == "."
            self._at += 3 * spread
            value = self._sum(depth + 1)
            items += (value or "")[: max(0, _MAX_VALUE - len(items))] if spread else [_as_text(value)]
            self._take(",")
            if self._at == before:
                self._at += 1
                break
        return items

    def _named(self, depth: int) -> Value | None:
        """A variable, or one of the functions that make text."""
        path = [self._token(0)[1]]
        self._at += 1
        if path[0] == "new" and self._token(0)[1] == "Array":
            self._at += 1
            return list(map(_as_text, self._arguments(depth + 1)))
        if self._token(0)[1] == "[" and self._token(1)[0] == "string" and self._token(2)[1] == "]":
            self._at += 3
            return self._recalled(self._token(-2)[1].strip("\"'"))
        while path[-1] not in self._known and self._token(0)[1] == "." and self._token(1)[0] == "name":
            path.append(self._token(1)[1])
            self._at += 2
        name = path[-1]
        if self._token(0)[1] != "(":
            return self._recalled(name) if len(path) == 1 or name in self._known else None
        if path == ["Array", "from"]:
            return list(_as_text(next(iter(self._arguments(depth + 1)), "")))
        if name in (
            "fromCharCode",
            "fromCodePoint",
            "atob",
            "escape",
            "unescape",
            "decodeURIComponent",
            "decodeURI",
        ):
            self._made = True
            return _decoded(name, self._arguments(depth + 1))
        return None

    def _arguments(self, depth: int = 0) -> list[Value]:
        """What is between the parentheses at hand, as far as it is known."""
        found: list[Value] = []
        if not self._take("("):
            return found
        while self._token(0)[0] != "end" and not self._take(")"):
            before = self._at
            if self._token(0)[0] == "regex":
                found.append(self._token(0)[1])
                self._at += 1
            else:
                value = self._sum(depth + 1)
                found.append(_UNKNOWN if value is None else value)
            self._take(",")
            if self._at == before:
                break
        return found

    def _methods(self, value: Value, depth: int) -> Value:
        while True:
            if self._token(0)[1] == "." and self._token(1)[0] == "name" and self._token(2)[1] == "(":
                method = self._token(1)[1]
                self._at += 2
                if method in _WITH_FUNCTION:
                    value = self._paid(self._mapped(value, method))
                else:
                    value = self._paid(self._applied(value, method, self._arguments(depth + 1)))
                self._made = True
            elif self._token(0)[1] == "[" and self._token(2)[1] == "]":
                index = self._token(1)[1]
                self._at += 3
                value = item_at(value, index) or _UNKNOWN
                self._made = True
            else:
                return value

    def _mapped(self, value: Value, method: str) -> Value:
        """``map(atob)``, ``map(code => String.fromCharCode(code ^ 7))``: by the names that it calls."""
        called = {word for kind, word in self._skipped() if kind == "name"}
        if not isinstance(value, list):
            return _UNKNOWN
        if method != "map":
            return "".join(value[::-1] if method == "reduceRight" else value)
        if "atob" in called:
            return [decoded_base64(item) or _UNKNOWN for item in value]
        if called & {"fromCharCode", "fromCodePoint"}:
            made = self._undoing.text_of(value) if self._undoing is not None else None
            return list(made if made is not None else _decoded("fromCharCode", [value]))
        sources = [self._known[name] for name in sorted(called) if len(self._known.get(name, "")) > 1]
        if len(sources) == 1:
            return [item_at(sources[0], index) or _UNKNOWN for index in value]
        return _UNKNOWN

    def _skipped(self) -> list[tuple[str, str]]:
        """The tokens between the parentheses at hand."""
        began, open_ones = self._at, 0
        while self._token(0)[0] != "end":
            word = self._token(0)[1] if self._token(0)[0] == "sign" else ""
            self._at += 1
            open_ones += (word == "(") - (word == ")")
            if open_ones == 0:
                break
        return self._tokens[began : self._at]

    def _applied(self, value: Value, method: str, arguments: list[Value]) -> Value:
        first = _as_text(arguments[0]) if arguments else ""
        if isinstance(value, list):
            return _list_method(value, method, list(map(_as_text, arguments)))
        if method in ("charAt", "at"):
            return item_at(value, first) or _UNKNOWN
        if method in ("slice", "substring", "substr"):
            return slice_of(value, method, list(map(_as_text, arguments))) or _UNKNOWN
        if method == "split":
            return value.split(first) if first else list(value)
        if method == "concat":
            return value + "".join(map(_as_text, arguments))
        if method == "replace" or method == "replaceAll":
            return self._replaced(value, first, _as_text(arguments[1]) if len(arguments) > 1 else _UNKNOWN)
        if method == "match" and first == "/../g":
            return [value[place : place + 2] for place in range(0, len(value), 2)]
        return value.lower() if method == "toLowerCase" else value.strip() if method == "trim" else value

    def _replaced(self, value: str, what: str, by: str) -> str:
        if len(what) > 2 and what[0] == "/" and "/" in what[1:]:
            pattern = what[1 : what.rindex("/")]
            if "a-z" in pattern.lower():
                return codecs.encode(value, "rot13") if self._rot13 else value
            if _ONE_OF.fullmatch(pattern) and by != _UNKNOWN:
                return re.sub(pattern, lambda _: by, value)
            what = re.sub(r"\\(.)", r"\1", pattern)
        most = _MAX_VALUE // max(1, len(by)) + 1
        return value.replace(what, by, most) if what and by != _UNKNOWN else value


def _as_text(value: Value | None) -> str:
    if value is None:
        return _UNKNOWN
    return value if isinstance(value, str) else ",".join(value)


def _list_method(value: list[str], method: str, arguments: list[str]) -> Value:
    if method == "reverse":
        return value[::-1]
    if method == "join":
        between = arguments[0] if arguments else ","
        return between.join(value[: _MAX_VALUE // max(1, len(between)) + 2])[:_MAX_VALUE]
    if method == "slice":
        bounds = slice_bounds(arguments)
        return value[bounds] if bounds is not None else _UNKNOWN
    if method == "concat":
        return [*value, *arguments][:_MAX_VALUE]
    return _UNKNOWN


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code or found[4]:
        number = int(code, 16) if code else int(found[4], 8)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
    return _CONTROL.get(found[5], found[5])


def _decoded(function: str, arguments: list[Value]) -> str:
    flat = [item for value in arguments for item in (value if isinstance(value, list) else [value])]
    if function in ("fromCharCode", "fromCodePoint"):
        codes = [int(item) for item in flat if item.isdigit() and len(item) < 6]
        return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    text = flat[0] if flat else ""
    if function == "escape":
        return text
    return decoded_base64(text) or _UNKNOWN if function == "atob" else unquote(text)


def decoded_base64(text: str) -> str | None:
    """Text that was base64, with or without its padding."""
    text = "".join(text.split()).rstrip("=")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=None, validate=True)
        return data.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
