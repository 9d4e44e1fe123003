"""E-mail addresses in running text, the way people write them to hide them from machines.

Only what is near an @, or near words that stand for one, is looked at, so the cost grows with the number of
addresses and not with the length of the page. Words stand for an @ only in brackets or with a spelled-out
dot: "meet us at firma.ru" is no address.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sendonce.domain.people.mailboxes import ROLES

# A page of many thousand is no page of contacts.
_MAX_SIGNALS = 1000
_BEFORE, _AFTER = 110, 270
_MAX_LOCAL = 64

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2800\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]+"
)
# Shown from right to left, up to the end of the override.
_OVERRIDDEN = re.compile("\u202e([^\u202c\u202d\n]{5,200})\u202c?")
_OTHER_SIGNS = ("＠", "﹫", "ⓐ", "🐶", "🐕", "<at", "<@")
# A circled letter among others is one of a word in circles.
_DRAWN = re.compile(r"(?<![ⓑ-ⓩ])\s?ⓐ\s?(?![ⓐ-ⓩ])|(?<=[a-z0-9])\s?[🐶🐕]\s?(?=[a-z0-9])", re.IGNORECASE)
_CODED_SIGNS = ("&#64;", "&#x40;", "&commat;", "%40")
# As languages call it: a dog, a monkey's tail, a snail, a worm, a rolled herring.
_AT_WORDS = (
    r"(?:@|at|a|а|ат|аt|aт|эт|et|ät|aet|(?:at|знак|символ)[ -](?:sign|symbol|at|@|собак[аи])"
    r"|коммерческое (?:at|эт)|собака|собачка|собачко|соб\.?|п[её]сик|гав|sobaka|sobachka|dog"
    r"|сабака|равлик|arroba|arobase|chiocciola|klammeraffe|ma[łl]pa|zavin[áa][čc]|kukac|apenstaartje|snabel-?a)"
)
_DOT_WORDS = (
    r"(?:\.|dot|d0t|дот|точка|точкa|тчк|tochka|punkt|punto|ponto|point|kropka|кропка|крапка|te[čc]ka|pont)"
)
_OPEN, _CLOSE = r"[\[({<«]", r"[\])}>»]"
_BRACKETED_AT = re.compile(
    rf"\s*(?:{_OPEN}+\s*_?{_AT_WORDS}_?\s*{_CLOSE}+|"
    rf"([*_|~#='\"\\]{{1,2}}|--)(?:at|ат|собака)\1(?=\s?[\w-]+(?:[.\[(]|\s?[*_|~#='\"\\](?:dot|точка)))|"
    rf"(?<=[a-z0-9])\s/(?:at|ат|собака)/(?=\s)|"
    rf"\s-{{1,2}}(?:at|@)-{{1,2}}\s|(?<=[a-z0-9])\s?[—–-]\s?собака\s?[—–-]\s?(?=[a-z0-9])|\"собака\")\s*",
    re.IGNORECASE,
)
_BRACKETED_DOT = re.compile(
    rf"\s*(?:{_OPEN}+\s*{_DOT_WORDS}\s*{_CLOSE}+|([*_|~#='\"\\])(?:dot|точка)\1|\s--?dot--?\s|\s/(?:dot|точка)/\s)\s*",
    re.IGNORECASE,
)
# What may stand for an @ on a whole page: rough, and found by its first character, which is quicker than a
# pattern.
_OPENERS = "[({«*_|~#/"
_HINT = re.compile(r"[\[({<«*_|~#=/]\s?_?(?:@|[^\W\d_])[\w @.-]{0,18}[\])}>»*_|~#=/]")
_MAX_OPENERS = 10_000
# The same where it pays to look closer.
_AT_IN_BRACKETS = re.compile(rf"[\[({{<«*_|~#=/]\s*_?{_AT_WORDS}_?\s*[\])}}>»*_|~#=/]", re.IGNORECASE)
# Some Cyrillic letters end in the byte of "=", which makes that slow to find alone. Words that end in a rare
# letter are found sooner.
_SPELLED = ("СОБА", "soba", "-at-", " dot", " точк", "=at=")
# The same by a character in them, which is found in no time where it is missing.
_SPELLED_WITH = {
    "T": ("DOT", " AT "),
    "'": ("'at'",),
    '"': ('"at"',),
    "\\": ("\\at\\",),
}
# What is in a text whose words stand for signs; most texts have none of it, and are done with sooner.
_DOG_MARKS = ("соба", "soba", "dog", "гав")
_DASHED_MARKS = ("-at-", "-@-", "'at'", '"at"', "\\at\\")
_DOT_MARKS = (
    *("dot", "d0t", "дот", "точк", "тчк", "tochk", "punkt", "punto", "ponto", "point"),
    *("kropk", "кропк", "крапк", "tečk", "teck", "pont"),
    *("[.]", "(.)", "{.}", "<.>", "[ .", "( .", "{ ."),
)
_SPELLED_AT = re.compile(
    r"(?<=[A-Za-z0-9])(?:\s+(?:собака|собачка|гав|sobaka|sobachka|dog)\s+(?=\w)|собака(?=[A-Za-z0-9]))",
    re.IGNORECASE,
)
# "mail info AT firma.ru"; not "MEET US AT FIRMA.RU".
_CAPITAL_AT = re.compile(r"(?<=[a-z0-9])\sAT\s(?=[a-z0-9-]{2,63}\.[a-z]{2,6}\b)")
# " at " counts only where dots are spelled out as well.
_LOOSE_AT = re.compile(
    r"(?<=[A-Za-z0-9])\s+(?:at|ат|эт)\s+(?=[\w-]+\s*[\[({<]?\s*(?:dot|d0t|дот|точка|тчк)\b)", re.IGNORECASE
)
_SHOUTED = re.compile(r"(?<=[a-z0-9])AT(?=[a-z0-9-]+DOT[a-z])")
_SHOUTED_DOT = re.compile(r"(?<=[a-z0-9])DOT(?=[a-z])")
_SPELLED_DOT = re.compile(
    r"(?<=\w)\s+(?:dot|d0t|дот|точка|тчк|tochka|кропка|kropka)\s+(?=\w)|(?<=[a-z0-9])точка(?=[a-z])",
    re.IGNORECASE,
)
# A slip of the finger, sure where an @ stands before: info@firma,ru and info@firma.ру
_TYPED_WRONG = re.compile(
    r"(@[a-z0-9-]{2,63})(?:,(ru|su|com|net|org|by|kz|рф)|\.(ру|ком))(?![\w@-]|\.\w)", re.IGNORECASE
)
_MEANT = {"ру": "ru", "ком": "com"}
_SPACE_BEFORE_DOT = re.compile(r"(?<=\w)\s+\.\s*(?=[A-Za-zрф]{2,6}\b)")
_SPACE_AFTER_DOT = re.compile(r"\.\s(?<=\w..)(?=(?:ru|com|рф|net|org|su|by|kz)\b)")
# i n f o @ f i r m a . r u
_LETTER_BY_LETTER = re.compile(
    r"(?<!\S)(?:[A-Za-z0-9._-] {1,2}){2,40}@(?: {1,2}[A-Za-z0-9._-]){4,60}(?![\w@])"
)
_SPACED_AT = re.compile(r"([A-Za-z0-9._-]+)[ \t]+@[ \t]*(?=\w)")
# Three cells of a table.
_LONELY_AT = re.compile(
    r"(?<![^\n])([A-Za-z0-9._-]{2,40})\s{1,8}@\s{1,8}(?=[A-Za-z0-9-]{2,63}\.[a-z]{2,6}\s*(?:\n|\Z))"
)
_AT_THEN_SPACE = re.compile(r"(?<=[A-Za-z0-9])@\s{1,4}(?=[\w-]+\s*\.)")

# Letters that look alike, and are typed by mistake or to mislead machines.
_CYRILLIC_AS_LATIN = str.maketrans("асеорхуіѕјАВСЕНКМОРТХ", "aceopxyisjABCEHKMOPTX")
_AROUND_AT = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{3,100}")
_TWO_ALPHABETS = re.compile(r"[A-Za-z](?:[а-яёіѕј]|(?<=[а-яёіѕјА-ЯЁ].))")
_LATIN = re.compile(r"[A-Za-z]")
_CYRILLIC_IN_ROW = re.compile(r"[^\W\d_A-Za-z]{2}")

_LOCAL = re.compile(r"[A-Za-z0-9._%+'&=~-]+\Z")
_DOMAIN = re.compile(r"[^\W_][\w-]{0,62}(?:\.[^\W_][\w-]{0,62}){1,8}")
_GLUED_PHONE = re.compile(r"[+\d(][\d \t\xa0().+-]{8,}\Z")
# 200-10-20, or what follows «доб.» and «офис».
_SHORT_NUMBER = re.compile(r"\d{2,3}-\d\d-\d\d\Z|(?:доб|ext|вн|офис|оф|каб|кв)\.?\s?\d{1,5}\Z", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"[+\d-]+(?=[A-Za-z])")
_GLUED_LABEL = re.compile(r"e-?mail(?=[a-z])", re.IGNORECASE)
_LABEL_AND_SIGN = re.compile(r"(?:e-?mail|mail|to|address)=(?=\w)", re.IGNORECASE)
_REMOVE_ME = re.compile(
    r"no-?_?spam|remove-?_?(?:this|me)|delete-?_?(?:this|me)|antispam|убрать|удалить", re.I
)
# Words to take out that would be names in small letters, and any of them in brackets.
_SHOUTED_WARNING = re.compile(
    r"(?<=[a-z0-9@.-])(?:(?:REMOVE|DELETE)(?:[_-]?(?:THIS|ME))?|УБЕРИ(?:ТЕ)?(?:ЭТО)?|УДАЛИ(?:ТЕ)?(?:ЭТО)?)(?:\.|-|(?=[a-z0-9@]))"
    r"|(?<=@)[\[({](?i:no-?spam|remove(?:this)?|delete(?:this)?|убрать|удалить)[\])}]"
)
_WARNINGS = ("REMOVE", "DELETE", "УБЕРИ", "УДАЛИ", "@[", "@(", "@{")
_NOT_MAIL = re.compile(
    r"(?:sip|xmpp|ssh|skype|live|git|matrix|acct|uid):(?://)?\Z|(?:jabber|jid|xmpp|skype|sip)\s?:?\s?\Z"
    r"|(?:message-id|in-reply-to|references|content-id):\s*<?\Z"
    r"|\b(?:ssh|scp|rsync|s?ftp)\s+(?:-\w+\s+(?:\d+\s+)?){0,3}\Z",
    re.IGNORECASE,
)
_LONGEST_LABEL = 30
_URL_BEFORE = re.compile(r"(?:://|www\.)\S*\Z|(?:^|[^\w.@-])[\w-]+(?:\.[\w-]+)+/\S*\Z", re.IGNORECASE)
_SHELL_AFTER = re.compile(r":[~/\w]", re.ASCII)
_PATH_AFTER = (":~", ":/")

# English words before a lonely @: "find us @ firma.ru".
_PROSE_WORDS = """
are at find follow here in instagram is join live look lunch me medium meet my now on online our party shop
telegram the twitter us visit we you your youtube
"""
_PROSE = frozenset(_PROSE_WORDS.split())

IsDomain = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Written:
    """An address as found, lower-case at the domain's end, with the text around it."""

    address: str
    obfuscated: bool
    before: str
    after: str


