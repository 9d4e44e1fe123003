"""sendonce campaign preview, forecast and report: before it starts, and after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.campaigns.costs import estimate
from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.campaigns.campaigns import Name, found_campaign
from sendonce.entrypoints.cli.context import check_outputs, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say

_BARS = 40


def preview(
    name: Name,
    lead: Annotated[str | None, typer.Option(help="For this address; else for the first lead.")] = None,
    json: JsonFlag = False,
) -> None:
    """Show the letters of a campaign as a lead will read them. Sends nothing."""
    from sendonce.flows.campaigns.preview_campaign import preview_campaign

    with found_campaign(name) as (desk, campaign):
        shown = preview_campaign(desk, campaign, lead)
    if json:
        print_json([{"step": each.step, "subject": each.subject, "text": each.text} for each in shown])
        return
    for each in shown:
        say(f"Step {each.step}, {each.after}: {each.subject}\n")
        say(each.text.strip() + "\n")


def forecast(
    name: Name,
    costs: Annotated[
        bool, typer.Option("--costs", help="Also what letters cost; written to cost_estimate.csv.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Where the costs are written.")] = Path("cost_estimate.csv"),
    json: JsonFlag = False,
) -> None:
    """Tell when a campaign will end at the latest, and which limit it waits for."""
    from sendonce.flows.campaigns.forecast_campaign import forecast_campaign
    from sendonce.wiring.campaigns import unit_prices
    from sendonce.wiring.files import csv_table

    with found_campaign(name) as (desk, campaign):
        told = forecast_campaign(desk, campaign)
    estimated = estimate(unit_prices()) if costs else []
    if costs:
        check_outputs(ready_settings(), output)
        with csv_table(output, ["letters_per_month", "service", "usd", "assumption"]) as table:
            for cost in estimated:
                table.write(cost)
    if json:
        print_json(
            {
                "letters": told.letters,
                "ends": told.ends,
                "binding": told.binding.name.lower(),
                "days": [{"day": day, "letters": letters} for day, letters in told.days],
                "costs": [cost._asdict() for cost in estimated],
            }
        )
        return
    letters = count_of(told.letters, "letter", "letters")
    if not told.letters:
        say("Nothing is left to send.")
    elif told.ends is None:
        say(f"{letters} cannot leave: the campaign waits for {told.binding}.")
    else:
        say(f"{letters} will have left by {told.ends} at the latest. What binds: {told.binding}.")
    most = max((letters for _, letters in told.days), default=1)
    for day, count in told.days[:31]:
        say(f"  {day} {'█' * max(1, round(count / most * _BARS))} {count}")
    if estimated:
        print_table("Costs a month", ["letters", "service", "USD", "assumption"], estimated)
        say(f"Written to {output}.")


def report(
    name: Name,
    output: Annotated[Path | None, typer.Option(help="A CSV file; else stdout.")] = None,
) -> None:
    """Write what became of every lead, as CSV."""
    from sendonce.wiring.files import csv_table

    settings = ready_settings()
    check_outputs(settings, output)
    titles = ["email", "company", "step", "state", "reason", "sender", "bounced", "complained"]
    with found_campaign(name) as (desk, campaign), csv_table(output, titles, even_if_empty=True) as table:
        for row in desk.store.campaigns.leads_of(campaign.id):
            table.write(row)
