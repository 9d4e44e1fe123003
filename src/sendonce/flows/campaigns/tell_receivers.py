"""Tell who receives the mail of leads, where that is not known by their domains alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sendonce.domain.campaigns.leads import NewLead
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.ports.campaigns import Receivers


def tell_receivers(leads: Sequence[NewLead], receivers: Receivers | None) -> list[NewLead]:
    if receivers is None:
        return [*leads]
    unknown = {lead.domain for lead in leads if lead.receiver == Receiver.OTHER}
    known = receivers.look_up(unknown)
    return [replace(lead, receiver=known.get(lead.domain, lead.receiver)) for lead in leads]
