"""Words of letters: how a text is cut into words, and when two forms are the same word.

Rough on purpose: the question is only whether a word of a letter also stands in its brief, in whatever case,
number or tense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*|[%‰₽$€£№]")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_BULLET = "—–-•· \t"
_THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))")

_RUSSIAN_ENDINGS = """
    иями ями ами ого его ому ему ыми ими иях ях ах ией ей ой ий ый ая яя ое ее ые ие ую юю ов ев ам ям ом ем
    ием     ых их ым им ью ия ья ии ию ь и ы а я о е у ю й
    ировать ирует ируют ает ают ать яет яют ять ить ит ят ет ут ют еть уть ал ала али ил ила или ел ела ели
    аем яем им аете яете ите ете
"""
_ENGLISH_ENDINGS = "ies es s ed ing y e"
_LONGEST_FIRST = {
    "ru": sorted(_RUSSIAN_ENDINGS.split(), key=len, reverse=True),
    "en": sorted(_ENGLISH_ENDINGS.split(), key=len, reverse=True),
}
_SHORTEST_STEM = 3
_SHARED_BEGINNING, _LONGEST_DIFFERENCE = 5, 4
_CYRILLIC = re.compile("[а-я]")


def words(text: str) -> list[str]:
    """In lower case and with е for ё; a hyphenated word is one."""
    return [plain(word) for word in _WORD.findall(text)]


def tokens(text: str) -> list[str]:
    """Words, numbers and the signs that give a number its meaning. ``12 000`` is one number."""
    return [plain(token).replace(",", ".") for token in _TOKEN.findall(_THOUSANDS.sub("", text))]


def is_number(token: str) -> bool:
    return token[0].isdigit()


def sentences(text: str) -> Iterator[list[str]]:
    """The tokens of each sentence; a line of its own is one, too."""
    for sentence in _SENTENCE_END.split(text):
        found = tokens(sentence.lstrip(_BULLET))
        if found:
            yield found


def plain(word: str) -> str:
    return word.casefold().replace("ё", "е").replace("’", "'")


def stem(word: str) -> str:
    """The word without its ending, if enough of it is left to tell it from others."""
    word = plain(word)
    if not _CYRILLIC.search(word):
        return _cut(word.removesuffix("'s"), "en")
    if len(word) > _SHORTEST_STEM + 2:
        word = word.removesuffix("ся").removesuffix("сь")
    return _cut(word, "ru")


def _cut(word: str, language: str) -> str:
    for ending in _LONGEST_FIRST[language]:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def are_related(one: str, other: str) -> bool:
    """Whether two words begin alike and differ in little more than an ending: "deliver" and "delivery"."""
    shared = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared >= _SHARED_BEGINNING and max(len(one), len(other)) - shared <= _LONGEST_DIFFERENCE


def runs(of: list[str], length: int) -> set[tuple[str, ...]]:
    """Every run of so many neighbours."""
    return {tuple(of[at : at + length]) for at in range(len(of) - length + 1)}
