"""E-mail addresses: what may be written to, and when two spellings are the same person.

``text`` is what goes on the envelope; ``key`` is what the ledger compares, so that ``USER@Example.com``,
``"user"@example.com`` and ``ｕｓｅｒ@example.com`` are one recipient. Suppression looks wider still: see
domain/people/suppression_keys.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from sendonce.errors import BadInput

# RFC 5321 §4.5.3.1: 64 octets before the @, and a path of 256 octets counts its angle brackets.
MAX_LOCAL = 64
MAX_ADDRESS = 254
# Longer input is not looked at: mapping international names takes time that grows with their length.
_MAX_RAW = 512

# No possessive quantifiers: Python 3.11.2, which Debian 12 ships, refuses every address with them. These
# patterns are unambiguous, so they take linear time without.
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*"
_DOT_ATOM = re.compile(rf"{_ATEXT}(?:\.{_ATEXT})*")
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\[ -~])*)"')
_QUOTED_PAIR = re.compile(r"\\(.)")
# Fits the grammar of a local part, but mail software that decodes RFC 2047 anywhere sees other text.
_ENCODED_WORD = re.compile(r"=\?[^?]*\?[BbQq]\?")
_HOSTNAME = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}")

# What nearly every address of a list looks like. Labels that begin with xn-- must be decoded to be
# judged, and a top-level label never begins with a digit (RFC 3696 §2), so those take the long way.
PLAIN = re.compile(
    rf"{_ATEXT}(?:\.{_ATEXT})*@(?![Xx][Nn]--)(?:{_LABEL}\.(?![Xx][Nn]--))+(?=[A-Za-z]){_LABEL}"
)
# At this length neither the local part nor a label can be too long.
PLAIN_LENGTH = 64

_plain = PLAIN.fullmatch


@dataclass(frozen=True, slots=True)
class Address:
    """``text``: local part as written, domain as lower-case A-labels. ``key``: the canonical spelling."""

    text: str
    key: str


def parse_address(raw: str) -> Address:
    """One bare address. Raises BadInput with what is wrong; never repairs more than spelling.

    Display names, comments, lists, source routes and address literals are refused: whoever accepts
    them has to choose which of two addresses is meant.
    """
    if len(raw) <= PLAIN_LENGTH and _plain(raw) and "=?" not in raw:
        key = raw.lower()
        if key == raw:
            return Address(raw, raw)
        at = raw.index("@")
        return Address(raw[:at] + key[at:], key)
    return _parse_carefully(raw)


def _parse_carefully(raw: str) -> Address:
    if not raw:
        raise _refusal(raw, "it is empty")
    if len(raw) > _MAX_RAW:
        raise _refusal(raw, f"it has {len(raw)} characters, the limit is {MAX_ADDRESS}")
    _refuse_invisible(raw)
    written, at, domain = raw.rpartition("@")
    if not at:
        raise _refusal(raw, "it has no @")
    local, canonical = _local_part(raw, written)
    host = _hostname(raw, domain)
    if len(local) > MAX_LOCAL:
        raise _refusal(raw, f"the part before the @ has {len(local)} characters, the limit is {MAX_LOCAL}")
    if len(local) + 1 + len(host) > MAX_ADDRESS:
        raise _refusal(raw, f"it has {len(local) + 1 + len(host)} characters, the limit is {MAX_ADDRESS}")
    return Address(f"{local}@{host}", f"{canonical}@{host}")


def _local_part(raw: str, written: str) -> tuple[str, str]:
    """The local part to send to, and its canonical spelling.

    NFKC turns full-width letters into ASCII. What stays outside ASCII needs SMTPUTF8 (RFC 6531), which
    SES does not offer.
    """
    local = unicodedata.normalize("NFKC", written)
    if not local.isascii():
        raise _refusal(raw, "letters outside ASCII before the @ cannot be delivered to")
    if not local:
        raise _refusal(raw, "nothing is before the @")
    if _ENCODED_WORD.search(local):
        raise _refusal(raw, "an encoded word before the @ means one thing here and another to its reader")
    if _DOT_ATOM.fullmatch(local):
        return local, local.lower()
    quoted = _QUOTED.fullmatch(local)
    if quoted is None:
        raise _refusal(raw, f"{_shown(written)} before the @ is not one plain or quoted name")
    bare = _QUOTED_PAIR.sub(r"\1", quoted[1])
    if not bare:
        raise _refusal(raw, "the quotes before the @ hold nothing")
    return local, bare.lower()


def _hostname(raw: str, domain: str) -> str:
    """The domain as lower-case A-labels."""
    if not domain:
        raise _refusal(raw, "nothing is after the @")
    if domain.startswith("["):
        raise _refusal(raw, "an address literal is not a domain name")
    host = domain.lower()
    if not host.isascii() or "xn--" in host:
        try:
            host = _a_labels(domain)
        except _BadDomain as exc:
            raise _refusal(raw, str(exc)) from exc
    if not _HOSTNAME.fullmatch(host):
        raise _refusal(raw, f"the domain {_shown(domain)} is not a host name of two or more labels")
    labels = host.split(".")
    if labels[-1].isdigit():
        raise _refusal(raw, f"no top-level domain is a number, as in {_shown(domain)}")
    if any(len(label) > 63 for label in labels):
        raise _refusal(raw, "a label of the domain has more than 63 characters")
    return host


class _BadDomain(ValueError):
    """Says what is wrong with an international name."""


# People of a list share domains, and one takes as long to map as a hundred plain addresses.
@lru_cache(maxsize=1024)
def _a_labels(domain: str) -> str:
    """IDNA 2008 with the mapping of UTS 46: case, width and the ideographic full stops."""
    # Its tables are needed for one address in a thousand and cost every start of the program.
    import idna

    try:
        host = idna.encode(domain, uts46=True, std3_rules=True).decode("ascii")
        readable = idna.decode(host)
    except UnicodeError as exc:
        raise _BadDomain(f"the domain {_shown(domain)} is not a valid international name") from exc
    for label in readable.split("."):
        _refuse_mixed_scripts(label)
    return host


def _refuse_mixed_scripts(label: str) -> None:
    """``аpple`` with a Cyrillic а: no registry sells it, so it is a slip of the keyboard or a trap."""
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in label if char.isalpha()}
    mixed = sorted(scripts & {"LATIN", "CYRILLIC", "GREEK"})
    if len(mixed) > 1:
        names = " and ".join(name.capitalize() for name in mixed)
        raise _BadDomain(f"the domain mixes {names} letters")


# Characters that show nothing and yet are letters or marks to Unicode, so their category does not tell.
_BLANK_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def _refuse_invisible(raw: str) -> None:
    """UTS 46 would drop a soft hyphen or a zero-width space in silence, and make two people one."""
    # isprintable: no control, format, surrogate or unassigned character, no space but U+0020.
    if raw.isprintable() and not _BLANK_LETTERS.search(raw):
        return
    for char in raw:
        if not char.isprintable() or _BLANK_LETTERS.match(char):
            name = unicodedata.name(char, "a control character")
            raise _refusal(raw, f"it contains U+{ord(char):04X} ({name})")


def _refusal(raw: str, what: str) -> BadInput:
    return BadInput(
        f"{_shown(raw)} is not an address to write to: {what}. "
        "Give one bare address, such as user@example.com."
    )


def _shown(value: str) -> str:
    """Short enough for a log line; repr() escapes what a terminal would act on."""
    return repr(value) if len(value) <= 80 else repr(value[:77] + "…")
