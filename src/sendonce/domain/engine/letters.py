"""A letter, and what every copy of it carries besides its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

from sendonce.domain.engine.tokens import CONFIRM, sign_token
from sendonce.errors import BadInput

NAMELESS = "@nameless"
"""A field that keeps ``name`` out of the To header: it is another person's, borrowed to show how it looks."""

_CYRILLIC = re.compile("[\u0400-\u04ff]")
_BASE_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,255}(?:/[A-Za-z0-9._~/-]{0,200})?")
_UNSUBSCRIBE = {"ru": "Отписаться", "en": "Unsubscribe"}
_LANGUAGES = {"ru": ("ru", "russian", "русский"), "en": ("en", "english", "английский")}
_VIEW = {"ru": "Открыть в браузере", "en": "View in browser"}


@dataclass(frozen=True, slots=True)
class Letter:
    """Content. Subject, preheader, html and text are template sources (see ``templates``).

    ``html`` is markup as it is; a variable's value is escaped when it is put in.
    ``from_name`` and ``reply_to`` override the sender's usual ones for this letter, ``language`` that of its
    footer.
    ``text_only`` letters leave as plain text alone; their ``html`` is kept for previews.
    """

    subject: str
    preheader: str
    html: str
    text: str
    from_name: str | None = None
    reply_to: str | None = None
    text_only: bool = False
    language: str | None = None


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """What the messages of a dispatch have in common and no letter says.

    ``footer_address`` is the sender's postal address, which anti-spam laws want in every letter.
    ``base_url`` is where recipients reach us: the unsubscribe link begins with it.
    ``language`` is that of the footer, "ru" or "en", unless the letter has its own; None takes it from the
    subject.
    ``feedback_id`` adds the header by which Gmail counts complaints of a dispatch.
    ``view_links`` adds a link to a page that shows the letter.
    """

    from_address: str
    from_name: str | None
    reply_to: str | None
    footer_address: str
    base_url: str
    message_id_domain: str
    unsubscribe_secret: bytes = field(repr=False)
    language: str | None = None
    feedback_id: bool = False
    view_links: bool = False


def language_named(word: str) -> str | None:
    """The language that the author of a letter wrote; None for no word. Raises BadInput for another one."""
    wanted = word.strip().casefold()
    for language, names in _LANGUAGES.items():
        if wanted in names:
            return language
    if wanted:
        raise BadInput(f"The letter's language is {word[:60]!r}: write {' or '.join(_LANGUAGES)}.")
    return None


def language_of(text: str) -> str:
    """ "ru" for text with Cyrillic letters, else "en"."""
    return "ru" if _CYRILLIC.search(text) else "en"


def unsubscribe_url(base_url: str, job_id: str, secret: bytes) -> str:
    """The link that the copy of this job carries."""
    return unsubscribe_prefix(base_url) + sign_token(job_id, secret)


def unsubscribe_prefix(base_url: str) -> str:
    """The unsubscribe link up to its token."""
    return _prefix(base_url, "unsubscribe")


def confirm_url(base_url: str, sign_up_id: str, secret: bytes) -> str:
    """The link by which whoever signed up says that it was them."""
    return _prefix(base_url, "confirm") + sign_token(sign_up_id, secret, CONFIRM)


def view_prefix(base_url: str) -> str:
    """The link to a page that shows the letter, up to its token."""
    return _prefix(base_url, "letter")


def _prefix(base_url: str, page: str) -> str:
    if not _BASE_URL.fullmatch(base_url):
        raise BadInput(f"base_url: {base_url!r} is not an address such as https://mail.example.com.")
    return f"{base_url.rstrip('/')}/{page}?token="


@dataclass(frozen=True, slots=True)
class FooterLink:
    """A link that ends in a token, in two halves: the token stands between."""

    url: str
    word: str

    def text(self) -> tuple[str, str]:
        return f"\n{self.word}: {self.url}", ""

    def html(self) -> tuple[str, str]:
        return f'<br><a href="{escape(self.url)}', f'" class="muted" style="color:#767676">{self.word}</a>'


@dataclass(frozen=True, slots=True)
class Footer:
    """The postal address and the way out; ``view`` is None unless letters link to a page that shows them."""

    address: str
    way_out: FooterLink
    view: FooterLink | None

    @classmethod
    def of(cls, settings: MessageSettings, language: str) -> Footer:
        if language not in _UNSUBSCRIBE:
            known = ", ".join(_UNSUBSCRIBE)
            raise BadInput(f"language: {language!r} is not a language of the footer. Choose one of {known}.")
        out = FooterLink(unsubscribe_prefix(settings.base_url), _UNSUBSCRIBE[language])
        view = FooterLink(view_prefix(settings.base_url), _VIEW[language]) if settings.view_links else None
        return cls(settings.footer_address.strip(), out, view)

    def text(self) -> tuple[str, str]:
        """What stands before the links, and after them."""
        return f"\n\n———\n{self.address}", "\n"

    def html(self) -> tuple[str, str]:
        address = escape(self.address).replace("\n", "<br>")
        style = "padding:24px 16px;text-align:center;font:12px/18px Arial,sans-serif;color:#767676"
        return f'\n<div class="muted" style="{style}">{address}', "</div>\n"
