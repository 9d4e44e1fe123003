"""Take back planned letters that may not leave any more. What a worker has claimed already is on its way."""

from __future__ import annotations

from collections import defaultdict

from sendonce.domain.engine.tenants import DispatchId
from sendonce.domain.people.directions import Direction
from sendonce.flows.prospecting.ask_gate import why_stop
from sendonce.ports.prospecting import ProspectingStore


def take_back_letters(store: ProspectingStore, direction: Direction) -> int:
    """Skip the jobs of a direction that the gate stops now; how many. It need not be one that may send."""
    stopped: defaultdict[tuple[DispatchId, str], list[str]] = defaultdict(list)
    for letter in store.written_letters.scheduled(direction.tenant_id, direction.id):
        reason = why_stop(store, direction, letter)
        if reason and letter.dispatch_id and letter.job_id:
            stopped[letter.dispatch_id, reason].append(letter.job_id)
    return sum(
        store.dispatches.take_back(dispatch_id, job_ids, reason)
        for (dispatch_id, reason), job_ids in sorted(stopped.items())
    )
