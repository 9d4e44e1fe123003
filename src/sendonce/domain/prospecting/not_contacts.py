"""Addresses that stand on a company's page and do not reach the company."""

from __future__ import annotations

import re

from sendonce.domain.people.mailboxes import ROLES, is_free_mail

_EXAMPLES = """
acme.com address.com admin.com bar.com company.com companyname.com demo.com domain.com domain.net domain.org
domain.ru domain.tld domen.ru email.com email.ru email.tld emaildomain.com example.biz example.com
example.info example.net example.org example.ru foo.bar foo.com host.com mail.example my-site.com
mycompany.com mydomain.com mydomain.ru mysite.com mysite.ru pochta.com primer.com primer.ru sample.com
server.com site.com site.ru somedomain.com somesite.com test.com test.ru tld.com website.com website.ru
your-company.com your-domain.com your-site.com yourcompany.com yourcompany.ru yourdomain.com yourdomain.ru
youremail.com yourmail.com yoursite.com yoursite.ru yourwebsite.com
demolink.org doe.com ipsum.com mywebsite.com mywebsite.ru sitename.com sitename.ru vash-domen.ru vash-sait.ru
vash-sayt.ru vashdomen.ru vashsait.ru vashsite.ru xn----7sbbf2b7bj7b.xn--p1ai
"""
# Error trackers put keys that look like addresses into pages; builders and widgets put their own support, and
# rules on personal data name those who count visitors.
_VENDORS = """
apple.com facebook.com getsentry.com github.com gitlab.com google.com instagram.com linkedin.com meta.com
microsoft.com telegram.org twitter.com whatsapp.com yandex-team.ru
1c-bitrix.ru amocrm.ru bitrix24.ru bugsnag.com callibri.ru carrotquest.io cloudflare.com envato.com
fontawesome.com getbootstrap.com getresponse.com godaddy.com insales.ru jivo.ru jivosite.com joomla.org
jquery.com loggly.com mailchimp.com mixpanel.com raygun.io roistat.com rollbar.com sendgrid.net sendpulse.com
sentry-cdn.com sentry.io sentry.wixpress.com shopify.com squarespace.com templatemonster.com themeforest.net
tilda.cc tilda.ws unisender.com w3.org wix.com wixpress.com wordpress.com wordpress.org
"""
# Named on pages about personal data, as the place for complaints.
_AUTHORITIES = re.compile(r"(?:^|\.)(?:gov\.ru|(?:rkn|rsoc|rospotrebnadzor|fas|nalog)\.ru)\Z")
_NOBODY = """
abuse blackhole bot bots bounce bounces devnull do-not-reply do_not_reply donotreply dontreply git hg
honeypot hostmaster mailer-daemon no-reply no.reply no_reply noanswer nobody noreply noreplay not-reply
postmaster robot root spam-trap spamtrap svn trap unsubscribe www-data
"""
_PLACEHOLDERS = """
example firstname.lastname imya name.surname primer someone user.name username vasha-pochta vasha_pochta
vashe-imya vasheimya vashapochta your your-email your-mail your-name your.email your.mail your.name
demo name test test-user test_user tester testuser user your_email your_mail your_name youremail yourmail
yourname xxx xxxx
"""
EXAMPLES = frozenset(_EXAMPLES.split())
VENDORS = frozenset(_VENDORS.split())
NOBODY = frozenset(_NOBODY.split())
PLACEHOLDERS = frozenset(_PLACEHOLDERS.split())

# Also ids of messages: a date to the second, or a long word with many digits.
_KEY = re.compile(
    r"[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{10,}|.*\d{13}.*|(?=.{32})(?:\D*\d){8}.*|bounces?\+.*"
)
_PIXELS_OR_VERSION = re.compile(r"\d(?:\.\d)?x\.|v?\d+\.\d+|v\d{1,2}\.[a-z]+\Z")
# react@18.me; but 1c@24.ru is one.
_PACKAGE = re.compile(r"\d{1,2}\.(?!(?:ru|su|by|kz|ua|com|net|org)\Z)[a-z]+\Z")
_EXAMPLE_LABEL = re.compile(r"(?:^|\.)(?:example|primer|yourdomain|your-domain)\.")


def is_nobodys(address: str, registrable: str) -> bool:
    """Whether nobody of the company reads it. ``registrable`` is that of its domain."""
    local, _, domain = address.rpartition("@")
    return (
        local in NOBODY
        or local in PLACEHOLDERS
        or registrable in EXAMPLES
        or registrable in VENDORS
        or _KEY.fullmatch(local) is not None
        or _PIXELS_OR_VERSION.match(domain) is not None
        or (local not in ROLES and _PACKAGE.match(domain) is not None)
        or (registrable != "" and _AUTHORITIES.search(domain) is not None)
        # A department of the provider: nobody else can have an address there.
        or (domain != registrable and is_free_mail(registrable))
        or _EXAMPLE_LABEL.search(domain) is not None
        or "sentry" in domain
    )


