"""Put the funnel together: what was searched, found and written, what it cost, and what tonight allows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.audits import count_repeated, repeats
from sendonce.domain.prospecting.funnel import Funnel, NightLeft
from sendonce.domain.prospecting.nights import NightWindow
from sendonce.domain.prospecting.search_answers import ProviderTerms
from sendonce.domain.prospecting.searches import POLLING, SUBMITTING, budget_at
from sendonce.ports.prospecting import ProspectingStore


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Within which hours, limits and costs searches are made. ``price`` is for one of them."""

    window: NightWindow
    zone: tzinfo
    price: float
    monthly_budget: float
    terms: ProviderTerms


def read_funnel(store: ProspectingStore, tenant_id: TenantId, rules: SearchRules) -> Funnel:
    now = store.ledger.now()
    budget = budget_at(now, rules.zone, rules.price, rules.monthly_budget)
    listed = store.duplicates.listed(tenant_id)
    return Funnel(
        searches=store.searches.tally(tenant_id),
        outreach=store.funnels.outreach(tenant_id, budget.month),
        listed=len(listed),
        repeated=count_repeated(repeats(listed)),
        submitting=store.quotas.windows(SUBMITTING, rules.terms.submitting, now),
        polling=store.quotas.windows(POLLING, rules.terms.fetching, now),
        spent=store.quotas.spent(budget),
        monthly_budget=rules.monthly_budget,
        night=_night(rules.window, now),
    )


def _night(window: NightWindow, now: datetime) -> NightLeft:
    closes = window.closes_at(now)
    if closes is None:
        return NightLeft(None, window.opens_at(now))
    return NightLeft(closes - now, None)
