"""Ask the provider how much it was given.

A disk that is taken back to a snapshot takes the database and the state directory back together, and nothing
on the machine shows it. Amazon counts what an account sends in a region: more than the ledger knows of means
that letters were sent which it has forgotten, or that others send from the account too.
"""

from __future__ import annotations

from datetime import timedelta

from sendonce.errors import RefusedByRule
from sendonce.ports.engine import SendingStore

# The provider's window is 24 hours, by its own clock and with some delay.
WINDOW = timedelta(hours=25)
BY_HAND = 10
"""So many letters may have been sent by hand: tests from the provider's console, say."""


def check_account(store: SendingStore, sent_last_day: int) -> None:
    """Refuses to send when the account sent more in the last day than the ledger knows of.

    Nothing can be told for a day after the ledger was made or adopted. The ledger is not halted: it may well
    be right, and a setting says so.
    """
    since = store.ledger.now() - WINDOW
    if sent_last_day <= BY_HAND or store.ledger.identity().since > since:
        return
    known = store.jobs.handed_over_since(since)
    if sent_last_day > known + BY_HAND:
        raise RefusedByRule(
            f"SES has counted {sent_last_day} letters of this account in the last 24 hours, and the ledger "
            f"knows of {known}. If other programs send from this account and region, set "
            "SES_ACCOUNT_SHARED=true. If not, database and state directory were taken back together, as by a "
            "disk snapshot: run 'sendonce db adopt', which marks what may have gone out as in doubt."
        )
