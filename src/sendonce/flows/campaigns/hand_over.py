"""Give chosen letters to the engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sendonce.domain.campaigns.campaigns import TIMEZONE, Campaign, ChosenLetter, thread_of
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewJob, Thread
from sendonce.domain.engine.tenants import DispatchId
from sendonce.errors import RefusedByRule
from sendonce.flows.campaigns.desk import CampaignDesk


def hand_over(desk: CampaignDesk, campaign: Campaign, letters: Sequence[ChosenLetter]) -> None:
    """Give chosen letters to the engine; a letter that it has already stays one."""
    threads = _threads(desk, campaign, letters)
    by_dispatch: defaultdict[DispatchId, list[ChosenLetter]] = defaultdict(list)
    for letter in letters:
        by_dispatch[letter.dispatch_id].append(letter)
    for dispatch_id, group in by_dispatch.items():
        jobs = [
            NewJob(
                parse_address(letter.email),
                _fields(letter),
                thread=threads.get(letter.lead_id),
                due_at=desk.clock.real(letter.slot_at),
                priority=-letter.step,
            )
            for letter in group
        ]
        try:
            desk.store.dispatches.plan(dispatch_id, jobs)
        except RefusedByRule:
            continue  # the campaign was stopped a moment ago, and winds up
        desk.store.dispatches.run(dispatch_id)
        desk.store.campaigns.planned(campaign.id, group)


def _fields(letter: ChosenLetter) -> dict[str, str]:
    """The lead's own, and the clock by which the letter may leave."""
    zone = {TIMEZONE: letter.timezone} if letter.timezone else {}
    return {**letter.fields, **zone}


def _threads(
    desk: CampaignDesk, campaign: Campaign, letters: Sequence[ChosenLetter]
) -> dict[str, Thread | None]:
    """Follow-ups answer to the letters before them."""
    followed = {letter.lead_id: letter.sender_id for letter in letters if letter.step > 1}
    if not followed:
        return {}
    senders = {name: desk.store.senders.get(name) for name in set(followed.values())}
    sent = desk.store.campaigns.message_ids(campaign.id, list(followed))
    threads: dict[str, Thread | None] = {}
    for lead_id, sender_id in followed.items():
        identity = senders[sender_id]
        if identity is not None:
            named = [desk.message_id_of(identity, job, told) for job, told in sent.get(lead_id, ())]
            threads[lead_id] = thread_of(named)
    return threads
