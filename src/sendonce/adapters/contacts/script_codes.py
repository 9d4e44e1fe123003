"""Sums, slices, shifts and codes by which scripts hide a text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, product, repeat

_MAX_PICKS = 25
_WHOLE = re.compile(r"-?[0-9]{1,4}")
_CODE_IN_SUMS = re.compile(r"(?<=fromCharCode\()\s{0,9}(\d{1,3})\s{0,9}([*+-])\s{0,9}(\d{1,3})\s{0,9}(?=\))")
# TYPO3 shifts letters round within these.
_SHIFTED_RANGES = ((0x2B, 0x3A), (0x40, 0x5A), (0x61, 0x7A))


def with_sums_done(script: str) -> str:
    """``fromCharCode(8*8)`` as ``fromCharCode(64)``."""
    return _CODE_IN_SUMS.sub(_summed, script) if "fromCharCode" in script else script


def slice_of(value: str, method: str, bounds: list[str]) -> str | None:
    """What ``slice``, ``substring`` or ``substr`` give; ``None`` where a bound is not known."""
    found = slice_bounds(bounds)
    if found is None:
        return None
    if method == "substr" and found.stop is not None:
        return value[found.start :][: found.stop]
    return value[found]


def item_at(value: str | Sequence[str], index: str) -> str | None:
    return value[int(index)] if index.isdigit() and int(index[:6]) < len(value) else None


def picked(values: Iterable[str | list[str]]) -> Iterator[str]:
    """What numbers pick from an alphabet or from pieces, whichever loop does it:
    ``s += letters[order[i]]``.
    """
    known = list(values)
    orders = [
        value
        for value in known
        if isinstance(value, list) and len(value) > 2 and all(map(str.isdigit, value))
    ]
    if orders:
        sources = [value for value in known if len(value) > 2 and "@" in value and value not in orders]
        for order, source in islice(product(orders, sources), _MAX_PICKS):
            items = [item_at(source, index) for index in order[:_MAX_CODES]]
            if None not in items:
                yield "".join(item or "" for item in items)


def slice_bounds(bounds: list[str]) -> slice | None:
    if not bounds or not all(_WHOLE.fullmatch(bound) for bound in bounds):
        return None
    return slice(int(bounds[0]), int(bounds[1]) if len(bounds) > 1 else None)


def _summed(found: re.Match[str]) -> str:
    left, right = int(found[1]), int(found[3])
    return str(left * right if found[2] == "*" else left + right if found[2] == "+" else left - right)


def shifted_back(text: str) -> str:
    """A shifted "mailto:", by as much as its first letter tells."""
    by = ord(text[:1] or "m") - ord("m")
    return "".join(_moved(ord(char), by) for char in text)


def _moved(code: int, by: int) -> str:
    for first, last in _SHIFTED_RANGES:
        if first <= code <= last:
            return chr((code - by - first) % (last - first + 1) + first)
    return chr(max(32, code - by))


_CHANGE_OF_CODE = re.compile(
    r"from(?:CharCode|CodePoint)\([^;]{1,120}?([-+^/])\s{0,9}"
    r"(0[xX][0-9a-fA-F]{1,2}|\d{1,3}|[A-Za-z_$]\w{0,30})\s{0,9}\)"
)
_OF_OTHER_BASE = re.compile(r"parseInt\([^;]{1,60}?,\s{0,9}([28])\)")
_OF_HEX = re.compile(r"parseInt\([^;]{1,60},\s{0,9}16\)|[\"']%\$[1&]|[\"']%[\"']\s{0,9}\+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,200}")
_INVERSES: dict[str, Callable[[int, int], int]] = {
    "-": operator.sub,
    "+": operator.add,
    "^": operator.xor,
    "/": operator.floordiv,
}
_MAX_CODES = 400


@dataclass(frozen=True, slots=True)
class Undoing:
    """How a script makes text of numbers or of other text: ``fromCharCode(code ^ 7)``, or from hex. Without a
    key, each code's own place is it, or with hex the first code.
    """

    change: Callable[[int, int], int] | None
    key: int | None
    from_hex: bool
    base: int = 10

    def text_of(self, value: str | Sequence[str]) -> str | None:
        """What the script would make of it; ``None`` if it makes nothing of it."""
        if self.from_hex and _HEX.fullmatch("".join(value)):
            return self._changed(bytes.fromhex("".join(value)))
        if self.change is None and self.base == 10:
            return None
        if isinstance(value, str):
            return self._changed(map(ord, value))
        if not all(item.isdigit() and len(item) < 9 for item in value):
            return None
        try:
            return self._changed(int(item, self.base) for item in value)
        except ValueError:  # a digit that the base does not have
            return None

    def _changed(self, codes: Iterable[int]) -> str:
        few = list(islice(codes, _MAX_CODES))
        if self.change is not None:
            few = list(map(self.change, *self._with_keys(few)))
        return "".join(chr(code) for code in few if 31 < code < 0xD800)

    def _with_keys(self, codes: list[int]) -> tuple[list[int], Iterable[int]]:
        if self.key is not None:
            return codes, repeat(self.key)
        return (codes[1:], repeat(codes[0])) if self.from_hex else (codes, count())


def undoing_of(script: str) -> Undoing | None:
    """The first way by which the script changes codes of letters, where there is one."""
    found = _CHANGE_OF_CODE.search(script) if "fromC" in script else None
    key = _number(found[2], script) if found else None
    from_hex = _OF_HEX.search(script) is not None
    if found and (key or (key is None and (from_hex or _counts(found[2], script)))):
        return Undoing(_INVERSES[found[1]], key, from_hex)
    if not from_hex and (base := _OF_OTHER_BASE.search(script)):
        return Undoing(None, 0, from_hex=False, base=int(base[1]))
    return Undoing(None, 0, from_hex) if from_hex else None


def _counts(name: str, script: str) -> bool:
    """Whether a variable is a place in a list: ``(code, i) => …``, ``for (var i = 0; …``."""
    name = re.escape(name)
    return re.search(rf",\s?{name}\)\s?(?:=>|\{{)|for\s?\((?:var|let)?\s?{name}\s?=", script) is not None


def _number(word: str, script: str) -> int | None:
    """A number, or that of a variable with this name."""
    if word[0].isdigit():
        return int(word, 0) if word[:2] in ("0x", "0X") else int(word)
    stated = re.search(
        rf"\b{re.escape(word)}\s{{0,9}}=\s{{0,9}}(0[xX][0-9a-fA-F]{{1,2}}|\d{{1,3}})\b", script
    )
    return _number(stated[1], script) if stated else None


_CALLED_WITH = re.compile(
    r"\}\s{0,9}\)?\s{0,9}\(\s{0,9}((?:[\"'][^\"'\n]{0,100}[\"']\s{0,9},?\s{0,9}){1,8})\)"
)
_CALLED_AT_ONCE = re.compile(
    r"[(!]\s{0,9}(?:function\s{0,9}\w{0,40}\s{0,9}\(([\w$,\s]{1,100})\)|\(([\w$,\s]{1,100})\)\s{0,9}=>)\s{0,9}\{"
)
_GIVEN = re.compile(r"[\"']([^\"'\n]{0,100})[\"']")
_LONGEST_BODY = 3000
_MAX_CALLS = 20


def given_at_once(script: str) -> dict[str, str]:
    """``u`` and ``d`` of ``(function(u, d){ … })('info', 'firma.ru')``."""
    known: dict[str, str] = {}
    if "}(" in script or "})" in script:
        for call in islice(_CALLED_WITH.finditer(script), _MAX_CALLS):
            heads = list(_CALLED_AT_ONCE.finditer(script, max(0, call.start() - _LONGEST_BODY), call.start()))
            if heads:
                names = (heads[-1][1] or heads[-1][2]).replace(" ", "").split(",")
                known |= dict(zip(names, _GIVEN.findall(call[1]), strict=False))
    return known
