"""Offers: what the letters of a direction are about, in their owner's words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sendonce.domain.people.given_fields import (
    line_of,
    lines_of,
    named,
    paragraphs_of,
    refusal_of,
    unknown_fields,
)
from sendonce.errors import BadInput

_MOST_LINES = 10
_LANGUAGES = {"ru": "Russian", "en": "English"}
_BRACES = re.compile(r"[{}<>\[\]]")
_LETTER = re.compile(r"[^\W\d_]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")

# What people call the fields of an offer.
OFFER_FIELDS = {
    "name": ("name", "title", "product", "service", "subject", "название", "продукт"),
    "text": ("text", "description", "about", "summary", "body", "pitch", "value", "текст", "описание"),
    "benefits": ("benefits", "advantages", "points", "benefit", "выгоды", "преимущества", "выгода"),
    "questions": ("questions", "question", "вопросы", "вопрос"),
    "price": ("price", "cost", "цена", "стоимость"),
    "link": ("link", "url", "site", "website", "landing", "ссылка", "сайт"),
    "email": ("email", "mail", "reply_to", "почта"),
    "phone": ("phone", "tel", "телефон"),
    "sender": ("sender", "from", "signature", "author", "sender_name", "от", "подпись"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """Each paragraph of ``text`` and each of ``benefits`` can stand alone. ``sender`` signs the letter.

    ``questions`` are ways to end a letter.
    """

    name: str
    text: str = ""
    benefits: tuple[str, ...] = ()
    price: str = ""
    link: str = ""
    email: str = ""
    phone: str = ""
    sender: str = ""
    questions: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        details = (self.price, self.link, self.email, self.phone, self.sender)
        own = (self.name, self.text, *self.benefits, *self.questions, *details)
        return tuple(text for text in own if text)

    @property
    def language(self) -> str:
        """The one that most of its letters are of: "ru" or "en"."""
        own = " ".join((self.name, self.text, *self.benefits, *self.questions))
        return "ru" if 2 * len(_CYRILLIC.findall(own)) > len(_LETTER.findall(own)) else "en"


def read_offer(given: Any) -> Offer:
    """Raises BadInput for an offer that says nothing, and for one with a placeholder left in it."""
    it = named(given, OFFER_FIELDS, "text")
    benefits = lines_of(it.get("benefits"))[:_MOST_LINES]
    text, name = paragraphs_of(it.get("text")), line_of(it.get("name"))
    offer = Offer(
        name=name or _opening(text) or (benefits[0] if benefits else ""),
        text=text,
        benefits=benefits,
        price=line_of(it.get("price")),
        link=line_of(it.get("link")),
        email=line_of(it.get("email")),
        phone=line_of(it.get("phone")),
        sender=line_of(it.get("sender")),
        questions=lines_of(it.get("questions"))[:_MOST_LINES],
    )
    if not offer.name:
        raise BadInput(
            "The offer says nothing: say what is offered in its name or text, such as name = 'Pump repair', "
            "text = 'We repair pumps at your plant.'"
        )
    for written in offer.texts():
        if found := _BRACES.search(written):
            raise BadInput(
                f"The offer has {found[0]!r} in {written[:60]!r}, which looks like a placeholder that was "
                "left: write the offer out."
            )
    return offer


def require_known_fields(given: Any) -> None:
    """Raises UnknownField: a misspelled field would be left out of every letter without a word."""
    for field in unknown_fields(given, OFFER_FIELDS):
        raise refusal_of(field, "offer", OFFER_FIELDS)


def require_language(offer: Offer, language: str) -> None:
    """Raises BadInput for letters in one language about an offer in another."""
    if offer.language != language:
        raise BadInput(
            f"The offer is in {_LANGUAGES[offer.language]} and its letters are to be in "
            f"{_LANGUAGES[language]}. A letter repeats its offer word for word: give --language "
            f"{offer.language}, or an offer in {_LANGUAGES[language]}."
        )


def _opening(text: str) -> str:
    """The first words of an offer that has no name."""
    first = re.split(r"[.!?\n]", text, maxsplit=1)[0].strip()
    return first if len(first) <= 70 else first[:70].rpartition(" ")[0]
