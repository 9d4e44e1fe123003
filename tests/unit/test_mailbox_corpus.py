"""The classifier against the messages that we keep in tests/corpora/bounces."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from sendonce.domain.engine.mailbox.causes import Bounce
from sendonce.domain.engine.mailbox.classify import Classified, MailKind
from sendonce.flows.engine.classify_mail import classify_mail

CORPUS = Path(__file__).parents[1] / "corpora" / "bounces"
ENOUGH = 0.95


class Labelled(NamedTuple):
    file: str
    kind: str
    recipient: str
    bounce: str
    code: str
    held_out: str


@lru_cache
def labels() -> list[Labelled]:
    with (CORPUS / "labels.csv").open(encoding="utf-8", newline="") as table:
        return [Labelled(**row) for row in csv.DictReader(table)]


@lru_cache
def found(file: str) -> Classified:
    return classify_mail((CORPUS / f"{file}.eml").read_bytes())


def is_right(label: Labelled) -> bool:
    it = found(label.file)
    told = (it.kind, it.recipient or "", it.bounce or "", it.code or "")
    return told == (label.kind, label.recipient, label.bounce, label.code)


@pytest.mark.parametrize(("held_out", "enough"), [("", 1), ("yes", ENOUGH)])
def test_what_was_learnt_is_kept_and_nearly_all_else_is_right(held_out: str, enough: float) -> None:
    asked = [label for label in labels() if label.held_out == held_out]
    wrong = [label.file for label in asked if not is_right(label)]
    assert len(wrong) <= len(asked) * (1 - enough), wrong


def test_nobody_is_suppressed_by_mistake() -> None:
    """A hard bounce, a complaint and a wish to unsubscribe each end the writing to somebody."""
    for label in labels():
        it = found(label.file)
        if it.bounce is Bounce.HARD:
            assert (label.file, label.bounce, label.recipient) == (label.file, "hard", it.recipient)
        if it.kind in (MailKind.COMPLAINT, MailKind.OPT_OUT):
            assert (label.file, label.kind, label.recipient) == (label.file, it.kind, it.recipient)


def test_every_message_has_its_label() -> None:
    assert {label.file for label in labels()} == {path.stem for path in CORPUS.glob("*.eml")}
    assert sum(label.held_out == "yes" for label in labels()) >= 60
