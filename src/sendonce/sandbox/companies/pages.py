"""The pages of a company's site."""

# ruff: noqa: E501 - markup that is cut in pieces cannot be read

from __future__ import annotations

import html
import random

from sendonce.sandbox.companies.registry import MadeUpCompany, Manner
from sendonce.sandbox.companies.traps import some_traps
from sendonce.sandbox.companies.writing import write_email, write_phone

# Where a site tells how to reach its company: the words of the link, and the path behind it.
_PLACES = (
    ("Контакты", "/kontakty/"),
    ("Контакты", "/contacts"),
    ("Контактная информация", "/page/7/"),
    ("О компании", "/o-kompanii.html"),
    ("Связаться с нами", "/feedback/"),
    ("Контакты", "/контакты"),
)
_WORDS = [
    "поставка",
    "монтаж",
    "сервис",
    "гарантия",
    "чертёж",
    "доставка",
    "цена",
    "каталог",
    "качество",
    "срок",
    "склад",
    "оплата",
    "договор",
    "проект",
]


def contact_place(company: MadeUpCompany) -> tuple[str, str]:
    if company.manner is Manner.ENGLISH:
        return "Contact us", "/contact-us/"
    if company.manner is Manner.REQUISITES:
        return "Реквизиты", "/docs/12/"
    if company.manner is Manner.SITEMAP:
        return "", "/company/contacts.html"
    if company.manner is Manner.HIDDEN_PATH:
        return "", "/contacts/"
    return random.Random(company.number).choice(_PLACES)


def home_page(company: MadeUpCompany) -> str:
    dice = company.dice()
    text, path = contact_place(company)
    link = f'<li><a href="{path}">{text}</a></li>' if text else ""
    body = (
        f"<h1>{html.escape(company.what)}</h1><p>{_prose(dice)}</p>{_cards(company, dice)}"
        f"{'<div>' * 3000 if company.manner is Manner.DEEP else ''}"
        f"{_injection(company)}{some_traps(dice)}"
    )
    if dice.random() < 0.3:
        body += f"<footer>{_ways_to_reach(company, dice)}</footer>"
    return _frame(company, company.what, f"<ul><li><a href='/catalog/'>Каталог</a></li>{link}</ul>{body}")


def contact_page(company: MadeUpCompany) -> str:
    dice = company.dice()
    dice.random()
    body = (
        f"<h1>{'Contacts' if company.manner is Manner.ENGLISH else 'Контакты'}</h1>"
        f"{_ways_to_reach(company, dice)}<p>Адрес: г. {company.city}, ул. Заводская, д. {dice.randint(1, 90)}</p>"
        f"<p>{html.escape(company.name)}, ИНН {company.inn}, ОГРН {company.ogrn}</p>{some_traps(dice)}"
    )
    return _frame(company, f"Контакты: {company.what}", body)


def sitemap(company: MadeUpCompany) -> str:
    pages = ("/", "/catalog/", contact_place(company)[1])
    places = "".join(f"<url><loc>https://{company.domain}{page}</loc></url>" for page in pages)
    return (
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
    )


def _frame(company: MadeUpCompany, title: str, body: str) -> str:
    meta = f'<meta charset="{company.charset}">' if company.number % 3 else ""
    return (
        f'<!DOCTYPE html><html lang="ru"><head>{meta}<title>{html.escape(title)} — {html.escape(company.name)}</title>'
        f'<meta name="description" content="{html.escape(company.what)}. {company.city}: {company.product} со склада и под заказ.">'
        f"<style>.card{{margin:1em}} .x{{color:red}}</style><script>window.dataLayer=[];</script></head><body>{body}</body></html>"
    )


def _ways_to_reach(company: MadeUpCompany, dice: random.Random) -> str:
    lines = [write_email(address, dice) for address in company.emails]
    lines += [write_phone(number, dice) for number in company.phones]
    return "".join(f"<p>{line}</p>\n" for line in lines)


def _injection(company: MadeUpCompany) -> str:
    """In plain sight, hidden by style, and in a comment."""
    if not company.injected:
        return ""
    seen, hidden, unseen = company.injected
    return f'<p>{seen}</p><div style="display:none">{hidden}</div><!-- {unseen} -->'


def _prose(dice: random.Random) -> str:
    return " ".join(dice.choices(_WORDS, k=40)).capitalize() + "."


def _cards(company: MadeUpCompany, dice: random.Random) -> str:
    return "".join(
        f'<div class="card"><img src="/img/p{number}@2x.png" alt="{company.product}"><h3>{_prose(dice)[:40]}</h3>'
        f"<p>{dice.randint(1000, 99999)} руб., артикул {dice.randint(10**9, 10**10)}</p></div>"
        for number in range(dice.randint(3, 12))
    )
