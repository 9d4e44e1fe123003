"""The steps of the pipeline, ready to run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sendonce.domain.prospecting.pipeline import StepCount, StepName
from sendonce.settings import Settings
from sendonce.wiring.searching import (
    ingest_step,
    night_window,
    poll_step,
    price_of_a_search,
    search_terms,
    submit_step,
)

if TYPE_CHECKING:
    from sendonce.flows.prospecting.read_funnel import SearchRules
    from sendonce.flows.prospecting.run_pipeline import Step
    from sendonce.ports.prospecting import ProspectingStore, RollCall


def pipeline_steps(
    settings: Settings, store: ProspectingStore, wanted: Sequence[StepName], worker: str
) -> Mapping[StepName, Step]:
    """Those that are wanted, in their order. What a step needs is opened when it runs."""
    most = settings.prospect_batch_size
    return {name: partial(_MAKERS[name], settings, store, worker, most) for name in wanted}


def _visit(settings: Settings, store: ProspectingStore, worker: str, most: int) -> StepCount:
    from sendonce.wiring.prospecting import enricher

    done = asyncio.run(replace(enricher(settings, store), worker=worker).run(most))
    failed = done.put_off + done.unreachable
    return StepCount(done.visited + failed, done.visited, failed, f"{done.new_contacts} new contacts")


def _dedupe(_settings: Settings, store: ProspectingStore, worker: str, most: int) -> StepCount:
    from sendonce.flows.prospecting.find_duplicates import find_duplicates

    return find_duplicates(store, worker, most, store.ledger.now)


def _write(settings: Settings, store: ProspectingStore, _worker: str, most: int) -> StepCount:
    from sendonce.flows.prospecting.serve_directions import serve_directions
    from sendonce.flows.prospecting.write_letters import write_letters
    from sendonce.wiring.written_letters import writing_rules

    rules = writing_rules(settings)
    return serve_directions(store, lambda it: write_letters(store, it.tenant_id, it, rules, most))


def _plan(settings: Settings, store: ProspectingStore, _worker: str, _most: int) -> StepCount:
    from sendonce.flows.prospecting.plan_written_letters import plan_written_letters
    from sendonce.flows.prospecting.serve_directions import serve_directions
    from sendonce.wiring.written_letters import sending_rules

    rules = sending_rules(settings)
    return serve_directions(store, lambda it: plan_written_letters(store, it.tenant_id, it, rules))


def roll_call(settings: Settings, store: ProspectingStore) -> RollCall:
    from sendonce.adapters import roll_call

    return roll_call.RollCall(settings.state_dir, store.ledger.identity().ledger_id)


def search_rules(settings: Settings) -> SearchRules:
    """For whoever asks what searching may still do. The provider is not asked."""
    from sendonce.flows.prospecting.read_funnel import SearchRules

    return SearchRules(
        window=night_window(settings),
        zone=ZoneInfo(settings.app_timezone),
        price=price_of_a_search(settings),
        monthly_budget=settings.search_monthly_budget,
        terms=search_terms(settings),
    )


_MAKERS = {
    StepName.SUBMIT: submit_step,
    StepName.POLL: poll_step,
    StepName.INGEST: ingest_step,
    StepName.VISIT: _visit,
    StepName.DEDUPE: _dedupe,
    StepName.WRITE: _write,
    StepName.PLAN: _plan,
}
