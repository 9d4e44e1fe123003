"""What there is to find, and what stands between companies in every real answer."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import idna


@dataclass(frozen=True, slots=True)
class FindableSite:
    url: str
    title: str
    snippet: str = ""
    language: str = "ru"


def findable(url: str, title: str, snippet: str) -> FindableSite:
    """Yandex shows the letters of an international name, not its punycode."""
    parts = urlsplit(url)
    host = idna.decode(parts.netloc) if "xn--" in parts.netloc else parts.netloc
    return FindableSite(parts._replace(netloc=host).geturl(), title, snippet)


# Every answer has some of these: they are not companies.
BYSTANDERS = (
    FindableSite("https://www.avito.ru/kazan/oborudovanie", "Купить оборудование в Казани | Авито"),
    FindableSite("https://2gis.ru/kazan/search/zavod", "Заводы Казани на карте — 2ГИС"),
    FindableSite("https://vk.com/kazan_zavod", "Завод | ВКонтакте"),
    FindableSite("https://ru.wikipedia.org/wiki/Насос", "Насос — Википедия"),
    FindableSite("https://tatarstan.gov.ru/rus/promyshlennost", "Промышленность Татарстана"),
)
