"""The legal gate: whom the law lets us write to without a subscription. What it does not know, it blocks.

This is a careful reading of published rules, not advice: it is meant to refuse too much, not too little.
"""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.domain.people.directions import Basis, Direction, NewDirection
from sendonce.errors import RefusedByRule

_EEA_CODES = """
    EU AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK
"""
EEA = frozenset(_EEA_CODES.split())
"""Where GDPR holds, and each country has its own law on advertising by e-mail."""
_UNITED_KINGDOM = frozenset(("GB", "UK"))
_OPT_OUT = frozenset(("US",))  # CAN-SPAM: true headers, a postal address, a way out
_DISCLOSING = EEA | _UNITED_KINGDOM

# Advertising by e-mail needs prior consent there, also that of companies.
_CONSENT_ONLY = {
    "RU": "38-FZ, article 18: advertising by e-mail needs the recipient's prior consent, which the sender "
    "has to prove",
    "AT": "TKG 2021, section 174",
    "DE": "UWG, section 7",
    "DK": "Markedsføringsloven, section 10",
    "ES": "LSSI, article 21",
    "IT": "Codice privacy, article 130",
    "PL": "Prawo komunikacji elektronicznej, article 398",
}
_INSTEAD = "Write only to those whose consent you can show, in a direction with --basis consent."

Footing = Direction | NewDirection


@dataclass(frozen=True, slots=True)
class Addressee:
    """``role`` is "role" for an office's mailbox, "personal" for a person's."""

    role: str | None
    freemail: bool = False


def why_blocked(direction: Footing) -> str | None:
    """Why nobody may be written to in this direction; None if the law leaves room."""
    country = direction.jurisdiction
    if direction.basis is Basis.CONSENT:
        return None
    if country in _CONSENT_ONLY:
        law = _CONSENT_ONLY[country]
        return f"In {country} legitimate interest is no basis for letters to strangers ({law}). {_INSTEAD}"
    if country not in _DISCLOSING | _OPT_OUT:
        return f"What the law of {country} allows without consent is not known here. {_INSTEAD}"
    if must_disclose(direction) and not (direction.note or "").strip():
        return (
            f"In {country} a legitimate interest has to be weighed against the recipients' before the first "
            "letter (GDPR, article 6(1)(f)). Say with --note how it was, or where that is written down."
        )
    return None


def require_footing(direction: Footing) -> None:
    """Raises RefusedByRule for a direction that nobody may be written to in."""
    if reason := why_blocked(direction):
        raise RefusedByRule(f"Nothing is sent in the direction {direction.id}. {reason}")


def why_not(direction: Footing, addressee: Addressee) -> str | None:
    """Why this mailbox may not be written to in a direction that is fine in itself; None if it may."""
    country = direction.jurisdiction
    if direction.basis is Basis.CONSENT:
        return None
    if country in EEA and addressee.role != "role":
        return f"a person's own mailbox: in {country} that needs consent"
    if country in _DISCLOSING and addressee.freemail:
        return f"a mailbox at a free provider, perhaps a sole trader's: in {country} that needs consent"
    return None


def must_disclose(direction: Footing) -> bool:
    """Whether the first letter has to tell where the address is from, and of the right to object (GDPR,
    articles 14 and 21)."""
    return direction.basis is Basis.LEGITIMATE_INTEREST and direction.jurisdiction in _DISCLOSING
