"""Rich text of Notion: annotations, colours, links, mentions, equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sendonce.domain.engine.templates import Template
from sendonce.domain.mailouts.blocks import PLAIN, Colour, Paint, RichText, Span, plain, whole_variables
from sendonce.domain.mailouts.links import Url, link_url
from sendonce.errors import BadInput

_MONTHS = {
    "ru": [
        "января",
        "февраля",
        "марта",
        "апреля",
        "мая",
        "июня",
        "июля",
        "августа",
        "сентября",
        "октября",
        "ноября",
        "декабря",
    ],
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
}


def mapped(value: object) -> Mapping[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def text_in(value: object) -> str:
    """The words of a rich text, or a string as it is."""
    if isinstance(value, str):
        return value
    return "".join(str(mapped(part).get("plain_text") or "") for part in listed(value))


def plain_text(block: object) -> str:
    """The words of one block, its children apart."""
    return text_in(mapped(mapped(block).get(str(mapped(block).get("type")))).get("rich_text"))


def paint_of(name: object) -> Paint:
    """``red`` or ``red_background``; any other name is the default."""
    if not isinstance(name, str):
        return PLAIN
    base = name.removesuffix("_background")
    if base not in Colour._value2member_map_:
        return PLAIN
    return Paint(background=Colour(base)) if name != base else Paint(colour=Colour(base))


class NotionText:
    """``warn`` is told the place and what was left out there."""

    def __init__(self, language: str, warn: Callable[[str, str], None]) -> None:
        self._months = _MONTHS.get(language, _MONTHS["en"])
        self._language = language
        self._warn = warn

    def read(self, parts: object, place: str) -> RichText:
        text = whole_variables(self._span(mapped(part), place) for part in listed(parts))
        Template.parse(plain(text), place)
        return text

    def checked(self, check: Callable[[str], Url | None], address: str, place: str) -> Url | None:
        try:
            return check(address)
        except BadInput as exc:
            raise BadInput(f"{place}: {exc}") from exc

    def _span(self, part: Mapping[str, Any], place: str) -> Span:
        notes = mapped(part.get("annotations"))
        words = str(part.get("plain_text") or "")
        link = part.get("href")
        if part.get("type") == "mention":
            words, link = self._mention(mapped(part.get("mention")), words, link)
        return Span(
            words,
            bold=notes.get("bold") is True,
            italic=notes.get("italic") is True or part.get("type") == "equation",
            underline=notes.get("underline") is True,
            strike=notes.get("strikethrough") is True,
            code=notes.get("code") is True,
            link=self._link(link, place) if link else None,
            paint=paint_of(notes.get("color")),
        )

    def _mention(self, mention: Mapping[str, Any], words: str, link: object) -> tuple[str, object]:
        """Pages and databases are private as a rule, so they are named and not linked."""
        match mention.get("type"):
            case "user":
                return words.removeprefix("@"), None
            case "date":
                return self._dates(mapped(mention.get("date"))) or words, None
            case "page" | "database":
                return words, None
            case "link_mention":
                return str(mapped(mention.get("link_mention")).get("title") or words), link
            case _:
                return words, link

    def _dates(self, value: Mapping[str, Any]) -> str:
        ends = (self._date(value.get("start")), self._date(value.get("end")))
        return " – ".join(filter(None, ends))

    def _date(self, value: object) -> str:
        """``1 декабря 2026``, with the time where there is one, as the author's zone has it."""
        if not isinstance(value, str):
            return ""
        try:
            moment = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            return value
        day = f"{moment.day} {self._months[moment.month - 1]} {moment.year}"
        return f"{day}, {moment:%H:%M}" if isinstance(moment, datetime) else day

    def _link(self, address: object, place: str) -> Url | None:
        url = self.checked(link_url, str(address), place)
        if url is None:
            self._warn(
                place, f"the link to {str(address)[:80]!r} was left out: it leads nowhere outside Notion."
            )
        return url
