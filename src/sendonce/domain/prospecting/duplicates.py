"""Duplicates: which companies are one.

Two companies that show the same mark may be one. A tax number or a redirect decides, unless many companies
show it: then it belongs to a web studio, a holding or a parking page, and a person decides. A name never
decides, it only nominates a pair for review.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

from sendonce.domain.prospecting.companies import Findings


class Evidence(StrEnum):
    INN = "inn"
    OGRN = "ogrn"
    REDIRECT = "redirect"
    NAME = "name"
    PERSON = "person"


# A site that shows more numbers than these lists others: its partners, its customers, a whole register.
MOST_NUMBERS = 3
# «ООО "Насос-Сервис"», «Насос Сервис, АО»: the legal form tells nothing. ТД, НПО and ГК are part of a name.
_FORMS = "ооо оао зао ао пао нао ип тоо чп чуп одо llc ltd inc gmbh jsc ojsc pjsc co"
_LEGAL_FORMS = frozenset(_FORMS.split())
_WORD = re.compile(r"\w+")
_SHORTEST_NAME_KEY = 4


def marks_of(findings: Findings) -> Iterator[tuple[Evidence, str]]:
    """What of a visit's findings may tell that two companies are one, each once."""
    for evidence, numbers in ((Evidence.INN, findings.inn), (Evidence.OGRN, findings.ogrn)):
        own = dict.fromkeys(numbers)
        if len(own) <= MOST_NUMBERS:
            yield from ((evidence, number) for number in own)
    if findings.moved_to:
        yield Evidence.REDIRECT, findings.moved_to
    if name := name_key(findings.name):
        yield Evidence.NAME, name


def name_key(name: str) -> str:
    """A name without what does not tell two companies apart; empty if that leaves next to nothing."""
    folded = unicodedata.normalize("NFKC", name).casefold().replace("ё", "е")
    words = [word for word in _WORD.findall(folded) if word not in _LEGAL_FORMS]
    key = "".join(words)
    return key if len(key) >= _SHORTEST_NAME_KEY else ""
