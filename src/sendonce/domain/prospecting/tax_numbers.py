"""ИНН and ОГРН: only with their label near them, and only if the check digits are right.

One of ten numbers of ten digits passes the check by chance, a phone as well as any, so the label is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

# Each spelling is looked for by itself: that is far quicker than a pattern that ignores case.
_INN_LABELS = ("ИНН", "Инн", "инн ", "INN")
_OGRN_LABELS = ("ОГРН", "огрн", "OGRN")
_DIGITS = re.compile(r"\d+")
_SPACED = re.compile(r"(?<=\d)[  ](?=\d)")
# «ИНН/КПП 7707083893/770701001», «ИНН: 77 07 083893»: the number is not far from its label.
_REACH = 60
_MAX_LABELS = 200


def tax_numbers(text: str) -> tuple[list[str], list[str]]:
    """The ИНН and the ОГРН of a text, each once, in order."""
    return _labelled(text, _INN_LABELS, is_inn), _labelled(text, _OGRN_LABELS, is_ogrn)


def _labelled(text: str, labels: Sequence[str], is_right: Callable[[str], bool]) -> list[str]:
    """By the first spelling of the label that has numbers: a page keeps to one."""
    return next(filter(None, (_behind(text, label, is_right) for label in labels)), [])


def _behind(text: str, label: str, is_right: Callable[[str], bool]) -> list[str]:
    found: dict[str, None] = {}
    at = text.find(label)
    for _ in range(_MAX_LABELS):
        if at < 0:
            break
        near = text[at + len(label) : at + len(label) + _REACH]
        number = next(filter(is_right, _numbers(near)), None)
        # «длинный» has no label in it.
        if number and not text[at - 1 : at].isalpha():
            found[number] = None
        at = text.find(label, at + 1)
    return list(found)


def _numbers(near: str) -> Iterator[str]:
    yield from _DIGITS.findall(near)
    yield from _DIGITS.findall(_SPACED.sub("", near))


def is_inn(number: str) -> bool:
    """Ten digits for a company, twelve for a person in business."""
    digits = [int(digit) for digit in number]
    if len(digits) == 10:
        return digits[9] == _check(digits, (2, 4, 10, 3, 5, 9, 4, 6, 8))
    return (
        len(digits) == 12
        and digits[10] == _check(digits, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8))
        and digits[11] == _check(digits, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8))
    )


def _check(digits: Sequence[int], weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False)) % 11 % 10


def is_ogrn(number: str) -> bool:
    """Thirteen digits for a company, fifteen for a person in business."""
    if len(number) not in (13, 15):
        return False
    return int(number[:-1]) % (len(number) - 2) % 10 == int(number[-1])
