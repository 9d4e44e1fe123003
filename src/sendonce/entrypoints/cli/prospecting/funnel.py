"""sendonce prospect status: the funnel from searches to letters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta, tzinfo
from typing import Any

from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.funnel import Funnel, Target
from sendonce.entrypoints.cli.context import opened_prospects, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.entrypoints.cli.prospecting.companies import TenantOption


def status(tenant: TenantOption = DEFAULT_TENANT, json: JsonFlag = False) -> None:
    """Show the funnel from searches to letters, what it cost, and whether the targets are met."""
    from sendonce.flows.prospecting.read_funnel import read_funnel
    from sendonce.wiring.pipeline import search_rules

    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        funnel = read_funnel(store, TenantId(tenant), search_rules(settings))
    if json:
        print_json(_as_json(funnel))
        return
    rows = [(stage, f"{count:,}".replace(",", " "), told) for stage, count, told in funnel.stages()]
    print_table("", ["the funnel", "", ""], rows)
    print_table("", ["target", "now", "goal", ""], [_target_row(target) for target in funnel.targets()])
    for line in _limits(funnel, time_zone(settings)):
        say(line)


def _as_json(funnel: Funnel) -> dict[str, Any]:
    """``funnel`` in order, each stage by its name; the counts behind them follow."""
    return {
        "funnel": {stage: count for stage, count, _ in funnel.stages()},
        "targets": [as_dict(target) for target in funnel.targets()],
        **as_dict(funnel),
        "night": {
            "seconds_left": funnel.night.left and round(funnel.night.left.total_seconds()),
            "opens_at": funnel.night.opens,
        },
    }


def _target_row(target: Target) -> tuple[str, str, str, str]:
    verdict = {True: "met", False: "not met", None: "nothing to measure yet"}[target.met]
    is_count = target.goal > 1
    return target.name, _shown(target.value, is_count), _shown(target.goal, is_count), verdict


def _shown(value: float | None, is_count: bool) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}".replace(",", " ") if is_count else f"{value:.1%}"


def _span(left: timedelta) -> str:
    hours, minutes = divmod(int(left.total_seconds() // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _limits(funnel: Funnel, zone: tzinfo) -> Iterator[str]:
    budget = f" of {funnel.monthly_budget:,.2f}" if funnel.monthly_budget else ", without a limit"
    yield f"Spent on searches this month: {funnel.spent:,.2f}{budget}."
    for title, windows in (("Submitted", funnel.submitting), ("Polled", funnel.polling)):
        used = (f"{w.used:.0f} of {w.limit.count} in {w.limit.seconds:g} s" for w in windows)
        yield f"{title}: {', '.join(used)}."
    if funnel.night.left is not None:
        yield f"Searches may be submitted for another {_span(funnel.night.left)}."
    elif funnel.night.opens is not None:
        yield f"Searches may be submitted from {shown_moment(funnel.night.opens, zone)}."