def find_addresses(
    text: str, is_domain: IsDomain, *, words: Sequence[int] | None = None
) -> Iterator[Written]:
    """``is_domain`` says whether a name ends in a top-level domain that exists. A caller who knows where
    ``words`` stand for signs saves the search for them."""
    for start, end in [(0, len(text))] if len(text) < _AFTER else _windows(text, words):
        original = text[start:end]
        readable = reveal(original)
        as_written = original.lower()
        for at in _positions(readable, "@"):
            found = _address_around(readable, at, is_domain)
            if found is not None:
                first, last, address = found
                hidden = address.lower() not in as_written
                if hidden and _is_prose(address):
                    continue
                yield Written(
                    address, hidden, readable[max(0, first - 100) : first], readable[last : last + 60]
                )


def _is_prose(address: str) -> bool:
    """Brackets within a sentence: «пункт 1(а)», "we are (at) firma.ru"."""
    local = address.partition("@")[0].lower()
    return local in _PROSE or local.isdigit()


def _windows(text: str, words: Sequence[int] | None) -> Iterator[tuple[int, int]]:
    """Where to look, left to right, without overlaps."""
    start = end = 0
    for signal in _signals(text, words):
        if end and signal - _BEFORE > end:
            yield start, end
            end = 0
        if not end:
            start = max(0, signal - _BEFORE)
        end = signal + _AFTER
    if end:
        yield start, end


