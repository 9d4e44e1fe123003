"""Pages of companies as the web has them, with contacts that are known: for the row that reads them."""

# ruff: noqa: E501 - markup that is cut in pieces cannot be read

from __future__ import annotations

import random
from dataclasses import dataclass

_TEXT = """
насосы станция поставка компания производство Казань цена каталог монтаж сервис гарантия чертёж доставка
двигатель клапан фланец труба арматура завод качество срок склад оплата договор проект расчёт подбор ремонт
"""
_WORDS = _TEXT.split()
_SIZES = (20_000, 50_000, 100_000, 200_000)


@dataclass(frozen=True, slots=True)
class CompanyPage:
    url: str
    data: bytes
    emails: frozenset[str]


def pages(count: int) -> list[CompanyPage]:
    return [_page(number, _SIZES[number % len(_SIZES)]) for number in range(count)]


def _page(number: int, size: int) -> CompanyPage:
    """One plain link, one address in the text, and one in a way that hides it from simple programs."""
    dice = random.Random(number)
    domain = f"zavod-{number}.ru"
    hidden = (
        f"zakaz (собака) {domain}",
        f"zakaz<span>@</span>{domain}",
        f"<script>document.write('zakaz'+'@'+'{domain}')</script>",
        f"zakaz [at] {domain}",
        f"zakaz&#64;{domain}",
        f'<a href="mailto:zakaz%40{domain}">написать</a>',
        f'<span data-user="zakaz" data-domain="{domain}"></span>',
        f"zakaz @ {domain}",
    )[number // 4 % 8]
    phone = f"+7 (843) {dice.randint(200, 599)}-{dice.randint(10, 99)}-{dice.randint(10, 99)}"
    head = (
        f'<!DOCTYPE html><html lang="ru"><head><meta charset="utf-8"><title>{_text(dice, 4)}</title>'
        f'<link rel="stylesheet" href="/css/main.css?v={number}"><style>{".card{margin:0 auto;padding:1em}" * 20}</style>'
        f"<script>window.dataLayer=window.dataLayer||[];{'dataLayer.push(1);' * 60}</script></head><body><header>"
        f'<div class="top"><a href="tel:{phone}">{phone}</a> <a href="mailto:info@{domain}">info@{domain}</a></div>'
        f"<nav><ul>{''.join(_menu_item(dice, item) for item in range(24))}</ul></nav></header><main>"
    )
    foot = (
        f"</main><footer><p>ООО «Завод {number}» ИНН 7707083893, ОГРН 1027700132195</p><p>Отдел продаж: "
        f"sales@{domain}, тел. 8 (843) {dice.randint(200, 599)}-44-56 доб. 12</p><p>Заказы: {hidden}</p>"
        f'</footer><script src="/js/swiper@11.min.js"></script></body></html>'
    )
    cards: list[str] = []
    length = len((head + foot).encode())
    while length < size:
        cards.append(_card(dice, len(cards)))
        length += len(cards[-1].encode())
    emails = frozenset(f"{name}@{domain}" for name in ("info", "sales", "zakaz"))
    return CompanyPage(f"https://{domain}/kontakty", "".join([head, *cards, foot]).encode(), emails)


def _text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(_WORDS, k=words))


def _menu_item(dice: random.Random, item: int) -> str:
    return f'<li class="nav-item"><a class="nav-link" href="/catalog/{item}/">{_text(dice, 2)}</a></li>'


def _card(dice: random.Random, number: int) -> str:
    return (
        f'<div class="card" data-id="{number}"><div class="card-img"><img src="/img/p{number}@2x.png" '
        f'alt="{_text(dice, 3)}" loading="lazy"></div><h3 class="card-title"><a href="/p/{number}">{_text(dice, 4)}</a>'
        f'</h3><p class="desc">{_text(dice, 18)}</p><div class="price"><span class="val">{dice.randint(1000, 99999)}'
        f'</span> <span class="cur">руб.</span></div><button class="btn" onclick="add({number})">В корзину</button></div>\n'
    )
