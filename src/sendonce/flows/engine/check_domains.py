"""Look at the domains of the senders that were added: when one is added, and then every day.

in order ────► nothing, or an end of the hold that a check began
not so ──────► the sender is held, with the reason, and looked at again every hour
no answer ───► nothing is known, so nothing changes
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import uuid4

from sendonce.domain.engine.checks import Check, Verdict
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import BAD_DOMAIN, HoldOrder
from sendonce.errors import Unavailable
from sendonce.flows.engine.show_senders import KeysOf
from sendonce.ports.engine import SenderHolds, WatchStore

log = logging.getLogger(__name__)

AGAIN_IF_WELL = timedelta(days=1)
AGAIN_IF_HELD = timedelta(hours=1)
AGAIN_IF_SILENT = timedelta(minutes=10)
HELD_FOR = timedelta(days=2)
"""Each check begins it anew. Where nobody checks any more, one letter is tried after it."""
_WHILE_LOOKING = timedelta(minutes=2)

Look = Callable[[SenderIdentity], Sequence[Check] | None]
"""What the DNS says of a sender's domain; None where that does not matter, as in a rehearsal. Raises
Unavailable."""


def check_domains(store: WatchStore, look: Look, keys_of: KeysOf) -> None:
    """Check every sender whose turn it is; one process at a time checks a sender."""
    for identity in store.senders.all():
        lease, holder = f"domain/{identity.id}", uuid4().hex
        if store.leases.take(lease, holder, _WHILE_LOOKING):
            until_next = _check_in_turn(store.sender_holds, look, identity, keys_of(identity).home)
            store.leases.take(lease, holder, until_next)


def _check_in_turn(holds: SenderHolds, look: Look, identity: SenderIdentity, key: str) -> timedelta:
    """When to check it again."""
    try:
        return AGAIN_IF_HELD if check_domain(holds, look, identity, key) else AGAIN_IF_WELL
    except Unavailable as exc:
        facts = {"sender": key, "error": str(exc)}
        log.warning("the domain of a sender could not be checked", extra={"fields": facts})
        return AGAIN_IF_SILENT


def check_domain(holds: SenderHolds, look: Look, identity: SenderIdentity, key: str) -> Sequence[Check]:
    """What is wrong with it; then the sender is held. Raises Unavailable where nothing can be known."""
    found = look(identity)
    wrong = [check for check in found or () if check.verdict is Verdict.STOP]
    held = holds.get(key)
    if wrong:
        reason = " ".join(f"{check.what} {check.fix}".strip() for check in wrong)
        again = held is not None and (held.code == BAD_DOMAIN or held.elsewhere)
        holds.hold(key, HoldOrder(BAD_DOMAIN, reason, HELD_FOR.total_seconds(), probe=again))
        facts = {"sender": key, "code": BAD_DOMAIN, "reason": reason}
        log.error("the sender is held", extra={"fields": facts})
    elif held is not None and held.code == BAD_DOMAIN and holds.end(held):
        log.warning("the sender is held no more", extra={"fields": {"sender": key}})
    return wrong