def _signals(text: str, words: Sequence[int] | None) -> list[int]:
    found = _positions(text, "@")
    if "&" in text or "%" in text:
        for sign in _CODED_SIGNS:
            found += _positions(text, sign)
    found += words_for_signs(text) if words is None else words
    return sorted(found)[:_MAX_SIGNALS]


def words_for_signs(text: str, *, other_signs: bool = True) -> list[int]:
    """Where words may stand for an @, or ``other_signs`` that are rare: a caller who knows that there are
    none saves the search for them."""
    openers = (at for opener in _OPENERS for at in _positions(text, opener, _MAX_OPENERS))
    hints = filter(None, (_HINT.match(text, at) for at in openers))
    found = [hint.start() for hint in hints if _BRACKETED_AT.match(hint[0])]
    dogs = (at - 1 for at in _positions(text, "об", _MAX_OPENERS) if text[at + 2 : at + 3] == "а")
    found += (at for at in dogs if text[at : at + 1] in ("с", "С"))
    words = [word for sign, words in _SPELLED_WITH.items() if sign in text for word in words]
    for word in chain(_SPELLED, words, _OTHER_SIGNS if other_signs else ()):
        found += _positions(text, word)
    return found


def _positions(text: str, sign: str, most: int = _MAX_SIGNALS) -> list[int]:
    found: list[int] = []
    at = text.find(sign)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(sign, at + 1)
    return found


