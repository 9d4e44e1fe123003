"""Take a restored, copied or promoted database into use, on an operator's word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.ports.mailouts import MailoutStore


@dataclass(frozen=True, slots=True)
class Adoption:
    """``paused`` are the mailouts that another copy may have started; a person resumes them."""

    in_doubt: int
    paused: Sequence[Mailout] = ()


def adopt(store: MailoutStore, highest_claim: int, actor: str) -> Adoption:
    """What may have been sent from the other copy is in doubt. ``highest_claim`` is the newest claim that the
    journals of this machine know."""
    in_doubt = store.ledger.adopt(store.fingerprint(), highest_claim, actor)
    paused = [each for each in store.mailouts.of_all_tenants() if each.paused and each.reason == RESTORED]
    return Adoption(in_doubt, paused)


def adopt_without_loss(store: MailoutStore, actor: str) -> Adoption:
    """The operator knows that this database has every commit of the former one: nothing is in doubt."""
    store.ledger.vouch(store.fingerprint(), actor)
    return Adoption(0)
