"""The XML of search results, from a stranger: no DOCTYPE, bounded in size and depth, read in one pass.

No tag is sure to be there, and a document may end in the middle: what came before counts.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from sendonce.domain.engine.strict_json import storable
from sendonce.domain.prospecting.search_answers import SerpDocument, SerpPage, Verdict

# A page of a hundred results is some 300 KB.
MAX_SIZE = 8 * 1024 * 1024
# yandexsearch/response/results/grouping/group/doc/passages/passage/hlword is nine.
MAX_DEPTH = 40
MAX_DOCUMENTS = 1_000
MAX_URL = 2_000
MAX_TITLE = 300
MAX_SNIPPET = 1_000

NOTHING_FOUND = "15"
# Unknown, daily limit, requests per second, "are you a robot": they pass. All others are about the request
# or the account, and would come again.
_PASSING = frozenset(("20", "32", "55", "100"))

_KEPT = frozenset(("url", "title", "headline", "passage", "lang"))
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\x00-\x1f\x7f-\x9f]+")
_SPACE = re.compile(r"\s+")


class _Hostile(Exception):
    """The document is built to do harm, or is not what it says."""


def read_serp(data: bytes) -> SerpPage:
    if len(data) > MAX_SIZE:
        return _unusable(f"it has {len(data):,} bytes")
    reader = _Reader()
    cut = False
    try:
        reader.feed(data)
    except _Hostile as exc:
        return _unusable(str(exc))
    except expat.ExpatError as exc:
        if not reader.documents and not reader.error_code:
            return _unusable(f"it is not good XML: {expat.ErrorString(exc.code)}")
        cut = True
    if reader.error_code:
        return _refusal(reader.error_code, reader.error_text)
    verdict = Verdict.RESULTS if reader.documents else Verdict.NOTHING
    return SerpPage(verdict, tuple(reader.documents), cut=cut)


def _refusal(code: str, text: str) -> SerpPage:
    reason = clean(text, 300) or f"Yandex answered with error {code}."
    if code == NOTHING_FOUND:
        return SerpPage(Verdict.NOTHING, code=code, reason=reason)
    return SerpPage(Verdict.AGAIN if code in _PASSING else Verdict.NEVER, code=code, reason=reason)


def _unusable(why: str) -> SerpPage:
    """The next answer may be better."""
    return SerpPage(Verdict.AGAIN, code="unreadable", reason=f"The answer cannot be used: {why}.")


class _Reader:
    """What is between the tags of a field is its text, whatever tags (``hlword``) are in there."""

    def __init__(self) -> None:
        self.documents: list[SerpDocument] = []
        self.error_code = ""
        self.error_text = ""
        self._depth = 0
        self._document: dict[str, list[str]] | None = None
        self._field = ""
        self._text: list[str] = []

    def feed(self, data: bytes) -> None:
        # The encoding is ours to say: UTF-16 would hide a DOCTYPE from whoever looks at the bytes.
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.Parse(data, True)

    def _doctype(self, *_: object) -> None:
        raise _Hostile("it declares a document type")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Hostile(f"it is nested more than {MAX_DEPTH} levels deep")
        if self._field:
            return
        if tag == "doc":
            self._document = {}
        elif tag == "error" and self._document is None:
            self.error_code = attributes.get("code", "")[:20] or "?"
            self._field, self._text = tag, []
        elif tag in _KEPT and self._document is not None:
            self._field, self._text = tag, []

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._field and tag == self._field:
            self._close_field("".join(self._text))
        elif tag == "doc" and self._document is not None:
            self._add(self._document)
            self._document = None

    def _close_field(self, text: str) -> None:
        if self._document is None:
            self.error_text = text
        else:
            self._document.setdefault(self._field, []).append(text)
        self._field = ""

    def _characters(self, text: str) -> None:
        if self._field:
            self._text.append(text)

    def _add(self, document: dict[str, list[str]]) -> None:
        if len(self.documents) >= MAX_DOCUMENTS:
            raise _Hostile(f"it has more than {MAX_DOCUMENTS} results")
        url = _first(document, "url").strip()
        if not url or len(url) > MAX_URL:
            return
        passages = document.get("passage") or document.get("headline") or []
        self.documents.append(
            SerpDocument(
                url=url,
                position=len(self.documents) + 1,
                title=clean(_first(document, "title"), MAX_TITLE),
                snippet=clean(" … ".join(passages), MAX_SNIPPET),
                language=clean(_first(document, "lang"), 10).lower() or None,
            )
        )


def _first(document: dict[str, list[str]], field: str) -> str:
    return next(iter(document.get(field, ())), "")


def clean(text: str, most: int) -> str:
    """One line, without what nobody sees, cut where it is too long."""
    line = storable(_SPACE.sub(" ", _UNSEEN.sub(" ", text)).strip())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
