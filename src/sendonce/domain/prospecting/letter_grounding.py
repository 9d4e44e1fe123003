"""Whether a sentence stands on its brief: what it says is said there, and together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_vocabulary import (
    CURRENCIES,
    DENIALS,
    ONLY_AS_WRITTEN,
    PHRASES,
    is_common,
    is_courtesy,
    is_glue,
    is_of_prices,
    is_said_of_companies,
)
from sendonce.domain.prospecting.letter_words import are_related, is_number, plain, stem, tokens


class Text:
    """One trusted text, as a set of words: "delivery" stands in it if "deliver" does."""

    def __init__(self, text: str) -> None:
        found = tokens(text)
        self._words = {part for word in found for part in (word, *word.split("-"))}
        self._stems = {stem(word) for word in self._words}

    def has(self, word: str) -> bool:
        if is_number(word) or word in ONLY_AS_WRITTEN:
            return word in self._words
        return stem(word) in self._stems or any(are_related(word, other) for other in self._words)


class Grounds:
    """What the sentences of a letter may be made of."""

    def __init__(self, brief: Brief) -> None:
        self._language = brief.language
        self._has_price = bool(brief.offer.price)
        # Whoever signs is no subject of the letter: the signature is added to it.
        self._offer = [Text(text) for text in brief.offer.texts() if text != brief.offer.sender]
        self._company = [Text(text) for text in brief.company.texts() if text]
        self._named = Text(f"{brief.company.name} {brief.company.domain}")
        # What the letter is about may stand beside everything that is said of it.
        self._subjects = [Text(brief.offer.name), *self._company]

    def strangers(self, sentence: str) -> Iterator[str]:
        """The words that this sentence should not have."""
        said = self._said(sentence)
        own = [word for word in said if self._is_own(word)]
        if not own:
            yield from (word for word in said if not is_courtesy(word, self._language))
            return
        allowed = self._allowed_beside(own)
        yield from (word for word in said if not self._stands(word) and not _in_parts(word, allowed))
        others = [word for word in said if word not in own]
        if len(own) > 1 or not all(is_courtesy(word, self._language) for word in others):
            yield from self._out_of_place(own)  # else it only asks about a thing

    def _allowed_beside(self, own: list[str]) -> Callable[[str], bool]:
        """A sentence about the company says little; one about the offer may say more."""
        if not any(text.has(word) for text in self._offer for word in own):
            return is_said_of_companies
        return self._may_stand_beside_its_name if any(map(self._names, own)) else self._may_stand

    def _said(self, sentence: str) -> list[str]:
        text = plain(sentence)
        for phrase in PHRASES:
            text = text.replace(phrase, " ")
        found = (word for word in tokens(text) if word[0].isalnum())
        return [word for word in found if word not in DENIALS and stem(word) not in CURRENCIES]

    def _is_own(self, word: str) -> bool:
        """Whether a sentence with this word says something of the brief: mere glue does not."""
        return self._stands(word) and not is_glue(word, self._language)

    def _stands(self, word: str) -> bool:
        return is_number(word) or any(text.has(word) for text in (*self._offer, *self._company))

    def _names(self, word: str) -> bool:
        return self._named.has(word) and not any(text.has(word) for text in self._offer)

    def _may_stand(self, word: str) -> bool:
        if self._has_price and is_of_prices(word):
            return True
        return is_common(word, self._language) or is_courtesy(word, self._language)

    def _may_stand_beside_its_name(self, word: str) -> bool:
        return is_said_of_companies(word) or is_courtesy(word, self._language)

    def _out_of_place(self, own: list[str]) -> Iterator[str]:
        """Words of the offer without any other that the offer says together with them.

        "Less downtime" and "longer service life" do not allow "less service life". Numbers have a check of
        their own.
        """
        for at, word in enumerate(own):
            if is_number(word) or any(text.has(word) for text in self._subjects):
                continue
            others = own[:at] + own[at + 1 :]
            together = [text for text in self._offer if text.has(word)]
            if not any(text.has(other) for text in together for other in others):
                yield word


def _in_parts(word: str, allowed: Callable[[str], bool]) -> bool:
    return allowed(word) or ("-" in word and all(map(allowed, word.split("-"))))
