"""Receivers: the few companies that take most of the world's mail, told by where a domain's mail goes (MX).

A company's own domain may be hosted by Google; its letters count with all others that Google takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from sendonce.errors import BadInput


class Receiver(StrEnum):
    GOOGLE = "google"
    MICROSOFT = "microsoft"
    YAHOO = "yahoo"
    MAILRU = "mailru"
    YANDEX = "yandex"
    OTHER = "other"


_BY_MX = {
    "google.com": Receiver.GOOGLE,
    "googlemail.com": Receiver.GOOGLE,
    "psmtp.com": Receiver.GOOGLE,
    "outlook.com": Receiver.MICROSOFT,
    "hotmail.com": Receiver.MICROSOFT,
    "office365.us": Receiver.MICROSOFT,
    "mx.microsoft": Receiver.MICROSOFT,
    "yahoodns.net": Receiver.YAHOO,
    "mail.ru": Receiver.MAILRU,
    "vk.team": Receiver.MAILRU,
    "yandex.ru": Receiver.YANDEX,
    "yandex.net": Receiver.YANDEX,
    "yandex.com": Receiver.YANDEX,
}
# Domains of the receivers' own mailboxes: known without asking.
_BY_DOMAIN = {
    **dict.fromkeys(("gmail.com", "googlemail.com"), Receiver.GOOGLE),
    **dict.fromkeys(("outlook.com", "hotmail.com", "live.com", "msn.com"), Receiver.MICROSOFT),
    **dict.fromkeys(
        ("yahoo.com", "ymail.com", "aol.com", "yahoo.co.uk", "yahoo.de", "yahoo.fr"), Receiver.YAHOO
    ),
    **dict.fromkeys(("mail.ru", "bk.ru", "inbox.ru", "list.ru", "internet.ru"), Receiver.MAILRU),
    **dict.fromkeys(("yandex.ru", "ya.ru", "yandex.com", "yandex.kz", "yandex.by"), Receiver.YANDEX),
}
PER_MINUTE: Mapping[Receiver, int] = {
    Receiver.GOOGLE: 20,
    Receiver.MICROSOFT: 20,
    Receiver.YAHOO: 10,
    Receiver.MAILRU: 20,
    Receiver.YANDEX: 20,
    Receiver.OTHER: 100,
}
"""Letters a minute to each, from all senders of a tenant together."""


def receiver_of_domain(domain: str) -> Receiver | None:
    """Of a domain whose mail needs no look at the DNS."""
    return _BY_DOMAIN.get(domain.lower())


def receiver_of_mx(hosts: Iterable[str]) -> Receiver:
    for host in hosts:
        name = host.lower().rstrip(".")
        for suffix, receiver in _BY_MX.items():
            if name == suffix or name.endswith(f".{suffix}"):
                return receiver
    return Receiver.OTHER


def parse_limits(text: str) -> dict[Receiver, int]:
    """``google=20, other=100``: letters a minute; who is not named keeps its usual limit."""
    limits = dict(PER_MINUTE)
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, number = part.partition("=")
        if name.strip() not in set(Receiver) or not number.strip().isdigit() or int(number) < 1:
            raise BadInput(f"{part!r} is no limit of a receiver: write google=20 (letters a minute).")
        limits[Receiver(name.strip())] = int(number)
    return limits
