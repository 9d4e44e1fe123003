"""The checks that a letter must pass before it may be sent.

Links, addresses, phones and numbers have to stand in the brief as they are. A letter that no person has
edited is made of known lines, and one check looks after that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_lines import BENEFITS, LONGEST_SUBJECT, lines_for
from sendonce.domain.prospecting.letter_words import is_number, plain, sentences, stem, tokens, words

LONGEST_BODY = 5000
FEWEST_WORDS, MOST_WORDS = 15, 250
_MOST_FOUND = 5
_MOST_FOREIGN = 0.2
_SHORTEST_PHONE = 7
_PAUSE = re.compile(r"[()«»„“”\";:—]|,(?!\d)")  # What counts a number does not stand beyond one.
_NO_UNITS = frozenset(["за", "и", "в", "на", "до", "или", "and", "or", "to", "for", "per", "in"])
# How a stem names what a number counts: 30 percent is 30 %.
_CURRENCIES = {
    **dict.fromkeys(("руб", "рубл", "р", "rub"), "₽"),
    **dict.fromkeys(("долл", "доллар", "usd", "dollar"), "$"),
    **dict.fromkeys(("евро", "евр", "eur", "euro"), "€"),
    **dict.fromkeys(("процент", "percent"), "%"),
}
_SIGNS = frozenset(_CURRENCIES.values())

_LETTERS = "A-Za-zА-Яа-яЁё"
_ORDINARY = re.compile(rf"[{_LETTERS}0-9 \n.,:;!?()«»„“”\"'’–—…/-]+")
# Bounded, and begun at the beginning of a word only: a long text takes linear time.
_HOST = r"(?<!\w)[^\W_][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}\.[^\W\d_]{2,24}(?:[/:?#]\S*)?"
_LINK = re.compile(rf"(?:(?<!\w)[a-z][a-z0-9+.-]{{0,30}}:)?//\S+|(?<!\w)www\.\S+|{_HOST}", re.I)
_ADDRESS = re.compile(r"(?<!\S)\S+@\S+|(?<!\S)\S+\s*(?:\(at\)|\[at\]|\(собака\))\s*\S+", re.I)
_PHONE = re.compile(r"\+?\d[\d\s().–-]{5,}\d")
_PLACEHOLDER = re.compile(
    r"\{[^}]*\}?|\[[^\]]*\]?|<[^>]*>?|%[A-Za-z_]+%|_{2,}|\b(?:TODO|TBD|XXX+|ИМЯ|НАЗВАНИЕ|NAME|COMPANY)\b"
)
_AS_A_REPLY = re.compile(r"\s*(?:re|fwd?|aw|отв|ответ|пересл)\s*:", re.I)


@dataclass(frozen=True, slots=True)
class Draft:
    """A letter's own words. ``greeting`` and the like come from us: see ``letter_templates``."""

    subject: str
    body: str

    @property
    def whole(self) -> str:
        return f"{self.subject}\n{self.body}"


@dataclass(frozen=True, slots=True)
class LetterCheck:
    """``found`` is what is wrong, empty if nothing is."""

    name: str
    ok: bool
    found: list[str]


def check_draft(draft: Draft, brief: Brief) -> list[LetterCheck]:
    """The checks of any letter, also of a person's own words, in the order in which a person would make them.

    Of a text that is far too long, which fails for that, only the beginning is looked at any further.
    """
    short = Draft(draft.subject[:LONGEST_BODY], draft.body[:LONGEST_BODY])
    given = {name: draft if examine is _length else short for name, examine in _CHECKS.items()}
    return [_check(name, _CHECKS[name](given[name], brief)) for name in _CHECKS]


def check_made_draft(draft: Draft, brief: Brief) -> list[LetterCheck]:
    """The checks of a letter that nobody has edited: every word of it is in one of its brief's lines."""
    return [*check_draft(draft, brief), _check("facts", _words_of_no_line(draft, brief))]


def _check(name: str, findings: Iterator[str]) -> LetterCheck:
    found = list(dict.fromkeys(findings))
    return LetterCheck(name, not found, found[:_MOST_FOUND])


def passes(checks: list[LetterCheck]) -> bool:
    return all(check.ok for check in checks)


def _length(draft: Draft, brief: Brief) -> Iterator[str]:  # noqa: ARG001 (all checks are called alike)
    if len(draft.body) > LONGEST_BODY:
        yield f"{len(draft.body)} characters: it must have at most {LONGEST_BODY}"
        return
    count = len(words(draft.body))
    if not draft.subject.strip() or len(draft.subject) > LONGEST_SUBJECT or "\n" in draft.subject:
        yield f"a subject of {len(draft.subject)} characters: it must be a line of 1 to {LONGEST_SUBJECT}"
    if not FEWEST_WORDS <= count <= MOST_WORDS:
        yield f"{count} words: it must have {FEWEST_WORDS} to {MOST_WORDS}"
    if _AS_A_REPLY.match(draft.subject):
        yield "a subject that pretends to be a reply"


