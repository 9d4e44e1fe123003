"""sendonce campaign …"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.senders import words_of_hold
from sendonce.entrypoints.cli.context import opened_campaigns, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say
from sendonce.entrypoints.views import books_view
from sendonce.errors import NotFound

if TYPE_CHECKING:
    from sendonce.domain.campaigns.campaigns import Campaign
    from sendonce.flows.campaigns.desk import CampaignDesk
    from sendonce.flows.campaigns.show_campaign import CampaignView

group = typer.Typer(
    name="campaign", help="Letters to leads, with follow-ups, from a pool of senders.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="ID", help="Its id or its name.")]


@group.command()
def create(
    file: Annotated[Path, typer.Argument(help="A TOML file: see docs/reference/campaign-file.md.")],
    json: JsonFlag = False,
) -> None:
    """Make a campaign of a file. Nothing is sent before 'campaign start'."""
    from sendonce.flows.campaigns.create_campaign import create_campaign
    from sendonce.flows.people.add_client import require_tenant
    from sendonce.wiring.campaigns import campaign_in_file

    settings = ready_settings()
    said, new = campaign_in_file(settings, file)
    with opened_campaigns(settings, make=True) as store:
        campaign = create_campaign(store, require_tenant(store, said.tenant), new, getpass.getuser())
    if json:
        print_json({"id": campaign.id, "status": campaign.status, "name": campaign.name})
    else:
        steps = count_of(len(campaign.steps), "step", "steps")
        say(f"The campaign {campaign.name!r} is ready, with {steps}. Its id is {campaign.id}.")
        say(f"To start it: sendonce campaign start {campaign.id}")


@group.command()
def start(name: Name, json: JsonFlag = False) -> None:
    """Start a campaign with all leads of its direction. A worker sends it."""
    from sendonce.flows.campaigns.start_campaign import start_campaign

    with found_campaign(name) as (desk, campaign):
        leads = start_campaign(desk, campaign, getpass.getuser())
    if json:
        print_json({"id": campaign.id, "status": "running", "leads": leads})
    else:
        say(f"Started, with {count_of(leads, 'lead', 'leads')}. Letters leave while 'sendonce worker' runs.")


@group.command()
def pause(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; people will read it.")] = "paused by hand",
    json: JsonFlag = False,
) -> None:
    """Pause a campaign, and the letters of it that wait already."""
    from sendonce.flows.campaigns.steer_campaign import pause_campaign

    _steer(
        name, "paused", lambda desk, campaign: pause_campaign(desk, campaign, reason, getpass.getuser()), json
    )


@group.command()
def resume(name: Name, json: JsonFlag = False) -> None:
    """Let a paused campaign go on. Mend the cause first."""
    from sendonce.flows.campaigns.steer_campaign import resume_campaign

    _steer(name, "running", lambda desk, campaign: resume_campaign(desk, campaign, getpass.getuser()), json)


@group.command()
def stop(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; people will read it.")] = "stopped by hand",
    json: JsonFlag = False,
) -> None:
    """Stop a campaign for good: what has not left does not leave any more."""
    from sendonce.flows.campaigns.steer_campaign import stop_campaign

    _steer(
        name, "stopped", lambda desk, campaign: stop_campaign(desk, campaign, reason, getpass.getuser()), json
    )


@group.command()
def delete(name: Name, json: JsonFlag = False) -> None:
    """Delete a campaign that was never started: to change one, delete it and create it anew."""
    from sendonce.flows.campaigns.steer_campaign import delete_campaign

    _steer(name, "deleted", lambda desk, campaign: delete_campaign(desk, campaign, getpass.getuser()), json)


@group.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Of one client only.")] = None, json: JsonFlag = False
) -> None:
    """Show the campaigns, the newest first."""
    from sendonce.domain.people.directions import tenant_named

    settings = ready_settings()
    with opened_campaigns(settings) as store:
        found = store.campaigns.all(tenant_named(tenant) if tenant else None)
    if json:
        print_json([_summary(campaign) for campaign in found])
        return
    rows = [
        [each.id, each.tenant_id, each.direction_id, each.name, each.status, each.reason, each.started_at]
        for each in found
    ]
    columns = ["id", "tenant", "direction", "name", "status", "reason", "started"]
    print_table("Campaigns", columns, rows, time_zone(settings))


@group.command()
def status(name: Name, json: JsonFlag = False) -> None:
    """Show how a campaign stands: its letters, its senders and its brakes."""
    from sendonce.flows.campaigns.show_campaign import show_campaign

    with found_campaign(name) as (desk, campaign):
        view = show_campaign(desk, campaign)
    if json:
        print_json(_view(view))
    else:
        _print(view)


@contextmanager
def found_campaign(name: str) -> Iterator[tuple[CampaignDesk, Campaign]]:
    from sendonce.wiring.campaigns import campaign_desk

    settings = ready_settings()
    with opened_campaigns(settings) as store:
        campaign = store.campaigns.find(name)
        if campaign is None:
            raise NotFound(f"There is no campaign {name}: 'sendonce campaign list' shows them.")
        yield campaign_desk(settings, store), campaign


def _steer(name: str, status: str, steer: Callable[[CampaignDesk, Campaign], None], json: bool) -> None:
    with found_campaign(name) as (desk, campaign):
        steer(desk, campaign)
    if json:
        print_json({"id": campaign.id, "status": status})
    else:
        say(f"The campaign {campaign.name!r} is {status}.")


def _summary(campaign: Campaign) -> dict[str, Any]:
    return {
        "id": campaign.id,
        "status": campaign.status,
        "reason": campaign.reason,
        "name": campaign.name,
        "tenant": campaign.tenant_id,
        "direction": campaign.direction_id,
        "started_at": campaign.started_at,
        "ended_at": campaign.ended_at,
    }


def _view(view: CampaignView) -> dict[str, Any]:
    return {
        **_summary(view.campaign),
        "counts": books_view(view.books),
        "leads": view.leads,
        "steps": [{"step": step, "counts": books_view(books)} for step, books in view.steps],
        "senders": [
            {
                "address": each.address,
                "state": each.state,
                "reason": each.reason,
                "held_at": each.hold.held_at if each.hold else None,
                "next_try_at": each.hold.next_try if each.hold else None,
                "sent_24h": each.sent_24h,
                "bounces": each.record.bounces,
                "complaints": each.record.complaints,
                "deferrals": each.record.deferrals,
                "daily": each.limits.daily,
                "allowed_today": each.allowed_today,
                "pace": each.limits.pace,
            }
            for each in view.senders
        ],
        "limits": [{**each._asdict(), "binds": each.binds} for each in view.limits],
        "brakes": [
            {
                "rule": brake.rule,
                "value": round(brake.value, 6),
                "limit": brake.limit,
                "window": brake.window,
                "count": brake.count,
                "letters": brake.letters,
                "tripped": brake.tripped,
            }
            for brake in view.brakes
        ],
    }


def _print(view: CampaignView) -> None:
    campaign = view.campaign
    say(f"{campaign.name} ({campaign.tenant_id}, {campaign.direction_id}): {campaign.status}")
    if campaign.reason:
        say(f"  {campaign.reason}")
    leads = ", ".join(f"{count} {state}" for state, count in sorted(view.leads.items())) or "none yet"
    say(f"  leads: {leads}")
    shown = ("planned", "scheduled", "sent", "delivered", "bounced", "complained", "failed", "skipped")
    rows = [[step, *(getattr(books, name) for name in shown)] for step, books in view.steps]
    print_table("Steps", ["step", *shown], rows)
    columns = ["address", "state", "last 24 h", "today", "pace", "bounces", "complaints", "reason"]
    senders = [
        [
            each.address,
            each.state,
            each.sent_24h,
            f"of {each.allowed_today}",
            f"{each.limits.pace:.0%}",
            each.record.bounces,
            each.record.complaints,
            words_of_hold(each.hold) if each.hold else each.reason,
        ]
        for each in view.senders
    ]
    print_table("Senders", columns, senders)
    if view.limits:
        shared = [
            [each.limit, each.letters, each.taken, "yes" if each.binds else "no"] for each in view.limits
        ]
        print_table("Limits in 24 hours", ["limit", "letters", "taken", "binds"], shared)
    brakes = [
        [
            each.rule,
            f"{each.count} of {each.letters}",
            f"{each.value:.2%}",
            f"{each.limit:.2%}",
            "yes" if each.tripped else "no",
        ]
        for each in view.brakes
    ]
    print_table("Brakes", ["rule", "counted", "share", "limit", "tripped"], brakes)
