"""Say what saved messages are: a bounce, a reply, a complaint. Nothing is stored and nobody is suppressed."""

from __future__ import annotations

from sendonce.domain.engine.mailbox.classify import Classified, classify
from sendonce.domain.engine.mailbox.mime import read_mail


def classify_mail(raw: bytes) -> Classified:
    return classify(read_mail(raw))
