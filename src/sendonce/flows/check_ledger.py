"""Refuse a database that is older than what was sent from it, or a copy of one."""

from __future__ import annotations

from sendonce.errors import LedgerRolledBack
from sendonce.ports import Store

FIX = (
    "Nothing is sent from it until you run 'sendonce db adopt', "
    "which marks what may have gone out as in doubt."
)


def check_ledger(store: Store, highest_claim_seen: int) -> None:
    """Raises LedgerRolledBack, and halts the ledger, when sending from it could repeat letters."""
    identity = store.ledger.identity()
    reason = identity.halted
    if reason is None and identity.claim_seq < highest_claim_seen:
        reason = (
            f"The database knows of {identity.claim_seq} claims, but {highest_claim_seen} were made from it "
            f"on this machine: it was restored from an older copy. {FIX}"
        )
    if reason is None and identity.fingerprint is not None and identity.fingerprint != store.fingerprint():
        reason = f"The database file is a copy, or was moved from another machine. {FIX}"
    if reason is not None:
        if identity.halted is None:
            store.ledger.halt(reason)
        raise LedgerRolledBack(reason)
