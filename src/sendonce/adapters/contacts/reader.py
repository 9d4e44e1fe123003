"""All contacts of one page, from every place where people put them. No network call."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from sendonce.adapters.contacts.attributes import What, attributes_of, readings_of
from sendonce.adapters.contacts.bait import is_among_others, is_unseen
from sendonce.adapters.contacts.charset import page_in_utf8
from sendonce.adapters.contacts.frames import frames_of
from sendonce.adapters.contacts.markup import MAX_PAGE, Page, read_page
from sendonce.adapters.contacts.phones import (
    Number,
    country_of,
    messenger_phone,
    phone_in_field,
    phone_in_link,
    phones_in_text,
)
from sendonce.adapters.contacts.script_codes import Undoing, undoing_of
from sendonce.adapters.contacts.scripts import (
    Helpers,
    Text,
    helpers_of,
    rot13_is_used,
    script_texts,
    variables_of,
)
from sendonce.adapters.contacts.structured import codes, json_ld, microdata, vcard
from sendonce.adapters.contacts.visibility import HIDES
from sendonce.adapters.web.public_suffixes import PublicSuffixes
from sendonce.adapters.web.site_reader import SiteReader
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.mailboxes import is_free_mail
from sendonce.domain.prospecting.contacts import (
    Contacts,
    Email,
    Phone,
    Source,
    email_contact,
    phone_contact,
    ranked_emails,
    ranked_phones,
)
from sendonce.domain.prospecting.not_contacts import (
    are_named_alike,
    is_called_a_sample,
    is_called_bait,
    is_nobodys,
    names_makers_of_the_site,
    names_others,
)
from sendonce.domain.prospecting.tax_numbers import is_inn, is_ogrn, tax_numbers
from sendonce.domain.prospecting.written_addresses import find_addresses
from sendonce.errors import BadInput

_LINKS = '[href*=":"],form[action*=":"]'
_LINKS_OF_DRAWINGS = "svg a"
_CLOUDFLARE = '[data-cfemail],[href*="/cdn-cgi/l/email-protection#"]'
_MAX_LINKS = 5000
_MAX_SCRIPTS = 500
_MAX_HIDING = 4
_MAX_CALLS = 100
_MAX_FRAMES = 20
# Browsers take these out of a link.
_BREAKS_IN_LINK = re.compile(r"[\t\r\n]+")
_MAIL_PROGRAM = re.compile(
    r"https?://(?:(?:mail|e\.mail|outlook)\.[^?#]{1,100}\?(?:[^#]{0,500}&)?to=|formsubmit\.co/)([^&#]{5,300})",
    re.IGNORECASE,
)
# {{ 'info' + '@' + 'firma.ru' }}
_FILLED_IN = re.compile(r"\{\{([^{}]{5,200})\}\}")
# A page says for machines whose these are.
_STATED = (Source.JSON_LD, Source.MICRODATA)
_QUOTABLE = re.compile(r"[\w.+@-]+", re.ASCII)


class ContactReader:
    def __init__(self, sites: SiteReader, suffixes: PublicSuffixes) -> None:
        self._suffixes = suffixes
        # A visit reads several pages of a site.
        self._domain_of = lru_cache(maxsize=1024)(lambda origin: sites.read(origin).domain)

    def read(self, data: bytes, url: str, charset: str | None = None) -> Contacts:
        """``url`` tells which addresses are the company's own, and the country of its phones."""
        return self.read_page(read_page(page_in_utf8(data[: 2 * MAX_PAGE], charset)), url)

    def read_page(self, page: Page, url: str) -> Contacts:
        own_domain = self._domain_of("/".join(url.split("/", 3)[:3]))
        return _Reading(page, own_domain, self._suffixes).contacts()


