"""What keeps a letter from being sent: one judgement for the start of a mailout and for the doctor."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.templates import Template
from sendonce.domain.mailouts.rendering import GMAIL_CUTS_AT

# The footer and the preheader come on top of the letter's own HTML.
FOOTER_SIZE = 1_000
# RFC 5322 §2.1.1 has lines of 998 characters, and some servers unfold a header before they count.
LONGEST_SUBJECT = 900

EMAIL_ADVICE = (
    "{{ email }} is not filled in: a letter may be forwarded, so the reader's address is not put into it. "
    "If you need it, import it a second time as a column of another name, and write that name."
)


class LetterPart(StrEnum):
    TEXT = "text"
    SUBJECT = "subject"
    SIZE = "size"


class LetterFault(NamedTuple):
    """``words`` say what is wrong and what to do."""

    part: LetterPart
    words: str


def faults_of(letter: Letter) -> list[LetterFault]:
    """The letter is empty, its subject is too long, or Gmail would clip it."""
    found = []
    if not letter.text.strip() and "<img" not in letter.html:
        words = "The letter has neither a word nor an image: write something below its subject."
        found.append(LetterFault(LetterPart.TEXT, words))
    if len(letter.subject) > LONGEST_SUBJECT:
        words = (
            f"The subject has {len(letter.subject)} characters, and readers see the first 70 or so: make it "
            f"shorter than {LONGEST_SUBJECT}."
        )
        found.append(LetterFault(LetterPart.SUBJECT, words))
    if size_of(letter) > GMAIL_CUTS_AT:
        words = (
            f"The letter's HTML has {(size_of(letter) - FOOTER_SIZE) // 1000} KB, and Gmail hides what comes "
            "after 102 KB, the way out included: shorten it."
        )
        found.append(LetterFault(LetterPart.SIZE, words))
    return found


def size_of(letter: Letter) -> int:
    """The bytes of HTML that a reader gets."""
    return len(letter.html.encode("utf-8", "replace")) + FOOTER_SIZE


def needed_of(letter: Letter) -> list[str]:
    """The variables without a default: every reader has to have a value for each."""
    sources = (letter.subject, letter.preheader, letter.html, letter.text)
    parts = [part for source in sources for part in Template.parse(source).parts]
    return sorted({part.name for part in parts if not isinstance(part, str) and part.default is None})


def lacking_words(lacking: Mapping[str, int]) -> list[str]:
    """What to do about each variable that so many readers have no value for."""
    return [EMAIL_ADVICE if name == "email" else _advice(name, people) for name, people in lacking.items()]


def _advice(name: str, people: int) -> str:
    return (
        f"{{{{ {name} }}}} has no value for {people} active subscribers: give it a default, "
        f'as in {{{{ {name} | default: "…" }}}}.'
    )
