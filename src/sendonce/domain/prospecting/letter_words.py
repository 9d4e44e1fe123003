"""Words of letters: how a text is cut into words, and when two forms are the same word.

Rough on purpose: the question is only whether a word of a letter also stands in its brief, in whatever case,
number or tense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*|[%‰₽$€£№]")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_BULLET = "—–-•· \t"
_THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))")

_RUSSIAN_NOUN_ENDINGS = """
    иями ями ами ого его ому ему ыми ими иях ях ах ией ей ой ий ый ая яя ое ее ые ие ую юю ов ев ам ям ом ем
    ием ых их ым им ью ия ья ии ию ь и ы а я о е у ю й
"""
_RUSSIAN_VERB_ENDINGS = """
    ировать ирует ируют ает ают ать яет яют ять ить ит ят ат ет ут ют еть уть ал ала али ил ила или ел ела ели
    аем яем аете яете ите ете
"""
_ENGLISH_ENDINGS = "ies es s ed ing y e"
# The shortest stem that may be left: with less, "ответ" would lose what looks like the ending of a verb.
_OF_NOUNS, _OF_VERBS = 3, 5
_LONGEST_FIRST: dict[str, list[tuple[str, int]]] = {
    "ru": sorted(
        [(ending, _OF_NOUNS) for ending in _RUSSIAN_NOUN_ENDINGS.split()]
        + [(ending, _OF_VERBS) for ending in _RUSSIAN_VERB_ENDINGS.split()],
        key=lambda it: -len(it[0]),
    ),
    "en": sorted(((ending, _OF_NOUNS) for ending in _ENGLISH_ENDINGS.split()), key=lambda it: -len(it[0])),
}
_TELLING_WORD = 5
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
    """The tokens of each sentence, cut at every full stop; a line of its own is one, too."""
    for sentence in _SENTENCE_END.split(text):
        found = tokens(sentence.lstrip(_BULLET))
        if found:
            yield found


def plain(word: str) -> str:
    return word.casefold().replace("ё", "е").replace("’", "'")


@lru_cache(4096)
def stem(word: str) -> str:
    """The word without its ending, if enough of it is left to tell it from others."""
    word = plain(word)
    if not _CYRILLIC.search(word):
        return _cut(word.removesuffix("'s"), "en")
    if len(word) > _OF_NOUNS + 2:
        word = word.removesuffix("ся").removesuffix("сь")
    return _cut(word, "ru")


def _cut(word: str, language: str) -> str:
    for ending, shortest in _LONGEST_FIRST[language]:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            return word[: -len(ending)]
    return word


def telling_stems(text: str) -> set[str]:
    """Of the longer words, which tell what a text is about."""
    return {stem(word) for word in words(text) if len(word) >= _TELLING_WORD}