class _Reading:
    """One page being read."""

    def __init__(self, page: Page, own_domain: str | None, suffixes: PublicSuffixes) -> None:
        self._page = page
        self._own = own_domain
        self._suffixes = suffixes
        self._country = country_of(own_domain)
        self._emails: list[Email] = []
        self._phones: list[Phone] = []
        self._others: set[str] = set()
        self._inn: dict[str, None] = {}
        self._ogrn: dict[str, None] = {}

    def contacts(self) -> Contacts:
        self._read_structured()
        self._read_cloudflare()
        self._read_links()
        self._read_text()
        self._read_attributes()
        self._read_scripts()
        self._read_frames()
        if not self._emails and "@" in self._page.seen.text and self._rot13:
            self._find_in(codecs.encode(self._page.seen.text, "rot13"), Source.OBFUSCATED)
        return Contacts(
            ranked_emails(self._ours()), ranked_phones(self._phones), list(self._inn), list(self._ogrn)
        )

    # -- places -----------------------------------------------------------------------------------

    def _read_structured(self) -> None:
        for name, value in json_ld(self._page.scripts):
            self._take_field(name, value, Source.JSON_LD)
        for name, value in chain(microdata(self._page), codes(self._page)):
            self._take_field(name, value, Source.MICRODATA)

    def _read_cloudflare(self) -> None:
        for node in self._page.select(_CLOUDFLARE, b"cfem", b"l-pro"):
            hidden = (
                node.attributes.get("data-cfemail") or (node.attributes.get("href") or "").rpartition("#")[2]
            )
            address = (_uncovered(hidden) or "").partition("?")[0]
            if address and not self._is_makers(address, node):
                self._take_address(address, Source.CLOUDFLARE)

    def _read_links(self) -> None:
        for node in self._page.tree.css(_LINKS)[:_MAX_LINKS]:
            self._read_link(node, node.attributes.get("href") or node.attributes.get("action") or "")
        for node in self._page.select(_LINKS_OF_DRAWINGS, b"xlink"):
            self._read_link(node, node.attributes.get("xlink:href") or "")

    def _read_link(self, node: LexborNode, href: str) -> None:
        href = _BREAKS_IN_LINK.sub("", href.strip())
        scheme = href.partition(":")[0].lower()
        if scheme == "mailto":
            for address in _mailto_addresses(href):
                self._find_in_link(address, node)
        elif scheme in ("tel", "callto"):
            self._take_phone(phone_in_link(href, self._country), Source.TEL, node)
        elif scheme == "javascript":
            self._read_script(unquote(href[11:]), named="mailto")
        elif "mailto:" in href[:20].lower():  # http://mailto:info@firma.ru, which no browser opens
            self._find_in_link(unquote(href.lower().partition("mailto:")[2]), node)
        elif scheme == "data":
            for name, value in vcard(href):
                self._take_field(name, value, Source.MICRODATA)
        elif scheme in ("http", "https", "viber", "whatsapp"):
            self._take_phone(messenger_phone(href, self._country), Source.MESSENGER, node)
            if composed := _MAIL_PROGRAM.match(href):
                self._find_in_link(unquote(composed[1]), node)

    def _find_in_link(self, text: str, node: LexborNode) -> None:
        written = list(find_addresses(text, self._is_domain))
        if not written and "@" in text and self._rot13:
            written = list(find_addresses(codecs.encode(text, "rot13"), self._is_domain))
        for found in written:
            if not self._is_makers(found.address, node) and not self._is_bait(found.address, node):
                self._take_address(found.address, Source.MAILTO)

    def _read_text(self) -> None:
        text, words = self._page.seen
        for found in find_addresses(text, self._is_domain, words=words):
            around = _nearest(found.before, found.after)
            if self._is_foreign(found.address) and names_makers_of_the_site(around):
                continue
            if is_called_a_sample(found.before) or is_called_bait(found.before):
                continue
            if self._is_foreign(found.address) and names_others(found.before):
                self._others.add(found.address.lower())
                continue
            self._take_address(found.address, Source.OBFUSCATED if found.obfuscated else Source.TEXT)
        for number, place in phones_in_text(text, self._country):
            if not names_makers_of_the_site(text[max(0, place - 60) : place].rpartition("\n\n")[2]):
                self._take_phone(number, Source.TEXT)
        if "{" in text and "{{" in text:
            for filled_in in _FILLED_IN.findall(text)[:_MAX_CALLS]:
                self._read_script(filled_in)
        inn, ogrn = tax_numbers(text)
        self._inn |= dict.fromkeys(inn)
        self._ogrn |= dict.fromkeys(ogrn)

    def _read_attributes(self) -> None:
        for held in attributes_of(self._page):
            if held.what is What.SCRIPT:
                self._read_script(held.text, named="mailto")
            elif held.what is What.FIELD and self._is_foreign(held.text):
                continue  # what a form begins with may be a sample
            elif held.what is What.CODED:
                self._read_coded(held.text)
            else:
                self._find_in(held.text, Source.META if held.what is What.META else Source.ATTRIBUTE)

    @cached_property
    def _rot13(self) -> bool:
        if any(rot13_is_used(script.body) for script in self._page.scripts):
            return True
        handlers = self._page.lowered if b"charcodeat" in self._page.lowered else b""
        return rot13_is_used(handlers.decode("ascii"))

    @cached_property
    def _undoing(self) -> Undoing | None:
        """How the page's scripts decode what attributes hold."""
        return next(filter(None, (undoing_of(script) for script in self._scripts)), None)

    def _read_coded(self, value: str) -> None:
        for form in readings_of(value, rot13=self._rot13, undoing=self._undoing):
            if self._find_in(form, Source.ATTRIBUTE):
                return

    def _read_scripts(self) -> None:
        for body in self._scripts:
            self._read_script(body)
        calls = ",".join(f'[onclick*="{name}("]' for name in sorted(self._helpers))
        for node in self._page.tree.css(calls)[:_MAX_CALLS] if calls else ():
            self._read_script(node.attributes.get("onclick") or "", named="mailto")

    def _read_frames(self) -> None:
        """Pages and drawings within the page."""
        for source in islice(frames_of(self._page), _MAX_FRAMES):
            frame = read_page(source.encode("utf-8", "replace"))
            found = _Reading(frame, self._own, self._suffixes).contacts()
            self._emails += (replace(email, primary=False) for email in found.emails)
            self._phones += (replace(phone, primary=False) for phone in found.phones)
            self._inn |= dict.fromkeys(found.inn)
            self._ogrn |= dict.fromkeys(found.ogrn)

    @cached_property
    def _scripts(self) -> list[str]:
        scripts = [script.body for script in self._page.scripts if "ld+json" not in script.attributes]
        return scripts[:_MAX_SCRIPTS]

    @cached_property
    def _variables(self) -> dict[str, str | list[str]]:
        return variables_of(self._scripts)

    @cached_property
    def _helpers(self) -> Helpers:
        return helpers_of(self._scripts)

    def _read_script(self, body: str, named: str = "") -> None:
        for text in script_texts(body, self._variables, self._helpers):
            if "@" in text.text or "%40" in text.text:
                self._take_scripted(text, named)

    def _take_scripted(self, text: Text, named: str) -> None:
        """What a script puts together is meant to be seen; a string that is only written may be anything."""
        for found in find_addresses(unquote(text.text), self._is_domain):
            if text.sample or is_called_a_sample(found.before):
                continue
            said_to_be_one = "mail" in (text.name + named).lower() or "mailto:" in text.text
            if text.made or said_to_be_one or not self._is_foreign(found.address):
                self._take_address(found.address, Source.SCRIPT)

    # -- taking -----------------------------------------------------------------------------------

    def _take_field(self, name: str, value: str, source: Source) -> None:
        if name == "email":
            self._find_in(unquote(value).removeprefix("mailto:"), source)
        elif name == "phone":
            self._take_phone(phone_in_field(value.removeprefix("tel:"), self._country), source)
        elif name == "inn" and is_inn(value.strip()):
            self._inn[value.strip()] = None
        elif name == "ogrn" and is_ogrn(value.strip()):
            self._ogrn[value.strip()] = None

    def _find_in(self, text: str, source: Source) -> bool:
        taken = [self._take_address(found.address, source) for found in find_addresses(text, self._is_domain)]
        return any(taken)

    def _take_address(self, text: str, source: Source) -> bool:
        try:
            address = parse_address(text).key
        except BadInput:
            return False
        registrable = self._registrable(address)
        if registrable is None or (registrable != self._own and is_nobodys(address, registrable)):
            return False
        if is_nobodys(address, ""):
            return False
        self._emails.append(email_contact(address, source))
        return True

    def _take_phone(self, number: Number | None, source: Source, node: LexborNode | None = None) -> None:
        if number is not None and not (node is not None and names_makers_of_the_site(_text_around(node))):
            self._phones.append(phone_contact(number.e164, number.extension, source))

    # -- judging ----------------------------------------------------------------------------------

    def _is_domain(self, host: str) -> bool:
        top = host.rpartition(".")[2]
        if not top.isascii():
            top = top.encode("idna").decode() if len(top) < 30 else ""
        return not top.isdigit() and self._suffixes.is_listed(top)

    def _registrable(self, address: str) -> str | None:
        return self._suffixes.registrable(address.rpartition("@")[2])

    def _is_foreign(self, address: str) -> bool:
        return not address.lower().endswith(f"@{self._own}") and not address.lower().endswith(f".{self._own}")

    def _ours(self) -> list[Email]:
        """Where the company shows an address of its own, those of other companies are other companies'."""
        ours = [email for email in self._emails if not self._is_of_others(email.value)]
        if all(self._is_foreign(email.value) for email in ours):
            return ours
        return [email for email in ours if self._may_be_ours(email)]

    def _may_be_ours(self, email: Email) -> bool:
        if not self._is_foreign(email.value) or email.freemail or email.source in _STATED:
            return True
        return self._own is not None and are_named_alike(self._own, self._registrable(email.value) or "")

    def _is_of_others(self, address: str) -> bool:
        """Whether it stands only among reviews, partners and the like."""
        if address in self._others:
            return True
        if not self._is_foreign(address) or not _QUOTABLE.fullmatch(address):
            return False
        holders = self._page.tree.css(f'*:lexbor-contains("{address}" i),[href*="{address}" i]')
        return bool(holders) and all(map(is_among_others, holders))

    def _is_makers(self, address: str, node: LexborNode) -> bool:
        """Whether it is the web studio's that made the site."""
        if not self._is_foreign(address):
            return False
        return names_makers_of_the_site(f"{node.attributes.get('title')} {_text_around(node)}")

    def _is_bait(self, address: str, node: LexborNode) -> bool:
        """Whether it is a trap for harvesters: a link without a face, or in a hidden block, at a domain that
        is neither the company's nor free mail. The company's own may be in a pop-up that is closed."""
        if is_unseen(node):
            return True
        if not self._is_foreign(address) or is_free_mail(address.rpartition("@")[2].lower()):
            return False
        around = node.parent
        for _ in range(_MAX_HIDING):
            if around is None:
                return False
            if "hidden" in around.attributes or HIDES.search(around.attributes.get("style") or ""):
                return True
            around = around.parent
        return False