_MAKERS_WORDS = re.compile(
    r"(?:разработ|созда(?:н|ли|ем|ём)|изготовл|сделан|продвиж|раскрут|поддержк|дизайн|вёрстк|верстк|программир|"
    r"администриров|техподдержк)\w*[^\n.!?]{0,24}(?:сайт|интернет-магазин|лендинг|веб|web)"
    r"|(?:сайт|лендинг|магазин)\w*\s+(?:разработ|созда|сделан|изготов|работает на)"
    r"|веб-?студи|web-?студи|web[ -]?studio|digital[ -]agency|интернет-агентств|веб-?разработ"
    r"|(?:site|website|web design|web development|design|theme|template|developed|created|made|powered"
    r"|designed|built|coded|programming)\s*(?:&\s*\w+\s*|with\s+\S{1,12}\s+)?(?:by\b|author|:)"
    r"|(?:дизайн|создание|вёрстка|верстка)\s+и\s+(?:разработка|продвижение|поддержка|вёрстка|верстка)\s*[:—–-]"
    r"|(?:theme|template|plugin)\s+author|автор\s+(?:темы|шаблона|сайта)|шаблон\w*\s+(?:от|для)|вебмастер|webmaster"
    r"|разработ(?:чики?|ано|ка)\s*(?:сайта)?\s*[:—–-]"
    r"|сделано (?:с любовью )?в\s{1,3}(?:студи|агентств|веб|web|digital)"
    r"|вопрос\w* (?:о |по )?(?:работ\w+|функционировани\w+) сайта"
    r"|(?:дизайн|хостинг|веб-?мастер|hosting)\s*[:—–-]",
    re.IGNORECASE,
)


# One of these is in everything that the pattern finds; most texts have none, and are done with sooner.
_MAKERS_ROOTS = (
    "сайт",
    "веб",
    "web",
    "магазин",
    "лендинг",
    "интернет-аг",
    " by",
    "author",
    "design",
    "theme",
    "template",
    "автор",
    "создание и",
    "верстка и",
    "вёрстка и",
    "шаблон",
    "сделано",
    "разработ",
    "дизайн",
    "хостинг",
    "hosting",
    "digital",
)


def names_makers_of_the_site(text: str) -> bool:
    """«Разработка сайта», "Site by": what is written here are the web studio's contacts."""
    lowered = text.lower()
    return any(root in lowered for root in _MAKERS_ROOTS) and _MAKERS_WORDS.search(lowered) is not None


_SAMPLE = re.compile(
    r"(?:например|пример(?: заполнения)?|образец|формат[ае]?|вида|логин|e\.g\.|example|for instance|login)"
    r"[\s:,(«—–-]{0,5}\Z",
    re.IGNORECASE,
)


def is_called_a_sample(before: str) -> bool:
    """«Например, ivan@mail.ru»: shows how to fill in a form."""
    return _SAMPLE.search(before[-30:]) is not None


_BAIT = re.compile(
    r"(?:не (?:пишите|отправляйте|шлите)|do(?:n't| not) (?:write|e?-?mail|send|use|contact)|harvest)"
    r"(?:\s(?:письма|сюда|на|по|этот|этому|адрес|адресу|ящик|any|anything|e?-?mails?|to|this|address|at|here)){0,6}"
    r"[\s:—–-]{0,5}\Z",
    re.IGNORECASE,
)


def is_called_bait(before: str) -> bool:
    """«Не пишите на этот адрес: …»: whoever does is blocked."""
    return _BAIT.search(before[-80:]) is not None


_OTHERS = re.compile(
    r"наши партн[её]ры|наши клиенты|отзывы(?!\s+(?:и|на|присыл|пиш|отправ))"
    r"|our (?:partners|clients|customers)|testimonials|customer reviews",
    re.IGNORECASE,
)
_HEADS_OTHERS = re.compile(
    r"партн[её]р|клиенты\b|дилер|дистриб[ью]*ютор|поставщик|представители\b|где купить|нам доверяют|отзыв"
    r"|нас рекомендуют|(?:наши|реализованные|выполненные) (?:проект|объект|заказчик)|друзья|комментари"
    r"|вопросы? (?:и ответ|посетител)|\Aновости|partners?\b|dealers?\b|distributors?\b|suppliers?\b"
    r"|resellers?\b|where to buy|\bclients\b|\bcustomers\b|testimonials?|reviews?\b|comments?\b",
    re.IGNORECASE,
)
_LONGEST_HEADING = 60
_OWN_HEADING = re.compile(
    r"контакт|связ|напиш|написать|обращ|отдел|служб|менеджер|стать |станьте|для |contact|write|become|depart",
    re.IGNORECASE,
)


def names_others(before: str) -> bool:
    """«Наши партнёры»: what is written under it are contacts of other companies."""
    return _OTHERS.search(before) is not None


def heads_others(heading: str) -> bool:
    """The same for a heading, which says nothing else. «Отдел по работе с партнёрами» is the company's."""
    heading = heading.strip()[:_LONGEST_HEADING]
    return _HEADS_OTHERS.search(heading) is not None and not _OWN_HEADING.search(heading)


_LEAST_ALIKE = 4


def are_named_alike(one: str, other: str) -> bool:
    """``firma.ru`` and ``firma-kazan.com``: domains that one company may have."""
    shorter, longer = sorted((domain.partition(".")[0] for domain in (one, other)), key=len)
    words = [word for word in shorter.split("-") if len(word) >= _LEAST_ALIKE]
    return any(word in longer for word in words)
