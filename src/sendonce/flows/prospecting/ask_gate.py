"""Ask whether a letter may leave: the law, the company's wish and the suppression list, as they are now."""

from __future__ import annotations

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.directions import Direction
from sendonce.domain.people.legal_gate import why_blocked, why_not
from sendonce.domain.prospecting.written_letters import WrittenLetter
from sendonce.ports.prospecting import ProspectingStore


def why_stop(store: ProspectingStore, direction: Direction, letter: WrittenLetter) -> str | None:
    """Why this letter of the direction may not leave, whatever held when it was written; None if it may."""
    if reason := why_blocked(direction) or letter.unfit or why_not(direction, letter.addressee):
        return reason
    # Not before: of an erased person, who is unfit, there is no address left.
    denied = store.suppressions.covers(direction.tenant_id, parse_address(letter.made.recipient))
    return f"the address is suppressed: {denied.reason}" if denied else None