def _nearest(before: str, after: str) -> str:
    """What is said about an address: before it, back to the last one, and on the rest of its line."""
    return before.rpartition("@")[2][-90:] + " \n " + after.partition("\n")[0]


def _text_around(node: LexborNode) -> str:
    """The words of the smallest element around that says more than the link itself."""
    own = len(node.text(separator="").strip())
    around: LexborNode | None = node
    for _ in range(3):
        around = around.parent if around is not None else None
        if around is None or around.tag in ("body", "html", "main", "footer", "header"):
            return _line_of(node)
        text = around.text(separator="")
        if len(text) > 300:
            return ""
        if len(text.strip()) > own + 3:
            return text
    return ""


def _line_of(node: LexborNode) -> str:
    """The words before and behind a link that no element of its own holds, up to the ends of its line."""
    before, after = node.prev, node.next
    left = before.text_content or "" if before is not None and before.is_text_node else ""
    right = after.text_content or "" if after is not None and after.is_text_node else ""
    return left.rpartition("\n")[2][-90:] + node.text(separator="") + right.partition("\n")[0][:60]


def _uncovered(hidden: str) -> str | None:
    """Cloudflare: the first byte is the key, the others are the address XOR that key."""
    try:
        data = bytes.fromhex(hidden[:1000])
        return bytes(byte ^ data[0] for byte in data[1:]).decode("utf-8") if data else None
    except ValueError:
        return None


def _mailto_addresses(href: str) -> Iterator[str]:
    """The address of a link and those of its ``to``, ``cc`` and ``bcc``."""
    target, _, query = href[7:].partition("?")
    yield unquote(target[:2000]).lstrip("/")
    for part in html.unescape(query[:2000]).split("&"):
        name, _, value = part.partition("=")
        if name.lower() in ("to", "cc", "bcc"):
            yield unquote(value)