def _language(draft: Draft, brief: Brief) -> Iterator[str]:
    if brief.offer.language != brief.language:
        yield f"the offer is in another language: {brief.offer.language}"
    known = {plain(word) for text in brief.trusted() for word in words(text)}
    own = "".join(word for word in words(draft.whole) if word not in known)
    if not own:
        return
    cyrillic = sum("а" <= char <= "я" for char in own) / len(own)
    foreign = 1 - cyrillic if brief.language == "ru" else cyrillic
    if foreign > _MOST_FOREIGN:
        yield f"{foreign:.0%} of its letters are of another language"


def _characters(draft: Draft, brief: Brief) -> Iterator[str]:
    known = set("".join(brief.trusted()))
    for char in _ORDINARY.sub("", draft.whole):
        if char not in known or not char.isprintable():
            yield f"U+{ord(char):04X}"
    for word in words(draft.whole):
        if re.search("[a-z]", word) and re.search("[а-я]", word) and not _in_brief(word, brief):
            yield "a word of two alphabets"


def _placeholders(draft: Draft, brief: Brief) -> Iterator[str]:
    for found in _PLACEHOLDER.finditer(draft.whole):
        if not _in_brief(found[0], brief):
            yield found[0]


def _links(draft: Draft, brief: Brief) -> Iterator[str]:
    known = {_bare(brief.offer.link), _bare(brief.company.domain)}
    known |= {_bare(found) for text in brief.trusted() for found in _LINK.findall(text)}
    for found in _LINK.findall(_ADDRESS.sub(" ", draft.whole)):
        if _bare(found) not in known:
            yield found


def _addresses(draft: Draft, brief: Brief) -> Iterator[str]:
    known = {_bare(found) for text in brief.offer.texts() for found in _ADDRESS.findall(text)}
    for found in _ADDRESS.findall(draft.whole):
        if _bare(found) not in known:
            yield found


def _phones(draft: Draft, brief: Brief) -> Iterator[str]:
    known = {_digits(found) for text in brief.offer.texts() for found in _PHONE.findall(text)}
    for found in _PHONE.findall(draft.whole):
        if _digits(found) not in known and len(_digits(found)) >= _SHORTEST_PHONE:
            yield found


def _numbers(draft: Draft, brief: Brief) -> Iterator[str]:
    """A number counts with what follows it: 30 % in the brief does not allow 30 years, nor does a bare 30."""
    known = {pair for text in brief.trusted() for pair in _measured(text)}
    for pair in _measured(draft.whole):
        if pair not in known:
            yield " ".join(pair).strip()
    yield from sorted(_currencies(draft.whole) - set().union(*map(_currencies, brief.trusted())))


def _words_of_no_line(draft: Draft, brief: Brief) -> Iterator[str]:
    lines = lines_for(brief)
    if draft.subject not in lines.subjects.values():
        yield draft.subject
    rest = draft.body
    for line in sorted((*lines.of_a_body(), BENEFITS[brief.language]), key=len, reverse=True):
        rest = rest.replace(line, " ") if line else rest
    yield from words(rest)


_Examine = Callable[[Draft, Brief], Iterator[str]]
_CHECKS: dict[str, _Examine] = {
    "length": _length,
    "language": _language,
    "characters": _characters,
    "placeholders": _placeholders,
    "links": _links,
    "addresses": _addresses,
    "phones": _phones,
    "numbers": _numbers,
}


def _measured(text: str) -> Iterator[tuple[str, str]]:
    for part in sentences(_PAUSE.sub("\n", _LINK.sub(" ", _ADDRESS.sub(" ", text)))):
        for token, unit in pairwise([*part, ""]):
            if is_number(token):
                bare = not unit or unit in _NO_UNITS
                yield token, "" if bare else _CURRENCIES.get(stem(unit), stem(unit))


def _currencies(text: str) -> set[str]:
    return {_CURRENCIES.get(stem(token), token) for token in tokens(text)} & _SIGNS


def _in_brief(text: str, brief: Brief) -> bool:
    return any(plain(text) in plain(known) for known in brief.trusted())


def _bare(link: str) -> str:
    return re.sub(r"^\w+://(?:www\.)?|^www\.", "", link.casefold()).rstrip("/.,;:!?)»\"'")


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)