def reveal(text: str) -> str:
    """The same text with plain signs in place of what hides them."""
    if not text.isascii():
        if "\u202e" in text:
            text = _OVERRIDDEN.sub(lambda run: run[1][::-1], text)
        if "ⓐ" in text or "🐶" in text or "🐕" in text:
            text = _DRAWN.sub("@", text)
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).replace("。", ".")
        if _TWO_ALPHABETS.search(text):
            text = _AROUND_AT.sub(_in_one_alphabet, text)
        if "\u2010" in text:  # U+2011 is made this one before
            text = text.replace("\u2010", "-")
    if "&" in text:
        text = html.unescape(text)
    text = text.replace("%40", "@")
    text = _reveal_words(text)
    if "@" not in text:
        return text
    if any(warning in text for warning in _WARNINGS):
        text = _SHOUTED_WARNING.sub("", text)
    if "," in text or ".ру" in text or ".ком" in text:
        text = _TYPED_WRONG.sub(lambda typed: f"{typed[1]}.{typed[2] or _MEANT[typed[3].lower()]}", text)
    if " @ " in text:
        text = _LETTER_BY_LETTER.sub(lambda spaced: spaced[0].replace(" ", ""), text)
    if " @" in text or "@ " in text or "@\n" in text:
        text = _LONELY_AT.sub(_join_spaced, _SPACED_AT.sub(_join_spaced, text))
        text = _AT_THEN_SPACE.sub("@", text)
    if " ." in text:
        text = _SPACE_BEFORE_DOT.sub(".", text)
    return _SPACE_AFTER_DOT.sub(".", text)


def _in_one_alphabet(found: re.Match[str]) -> str:
    """``сontact@firma.ru`` with a Cyrillic с."""
    if found[0].isascii():
        return found[0]
    return ".".join(map(_latin, found[0].replace("@", ".@.").split("."))).replace(".@.", "@")


def _latin(word: str) -> str:
    """Several letters in a row are a Russian word that no space parts from the address."""
    if word.isascii() or not _LATIN.search(word) or _CYRILLIC_IN_ROW.search(word):
        return word
    turned = word.translate(_CYRILLIC_AS_LATIN)
    return turned if turned.isascii() else word


def _reveal_words(text: str) -> str:
    lowered = text.lower()
    dots = any(mark in lowered for mark in _DOT_MARKS)
    dogs = any(mark in lowered for mark in _DOG_MARKS)
    if dots:
        text = _LOOSE_AT.sub("@", _SHOUTED.sub("@", text))
    if dogs or _AT_IN_BRACKETS.search(text) or any(mark in lowered for mark in _DASHED_MARKS):
        text = _SPELLED_AT.sub("@", _BRACKETED_AT.sub("@", text))
    if " AT " in text:
        text = _CAPITAL_AT.sub("@", text)
    if dots and "@" in text:
        text = _SPELLED_DOT.sub(".", _BRACKETED_DOT.sub(".", _SHOUTED_DOT.sub(".", text)))
    return text


