"""Clients and their directions: what each writes to strangers about, and by what right.

Nobody who did not subscribe is written to outside a direction. It says which law holds and on which basis its
letters stand, in words that can be shown to whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.offers import require_known_fields
from sendonce.errors import BadInput

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_COUNTRY = re.compile(r"[A-Z]{2}")
LANGUAGES = ("ru", "en")
USUAL_LANGUAGE = "ru"
HEAVIEST = 1000
"""The greatest weight of a tenant."""
MOST_DAILY = 1_000_000_000
"""The greatest limit of letters a day that says anything."""


class Basis(StrEnum):
    CONSENT = "consent"
    LEGITIMATE_INTEREST = "legitimate-interest"


@dataclass(frozen=True, slots=True)
class Tenant:
    """``weight`` is its share beside other tenants; ``daily`` bounds its letters of campaigns in any 24
    hours, from all its senders together."""

    id: TenantId
    name: str
    created_at: datetime
    weight: int = 1
    daily: int | None = None


@dataclass(frozen=True, slots=True)
class NewDirection:
    """``note`` says how consent was given, or what the interest is. ``offer`` is what letters are about.

    What is empty is as it was, or as usual for a new direction.
    """

    id: str
    jurisdiction: str
    basis: Basis
    note: str | None = None
    language: str = ""
    name: str = ""
    offer: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Raises BadInput for what makes no sense."""
        checked_name("direction", self.id)
        if not _COUNTRY.fullmatch(self.jurisdiction):
            raise BadInput(
                f"--jurisdiction: {self.jurisdiction[:20]!r} is no country code. Write two letters, such as "
                "RU or DE."
            )
        if self.language and self.language not in LANGUAGES:
            raise BadInput(
                f"--language: {self.language[:20]!r} is not one of {', '.join(LANGUAGES)}, in which letters "
                "are signed and explained."
            )
        if self.offer:
            require_known_fields(self.offer)


@dataclass(frozen=True, slots=True)
class Direction:
    tenant_id: TenantId
    id: str
    name: str
    jurisdiction: str
    basis: Basis
    note: str | None
    language: str
    offer: Mapping[str, Any] | None
    created_at: datetime


def tenant_named(text: str) -> TenantId:
    """Raises BadInput for what cannot be a tenant's id."""
    return TenantId(checked_name("tenant", text))


def check_terms(weight: int | None, daily: int | None) -> None:
    """Raises BadInput for a weight or a limit that makes no sense."""
    if weight is not None and not 1 <= weight <= HEAVIEST:
        raise BadInput(f"--weight: {weight} is not from 1 to {HEAVIEST}.")
    if daily is not None and not 0 <= daily <= MOST_DAILY:
        raise BadInput(f"--daily: {daily} is not from 1 to {MOST_DAILY}. Write 0 for no limit.")


def checked_name(what: str, text: str) -> str:
    """Names stand in file names, metrics and logs: letters, digits and dashes are all they need."""
    if not _NAME.fullmatch(text):
        raise BadInput(
            f"{text[:80]!r} cannot be the id of a {what}: write 1 to 63 lower-case Latin letters, digits, "
            "dashes and underscores, the first one a letter or a digit."
        )
    return text
