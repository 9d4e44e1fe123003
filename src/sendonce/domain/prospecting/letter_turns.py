"""Turns of speech that say more than their words: orders, a past that never was, words in single letters.

Each of these words is common enough for any letter. Together they would tell the reader to do something, or
that something was agreed, and no brief says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from sendonce.domain.prospecting.letter_words import plain, runs, whole_sentences, words

_OURS = frozenset(["we", "i", "me", "us", "gladly", "happily"])
_HELPING = frozenset(["will", "can", "could", "would", "may", "might", "also"])
_BEFORE_A_NOUN = frozenset(["a", "the", "short", "quick", "brief", "minute", "first", "our"])
_READERS_DUTY = frozenset(["you", "have", "need", "please", "want", "ask"])
_ORDERS = frozenset(["send", "tell", "share", "call", "contact", "write"])
_OTHER_ORDERS = re.compile(r"\bopen (?!to\b|for\b)|\breply with\b")

_TO_GIVE = frozenset(["отправить", "прислать", "направить", "предоставить", "подготовить"])
_FROM_THE_READER = frozenset(["нам", "мне", "можете", "пожалуйста", "через"])

_OF_AN_ANSWER = re.compile(
    r"\b(?:на|по) ваш\w{0,3} (?:письм|запрос|обращени|заявк|звон|просьб)\w*|\bответ\w* на ваш(?!и вопросы)"
    r"|\b(?:reply|answer|response|according|thank you|thanks) (?:to|for) your (?:re\w*|inq\w*)"
    r"|\byour (?:letter|email|call|reply|answer)\b(?! (?:would|is welcome))"
)
_OF_THE_READER = re.compile(
    r"\b(?<!if )(?<!whether )(?<!when )(?<!since )you (?:are|have|shall|must|were|had)\b"
)
_NO_WORDS = re.compile(r"[^\w\s]+")
_LONGEST_MARK = 3
_JOINING, _SHORT_PREPOSITIONS = frozenset("иа"), frozenset("вкосу")


def orders(text: str) -> Iterator[str]:
    """What the reader is told to do, but for answering."""
    for sentence in whole_sentences(plain(text)):
        found = words(sentence)
        yield from (word for at, word in enumerate(found) if word in _ORDERS and not _is_ours(found[:at]))
        yield from (match[0].strip() for match in _OTHER_ORDERS.finditer(sentence))
        if (given := _TO_GIVE.intersection(found)) and not _FROM_THE_READER.isdisjoint(found):
            yield min(given)


def _is_ours(before: Sequence[str]) -> bool:
    """Whether we do it, or it is a noun: "we will send", "glad to send", "a short call"."""
    *earlier, last = ["", "", *before]
    if last == "to":
        return earlier[-1] not in _READERS_DUTY
    if last in _HELPING:
        return earlier[-1] in _OURS | _HELPING
    return last in _OURS or last in _BEFORE_A_NOUN


def false_past(text: str) -> Iterator[str]:
    """A letter of ours is the first: nobody asked, wrote, agreed or was anywhere."""
    for pattern in (_OF_AN_ANSWER, _OF_THE_READER):
        yield from (found[0] for found in pattern.finditer(" ".join(plain(text).split())))


def spelt_out(text: str, trusted: Sequence[str]) -> Iterator[str]:
    """Words in single letters, by spaces or hyphens, that the brief does not write so."""
    known = [words(it) for it in trusted]
    found = words(text)
    for short, group in groupby(found, key=lambda word: len(word) == 1):
        run = list(group)
        if short and len(run) > 1 and not _joins(run) and not _stand_in(run, known):
            yield " ".join(run)
    for word in found:
        in_parts = "-" in word and any(len(part) == 1 for part in word.split("-"))
        if in_parts and not any(word in it for it in known):
            yield word


def _joins(run: list[str]) -> bool:
    """«и в», «а с»"""
    return len(run) == 2 and run[0] in _JOINING and run[1] in _SHORT_PREPOSITIONS


def _stand_in(run: list[str], known: list[list[str]]) -> bool:
    return any(tuple(run) in runs(it, len(run)) for it in known)


def marks_without_words(text: str) -> Iterator[str]:
    """Morse code and the like: marks alone, longer than an ellipsis or one after another."""
    chunks = [chunk if _NO_WORDS.fullmatch(chunk) else "" for chunk in text.split()]
    yield from (chunk for chunk in chunks if len(chunk) > _LONGEST_MARK)
    yield from (f"{one} {other}" for one, other in pairwise(chunks) if one and other)
