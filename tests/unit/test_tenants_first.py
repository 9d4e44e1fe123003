"""A tenant's rows are reached through a tenant, by type: mypy refuses any other text in its place."""

from __future__ import annotations

from inspect import signature
from typing import get_type_hints

import pytest

from sendonce.domain.campaigns.campaigns import CampaignId
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.mailouts.mailouts import MailoutId
from sendonce.ports.campaigns import Campaigns, FoundContacts, Leads, Pools
from sendonce.ports.engine import Dispatches, Jobs
from sendonce.ports.mailouts import Mailouts
from sendonce.ports.people import Directions, SignUps, Subscribers, Suppressions
from sendonce.ports.prospecting import (
    Companies,
    CompanyContacts,
    Duplicates,
    Funnels,
    Searches,
    WrittenLetters,
)

# What a verb may begin with. Handles come only from verbs that were told the tenant.
HANDLES = (TenantId, MailoutId, DispatchId, CampaignId)

OVER_ALL_TENANTS = {
    # the engine's work, whoever it is for
    *("Mailouts.being_prepared", "Mailouts.due", "Mailouts.running"),
    *("Mailouts.with_stale_report", "Mailouts.with_status"),
    "Jobs.accepted_near",
    *("Dispatches.abandoned", "Dispatches.put_off_beyond", "Dispatches.to_finish"),
    "Dispatches.running",
    # the database as a whole, or one person whoever wrote to them
    *("Mailouts.of_all_tenants", "Jobs.count_by_state"),
    # for the operator, who sees the jobs of all; and for the link in a letter, which names its job
    *("Jobs.get", "Jobs.list", "Jobs.with_prefix"),
    # workers visit whoever waits; a visit is of one company
    *("Companies.take_visits", "Companies.visited", "Companies.put_off", "Companies.unreachable"),
    # one mailbox and one budget for all; a letter is planned by halves whoever it is for
    *("WrittenLetters.spent_since", "WrittenLetters.slots_taken", "WrittenLetters.half_planned"),
    # workers plan for all; whoever is at the machine names a campaign of any tenant, and lists directions
    *("Campaigns.open", "Campaigns.winding_up", "Campaigns.find", "Campaigns.all", "Directions.all"),
    # by the link in a letter that asks for a confirmation
    "SignUps.confirm",
    # every suppression names its tenant, or everybody
    *("Suppressions.add_all", "Suppressions.all"),
    # by the link in a letter, whose job has a tenant
    *("Suppressions.resubscribe", "Suppressions.undoable", "Suppressions.unsubscribe"),
}


def verbs(port: type) -> list[str]:
    return [name for name, verb in vars(port).items() if not name.startswith("_") and callable(verb)]


@pytest.mark.parametrize(
    "port",
    [
        *(Jobs, Dispatches, Subscribers, Suppressions, Mailouts),
        *(Companies, CompanyContacts, Duplicates, Funnels, Searches, WrittenLetters),
        *(Campaigns, FoundContacts, Leads, Pools, Directions, SignUps),
    ],
)
def test_every_verb_asks_whose_rows_they_are(port: type) -> None:
    """Or is listed as one that goes over all tenants, with the reason."""
    for name in verbs(port):
        verb = getattr(port, name)
        first = [*signature(verb).parameters][1:2]
        asks = bool(first) and get_type_hints(verb)[first[0]] in HANDLES
        assert asks == (f"{port.__name__}.{name}" not in OVER_ALL_TENANTS), name
