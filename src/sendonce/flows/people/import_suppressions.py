"""Import suppressions: every address of a file, each with the reason that the file gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.suppressions import NewSuppression, SuppressionReason
from sendonce.errors import BadInput
from sendonce.ports.people import Suppressions

_PORTION = 1_000
T = TypeVar("T")


class OptOut(Protocol):
    """A line of the file; ``scope`` is None where it names none."""

    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def reason(self) -> SuppressionReason: ...
    @property
    def note(self) -> str | None: ...
    @property
    def scope(self) -> TenantId | None: ...


class BadLine(NamedTuple):
    line: int
    reason: str


@dataclass
class SuppressionReport:
    added: int = 0
    known: int = 0
    bad: list[BadLine] = field(default_factory=list)


def import_suppressions(
    suppressions: Suppressions, scope: TenantId, found: Iterable[OptOut]
) -> SuppressionReport:
    """In portions, each a transaction: what was cut off can simply be run again."""
    report = SuppressionReport()
    for some in _portions(found):
        denied = []
        for each in some:
            try:
                address = parse_address(each.text)
            except BadInput as exc:
                report.bad.append(BadLine(each.line, str(exc)))
            else:
                denied.append(NewSuppression(each.scope or scope, address, each.reason, each.note))
        added = suppressions.add_all(denied)
        report.added += added
        report.known += len(denied) - added
    return report


def _portions(items: Iterable[T]) -> Iterator[list[T]]:
    every = iter(items)
    while some := list(islice(every, _PORTION)):
        yield some
