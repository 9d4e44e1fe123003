"""What the name of a mailbox tells: an office or a person, a company's own domain or a free provider."""

from __future__ import annotations

import re

_ROLES = """
abuse accounting accounts admin administrator anketa billing box buh buhgalter buhgalteria buhgalteriya
careers client clients commerce company contact contacts corp customerservice direct director dispatcher
dogovor dostavka enquiries export factory feedback finance general glavbuh help helpdesk hello hostmaster hr
info inbox inform it jobs kadry kanc kancelyaria kontakt legal logist logistic logistika mail mailbox
mailer-daemon main manager market marketing media news no-reply noc noreply ofis office op opt opt-zakaz
order orders otdel personal pochta post postmaster pr press priem priemnaya privacy prod prodaga prodaja
prodazha prodazhi prodazi production reception reklama rekvizit resume root sale sales sbit sbyt secr
secretar secretary security sekretar server service servis shop site sklad snab snabgenie snabzhenie spam
staff store support sysadmin team tech tender torg trade usenet vacancy webmaster welcome www zakaz zakazi
zakupka zakupki zavod zayavka
"""
_FREE_MAIL = """
aol.com bk.ru email.ua gmail.com gmx.at gmx.com gmx.de gmx.net googlemail.com hotmail.com i.ua icloud.com
inbox.lv inbox.ru internet.ru list.ru live.com live.ru mac.com mail.com mail.kz mail.ru mail.ua me.com
meta.ua msn.com narod.ru outlook.com pochta.ru proton.me protonmail.com rambler.ru rambler.ua ro.ru
t-online.de tut.by ukr.net vk.com web.de xmail.ru ya.ru yahoo.com yandex.by yandex.com yandex.kz yandex.ru
yandex.ua
"""

# Mailboxes of an office and not of a person: read by many, who did not all subscribe.
ROLES = frozenset(_ROLES.split())

# Everybody may have an address there. Their DMARC policies tell receivers to refuse letters that leave by
# anybody else's servers.
FREE_MAIL = frozenset(_FREE_MAIL.split())

_WORDS = re.compile(r"[a-z]+")


def is_role(local: str) -> bool:
    """``info``, ``sales.kazan``, ``zakaz2``: it is the first word that tells."""
    first = _WORDS.match(local)
    return local in ROLES or (first is not None and first[0] in ROLES)


def is_free_mail(domain: str) -> bool:
    return domain in FREE_MAIL
