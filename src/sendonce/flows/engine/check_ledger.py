"""Refuse a database that is older than what was sent from it, or a copy of one."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.engine.claim_counts import HOW_TO_GO_ON, refuse_if_halted
from sendonce.domain.engine.fingerprints import refuse_another_database
from sendonce.domain.engine.workers import ClaimCount, LedgerIdentity
from sendonce.errors import LedgerRolledBack
from sendonce.ports.engine import SendingStore
from sendonce.ports.mortality import ClaimWitness


def check_ledger(store: SendingStore, witness: ClaimWitness) -> None:
    """Raises LedgerRolledBack, and halts the ledger, when sending from it could repeat letters."""
    # The witness first: what is claimed meanwhile is in the database before it is outside.
    highest, counts = witness.highest_claim(), witness.claim_counts()
    identity = store.ledger.identity()
    try:
        refuse_if_halted(identity.halted)
        refuse_another_database(identity.fingerprint, store.fingerprint())
        _refuse_if_it_went_back(store, identity, highest, counts)
    except LedgerRolledBack as exc:
        store.ledger.halt(str(exc))
        raise


def _refuse_if_it_went_back(
    store: SendingStore, identity: LedgerIdentity, highest: int, counts: Sequence[ClaimCount]
) -> None:
    if identity.claim_seq < highest:
        raise LedgerRolledBack(
            f"The database knows of {identity.claim_seq} claims, but {highest} were made from it "
            f"on this machine: it was restored from an older copy. {HOW_TO_GO_ON}"
        )
    known = store.workers.claims_of([count.worker_id for count in counts])
    for count in counts:
        # What was counted before the last adoption has been put in doubt by it.
        claims = known.get(count.worker_id, 0) if count.adoption == identity.adoptions else count.claims
        if count.adoption > identity.adoptions or claims < count.claims:
            raise LedgerRolledBack(
                f"The database knows of {claims} claims by worker {count.worker_id}, but {count.claims} were "
                f"made on this machine: it was restored from an older copy. {HOW_TO_GO_ON}"
            )
