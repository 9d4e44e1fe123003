"""The ways in which sites write an address: plainly, for machines, or hidden from machines."""

from __future__ import annotations

import base64
import codecs
import random
from string import Template
from urllib.parse import quote

PLAIN = (
    '<a href="mailto:$address">$address</a>',
    "E-mail: $address",
    '<a href="mailto:$address?subject=%D0%97%D0%B0%D1%8F%D0%B2%D0%BA%D0%B0">Написать</a>',
    "<b>Почта:</b> <span>$address</span>",
)
TRICKY = (
    '<a href="mailto:$user%40$host">Почта</a>',
    '<a href="mailto:$quoted">Почта</a>',
    '<a href="$mailto_entities">Почта</a>',
    "Почта: $entities",
    "Почта: $user&commat;$host",
    '<a class="__cf_email__" data-cfemail="$cloudflare">[email&#160;protected]</a>',
    '<a href="/cdn-cgi/l/email-protection#$cloudflare">Написать письмо</a>',
    "Почта: $user [at] $host_dot",
    "Почта: $user(at)$host",
    "Почта: $user(a)$host",
    "Почта: $user (собака) $host",
    "Почта: $user [собака] $host_tochka",
    "Почта: $user＠$host",
    "Почта: $user\u200b@\u200b$host",
    "Почта: $user @ $host",
    "Почта: $user<span>@</span>$host",
    "Почта: $user<!-- антиспам -->@$host",
    'Почта: $user@<span style="display:none">remove.</span>$host',
    '<span style="unicode-bidi:bidi-override; direction:rtl">$backwards</span>',
    '<a class="mail" data-user="$user" data-domain="$host" href="#">Показать почту</a>',
    "<script>document.write('$user' + '@' + '$host');</script>",
    "<script>var n = '$user', d = '$host'; show('mailto:' + n + '@' + d);</script>",
    "<script>document.write($pieces)</script>",
    "<script>document.write(String.fromCharCode($codes))</script>",
    "<script>el.textContent = atob('$base64')</script>",
    "<script>function r(s){return s.replace(/[a-z]/gi,function(c){var k=c.charCodeAt(0),b=k<97?65:97;"
    "return String.fromCharCode((k-b+13)%26+b)})} document.write(r('$rot13'))</script>",
    '<script type="application/ld+json">{"@type":"Organization","email":"$address"}</script>',
    '<div itemscope itemtype="https://schema.org/Organization"><span itemprop="email">$address</span></div>',
    '<img src="/mail.png" alt="$address">',
)
PHONES = (
    '<a href="tel:$number">+7 ($code) $local</a>',
    "Тел.: +7 ($code) $local",
    "Телефон: 8 ($code) $local",
    "тел./факс 8-$code-$local",
    '<a href="tel:8$code$rest">Позвонить</a>',
    '<span itemprop="telephone">+7 $code $local</span>',
)


def write_email(address: str, dice: random.Random) -> str:
    user, _, host = address.partition("@")
    if "xn--" in host and dice.random() < 0.5:
        host = host.encode().decode("idna")
    way = dice.choice(PLAIN if dice.random() < 0.5 else TRICKY)
    return Template(way).substitute(_spellings(user, host))


def _spellings(user: str, host: str) -> dict[str, str]:
    address = f"{user}@{host}"
    data = address.encode()
    return {
        "user": user,
        "host": host,
        "address": address,
        "quoted": quote(address, safe=""),
        "entities": _entities(address),
        "mailto_entities": _entities(f"mailto:{address}"),
        "cloudflare": bytes([0x3C, *(byte ^ 0x3C for byte in data)]).hex(),
        "host_dot": host.replace(".", " [dot] "),
        "host_tochka": host.replace(".", " [точка] "),
        "backwards": address[::-1],
        "pieces": " + ".join(f"'{address[start : start + 3]}'" for start in range(0, len(address), 3)),
        "codes": ", ".join(str(ord(char)) for char in address),
        "base64": base64.b64encode(data).decode(),
        "rot13": codecs.encode(address, "rot13"),
    }


def _entities(text: str) -> str:
    return "".join(f"&#{ord(char)};" for char in text)


def write_phone(number: str, dice: random.Random) -> str:
    """``number`` in E.164, of Russia."""
    code, rest = number[2:5], number[5:]
    parts = {"number": number, "code": code, "rest": rest, "local": f"{rest[:3]}-{rest[3:5]}-{rest[5:]}"}
    return Template(dice.choice(PHONES)).substitute(parts)
