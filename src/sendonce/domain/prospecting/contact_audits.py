"""How well contacts were found, measured against a list that people made by reading the sites themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sendonce.errors import BadInput

_MOST_SHOWN = 100


@dataclass(slots=True)
class ContactAudit:
    """Of one kind of contacts. ``missed`` and ``wrong`` are (domain, value), the first hundred of each."""

    companies: int = 0
    true: int = 0
    kept: int = 0
    right: int = 0
    missed: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of true contacts that were found."""
        return self.right / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """The share of kept contacts that are true."""
        return self.right / self.kept if self.kept else 1.0

    def compare(self, domain: str, true: Iterable[str], kept: Iterable[str]) -> None:
        expected = {value.casefold() for value in true}
        found = {value.casefold() for value in kept}
        self.companies += 1
        self.true += len(expected)
        self.kept += len(found)
        self.right += len(expected & found)
        self.missed += [(domain, value) for value in sorted(expected - found)]
        self.wrong += [(domain, value) for value in sorted(found - expected)]
        del self.missed[_MOST_SHOWN:], self.wrong[_MOST_SHOWN:]


def read_truth(document: Any) -> Mapping[str, Mapping[str, list[str]]]:
    """``{"firma.ru": {"emails": […], "phones": […]}}``; other keys are left alone."""
    if not isinstance(document, dict):
        raise BadInput('The list of true contacts must be like {"firma.ru": {"emails": ["info@firma.ru"]}}.')
    return {
        domain: {kind: _texts(domain, told, kind) for kind in ("emails", "phones")}
        for domain, told in document.items()
    }


def _texts(domain: str, told: Any, kind: str) -> list[str]:
    values = told.get(kind, []) if isinstance(told, dict) else None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadInput(f'{domain!r} in the list of true contacts must have "{kind}" as a list of texts.')
    return values