def _join_spaced(found: re.Match[str]) -> str:
    """``info @ firma.ru`` is an address; "follow us @firma.ru" is a name in a social network."""
    local = found[1].lower()
    both_sides = found[0][-1] != "@"
    if local in _PROSE or not (both_sides or local in ROLES):
        return found[0]
    return f"{found[1]}@"


def _address_around(text: str, at: int, is_domain: IsDomain) -> tuple[int, int, str] | None:
    """Where it begins and ends, and the address."""
    local = _LOCAL.search(text[max(0, at - _MAX_LOCAL - 20) : at])
    domain = _DOMAIN.match(text, at + 1)
    if local is None or domain is None:
        return None
    host = _longest_domain(domain[0], is_domain)
    if host is None:
        return None
    name = _without_glue(local[0], text[max(0, at - 100) : at])
    first, last = at - len(name), at + 1 + len(host)
    if not 0 < len(name) <= _MAX_LOCAL or _is_something_else(text, first, last, name):
        return None
    address = f"{name}@{host}"
    if _REMOVE_ME.search(address):
        return first, last, _without_warning(address)
    return first, last, address


def _longest_domain(run: str, is_domain: IsDomain) -> str | None:
    """As many labels as make a domain: a sentence may go on after the address without a space."""
    labels = run.split(".")
    while len(labels) > 1:
        for last in _ends(labels[-1]):
            host = ".".join([*labels[:-1], last])
            if is_domain(host.lower()):
                return host.lower()
        labels.pop()
    return None


_ENDS = (re.compile(r"[A-Za-z]{2,}(?![\w-])|xn--[\w-]+"), re.compile(r"[a-z]{2,}"), re.compile(r"[A-Z]{2,}"))
# ru-beta
_GOES_ON = re.compile(r"-[A-Za-z0-9]")
_RUSSIAN_ENDS = (re.compile(r"[^\W\d_]{2,}"), re.compile(r"[а-яё]{2,}"))


def _ends(label: str) -> Iterator[str]:
    """The whole label, then what is before a change of case, alphabet or kind: ``ruТел``, ``ru8``."""
    yield label
    for pattern in _ENDS if label[:1].isascii() else _RUSSIAN_ENDS:
        found = pattern.match(label)
        if found and found[0] != label and not _GOES_ON.match(label, found.end()):
            yield found[0]


def _without_glue(local: str, before_at: str) -> str:
    """Less a phone number or a label that no space parts from it."""
    local = _LABEL_AND_SIGN.sub("", local.lstrip(".'&=~%+-"), count=1)
    if local.startswith("__"):
        local = local.lstrip("_")
    number = _LEADING_NUMBER.match(local)
    if number:
        front = before_at[: len(before_at) - len(local) + number.end()]
        glued = _GLUED_PHONE.search(front)
        if (glued and sum(map(str.isdigit, glued[0])) >= 10) or _SHORT_NUMBER.search(front):
            local = local[number.end() :]
    label = _GLUED_LABEL.match(local)
    if label and local[label.end() :].lower() in ROLES:
        local = local[label.end() :]
    return "" if local.endswith(".") or ".." in local else local


def _is_something_else(text: str, first: int, last: int, local: str) -> bool:
    """A part of a URL, a login, a handle."""
    before = text[max(0, first - 100) : first]
    if (
        before.endswith(("@", "\\"))
        or "À" <= before[-1:] <= "ɏ"
        or _NOT_MAIL.search(before[-_LONGEST_LABEL:])
        or _URL_BEFORE.search(before)
    ):
        return True
    if text.startswith(_PATH_AFTER, last):
        return True
    return local.lower() in ("git", "root", "ubuntu", "user") and _SHELL_AFTER.match(text, last) is not None


def _without_warning(address: str) -> str:
    """``info@NOSPAM.firma.ru`` is ``info@firma.ru``."""
    bare = _REMOVE_ME.sub("", address)
    return re.sub(r"[._-]*@[._-]*", "@", re.sub(r"\.{2,}", ".", bare)).strip(".-_")
