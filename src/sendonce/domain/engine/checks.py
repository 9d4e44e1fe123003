"""What the doctor says of one thing: it is well, it may trouble you, or sending now would go wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    STOP = "stop"


SANDBOXED = "ses.production"
"""The check of whether an SES account may write to anybody, and not to verified addresses only."""


@dataclass(frozen=True, slots=True)
class Check:
    """``what`` was found, with the value; ``fix`` is what to do about it, empty where all is well.

    ``refuses_all`` marks a stop that is certain to meet every letter: a mailout is not even started then.
    """

    name: str
    verdict: Verdict
    what: str
    fix: str = ""
    refuses_all: bool = False


def ok(name: str, what: str) -> Check:
    return Check(name, Verdict.OK, what)


def warning(name: str, what: str, fix: str) -> Check:
    return Check(name, Verdict.WARNING, what, fix)


def stop(name: str, what: str, fix: str, *, refuses_all: bool = False) -> Check:
    return Check(name, Verdict.STOP, what, fix, refuses_all)


def may_send(checks: Iterable[Check]) -> bool:
    return all(check.verdict is not Verdict.STOP for check in checks)


def count_of(number: int, one: str, many: str = "") -> str:
    """ "1 letter", "1 234 letters"."""
    return f"{number:,}".replace(",", " ") + f" {one if number == 1 else many or one + 's'}"


def people(count: int) -> str:
    """ "1 person", "1,234 people"."""
    return "1 person" if count == 1 else f"{count:,} people"


def listed(words: Iterable[str], most: int = 5) -> str:
    """The first few of them, by comma, and how many more there are."""
    everything = list(words)
    more = len(everything) - most
    return ", ".join(everything[:most]) + (f" and {more} more" if more > 0 else "")
