"""sendonce sender …"""

from __future__ import annotations

import getpass
from dataclasses import asdict, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity, find_sender
from sendonce.domain.engine.senders import SenderKeys, read_key, words_of_away
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import opened_campaigns, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.engine import sender_options as its
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say, say_error
from sendonce.errors import BadInput, BadSetting, RefusedByRule, Unavailable

if TYPE_CHECKING:
    from sendonce.domain.campaigns.pools import SenderLimits
    from sendonce.flows.engine.show_senders import SenderView
    from sendonce.ports.campaigns import CampaignStore
    from sendonce.ports.engine import EngineStore
    from sendonce.ports.store import Store
    from sendonce.settings import Settings

group = typer.Typer(
    name="sender", help="Who letters leave from, and whether the provider refuses it.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Its address, or its key from 'sendonce sender list'.")]
OwnOrName = Annotated[
    str | None, typer.Argument(help="Its address or its key; without one, this installation's.")
]


@group.command()
def add(
    address: its.Address,
    host: its.Host = None,
    region: its.Region = None,
    folder: its.Folder = None,
    port: its.Port = None,
    security: its.Security = None,
    username: its.Username = None,
    secret_from: its.SecretFrom = None,
    configuration_set: its.ConfigurationSet = None,
    second_region: its.SecondRegion = None,
    second_configuration_set: its.SecondConfigurationSet = None,
    name: its.Name = None,
    reply_to: its.ReplyTo = None,
    rate: its.Rate = None,
    rate_key: its.RateKey = None,
    connections: its.Connections = None,
    imap_host: its.ImapHost = None,
    imap_port: its.ImapPort = None,
    transport: its.Transport = None,
    secret_env: its.SecretEnv = None,
    tenant: its.Tenant = DEFAULT_TENANT,
    direction: its.Direction = None,
    daily: its.Daily = None,
    per_hour: its.PerHour = None,
    warm_up: its.WarmUp = False,
    ramp: its.Ramp = None,
    no_dns: its.NoDns = False,
    json: JsonFlag = False,
) -> None:
    """Add a sender. Its secret is not stored: only the variable or the file that it is found in."""
    from sendonce.wiring.campaigns import pool_limits

    way, place = _way_out(transport, host, region, folder)
    pool = pool_limits(way, direction, daily, per_hour, warm_up=warm_up, ramp=ramp)
    new = NewSender(
        address=address,
        transport=way,
        place=place,
        name=name,
        reply_to=reply_to,
        port=port,
        security=security,
        username=username,
        secret_from=secret_env or secret_from,
        configuration_set=configuration_set,
        rate_limit=rate,
        rate_key=rate_key,
        connections=connections,
        imap_host=imap_host,
        imap_port=imap_port,
        second_region=second_region,
        second_configuration_set=second_configuration_set,
    )
    _add(new, pool, tenant, check_domain=not no_dns, json=json)


def _add(new: NewSender, pool: SenderLimits | None, tenant: str, *, check_domain: bool, json: bool) -> None:
    from sendonce.wiring.campaigns import add_pool_sender

    settings = ready_settings(quiet=True)
    with opened_campaigns(settings, make=True) as store:
        added = add_pool_sender(settings, store, tenant, new, pool, getpass.getuser())
        if check_domain:
            _check_domain(settings, store, added)
        (shown,) = [view for view in _views(settings, store) if view.identity == added]
    if json:
        print_json(_view(shown))
    else:
        say(f"Added {added.address}. Its id is {added.id}.")
    _warn_without_secret(settings, new)


def _check_domain(settings: Settings, store: CampaignStore, added: SenderIdentity) -> None:
    from sendonce.wiring.sender_domains import check_new_sender

    try:
        wrong = check_new_sender(settings, store, added)
    except Unavailable as exc:
        say_error(f"The domain of {added.address} could not be looked at; a worker tries again. {exc}")
        return
    for check in wrong:
        say_error(f"{added.address} is held until its domain is in order. {check.what} {check.fix}")


def _way_out(
    transport: str | None, host: str | None, region: str | None, folder: str | None
) -> tuple[str, str]:
    given = {"smtp": host, "ses": region, "maildir": folder}
    if transport is not None and given.get(transport) is None:
        need = {"smtp": "--host", "ses": "--region", "maildir": "--folder"}.get(transport)
        raise BadInput(
            f"--transport {transport} needs {need}."
            if need
            else f"--transport: {transport!r} is none of ses, smtp and maildir."
        )
    ways = [(transport, place) for transport, place in given.items() if place is not None]
    if len(ways) != 1:
        raise BadInput("Say which way its letters leave: give one of --host, --region and --folder.")
    return ways[0]


def _warn_without_secret(settings: Settings, new: NewSender) -> None:
    from sendonce.wiring.senders import settings_of

    try:
        settings_of(settings, new)
    except BadSetting as exc:
        say_error(f"{exc} Workers that do not find it hold the sender.")


@group.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Of one client only.")] = None, json: JsonFlag = False
) -> None:
    """Show this installation's sender, those that were added, and who is held, with the reason."""
    from sendonce.domain.people.directions import tenant_named

    settings = ready_settings()
    with opened_store(settings) as store:
        views = _views(settings, store)
    if tenant is not None:
        whose = tenant_named(tenant)
        views = [view for view in views if view.identity and view.identity.tenant_id == whose]
    shown = [_view(view) for view in views]
    if json:
        print_json(shown)
        return
    columns = ("address", "transport", "region", "state", "reason", "held_at", "next_try_at", "key")
    titles = ["address", "transport", "region", "state", "reason", "held since", "next try", "key"]
    rows = [[each[name] for name in columns] for each in shown]
    print_table("Senders", titles, rows, time_zone(settings))


@group.command()
def hold(
    name: OwnOrName = None,
    reason: Annotated[str, typer.Option(help="Why; people will read it.")] = "held by hand",
    hours: Annotated[float | None, typer.Option(min=0.0, help="For so long; else until released.")] = None,
    json: JsonFlag = False,
) -> None:
    """Hold a sender: its letters wait, and nobody else's. 'sender release' lets it go."""
    from sendonce.flows.engine.hold_by_word import hold_by_word

    settings = ready_settings()
    with opened_store(settings) as store:
        key = _keys_named(settings, store, name).home
        lasting = timedelta(hours=hours) if hours is not None else None
        held = hold_by_word(store, key, reason, lasting, getpass.getuser())
    if json:
        print_json({"held": key, "reason": held.reason, "until": held.next_try})
    else:
        say(f"Held {key}. To let it go: sendonce sender release {key}")


@group.command()
def release(name: OwnOrName = None, json: JsonFlag = False) -> None:
    """Let a held sender go: its letters are sent again at once. Mend the cause first."""
    from sendonce.flows.engine.release_sender import release_sender

    settings = ready_settings()
    with opened_store(settings) as store:
        wanted = _keys_named(settings, store, name)
        hold = release_sender(store.sender_holds, wanted, getpass.getuser())
    if json:
        print_json({"released": wanted.home, "code": hold.code, "reason": hold.reason})
    else:
        say(f"Released {wanted.home}. It was held because: {hold.reason}")
        say("A worker that is at work goes on at once. If the provider refuses again, it is held again.")


@group.command("fail-over")
def fail_over(
    name: OwnOrName = None,
    reason: Annotated[str, typer.Option(help="Why; people will read it.")] = "moved by hand",
    hours: Annotated[
        float | None, typer.Option(min=0.0, help="Try its own region after so long; else stay.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Send a sender's letters through its second region. Those that were handed over stay where they are."""
    from sendonce.flows.engine.move_sender import fail_over

    settings = ready_settings()
    with opened_store(settings) as store:
        keys = _keys_named(settings, store, name)
        lasting = timedelta(hours=hours) if hours is not None else None
        moved = fail_over(store, keys, reason, lasting, getpass.getuser())
    region = read_key(keys.second or "").account
    if json:
        print_json({"moved": keys.home, "region": region, "reason": moved.reason, "until": moved.next_try})
    else:
        say(f"Letters of {keys.home} leave through {region} now.")
        say(f"To go back: sendonce sender fail-back {keys.home}")


@group.command("fail-back")
def fail_back(name: OwnOrName = None, json: JsonFlag = False) -> None:
    """Send a sender's letters through its own region again, at once."""
    from sendonce.flows.engine.move_sender import fail_back

    settings = ready_settings()
    with opened_store(settings) as store:
        keys = _keys_named(settings, store, name)
        away = fail_back(store, keys, getpass.getuser())
    region = read_key(keys.home).account
    if json:
        print_json({"moved": keys.home, "region": region, "code": away.code, "reason": away.reason})
    else:
        say(f"Letters of {keys.home} leave through {region} again. They did not because: {away.reason}")


@group.command()
def remove(name: Name, json: JsonFlag = False) -> None:
    """Remove a sender that was added. Letters that wait for it go on waiting: add it again to send them."""
    from sendonce.flows.engine.remove_sender import remove_sender

    settings = ready_settings()
    with opened_store(settings) as store:
        identity = _find(settings, store, name)
        remove_sender(store.senders, identity.id, getpass.getuser())
    if json:
        print_json({"removed": identity.id, "address": identity.address})
    else:
        say(f"Removed {identity.address}.")


def own_key(settings: Settings) -> str:
    """The sender that this environment sends from."""
    from sendonce.wiring.transports import sender_key

    return str(sender_key(settings))


def _views(settings: Settings, store: EngineStore) -> list[SenderView]:
    from sendonce.flows.engine.show_senders import show_senders
    from sendonce.wiring.senders import keys_of

    return list(show_senders(store, keys_of(settings)))


def _keys_named(settings: Settings, store: Store, name: str | None) -> SenderKeys:
    """The keys of the sender that a person means: its address will do. None is the environment's own."""
    from sendonce.wiring.senders import keys_of

    known = keys_of(settings)
    if name is None:
        return known(None)
    views = _views(settings, store)
    for view in views:
        if name in view.keys or name == read_key(view.key).address:
            return view.keys
    return known(find_sender([view.identity for view in views if view.identity], name))


def _find(settings: Settings, store: Store, name: str) -> SenderIdentity:
    if name in (own_key(settings), settings.sender):
        raise RefusedByRule(f"{name} is this environment's own sender: change its settings instead.")
    named = {view.key: view.identity for view in _views(settings, store) if view.identity is not None}
    return named.get(name) or find_sender(list(named.values()), name)


def _view(view: SenderView) -> dict[str, Any]:
    parts, hold, identity, away = read_key(view.key), view.hold, view.identity, view.away
    here = read_key(view.keys.second or "") if away else parts
    made = asdict(identity.made) if identity else {field.name: None for field in fields(NewSender)}
    return {
        **made,
        "id": identity.id if identity else None,
        "key": view.key,
        "address": parts.address,
        "transport": parts.transport,
        "account": parts.account,
        "region": here.account if parts.transport == "ses" else None,
        "away_since": away.held_at if away else None,
        "own": view.own,
        "state": view.state,
        "code": hold.code if hold else None,
        "reason": hold.reason if hold else words_of_away(view.keys, away) if away else None,
        "held_at": hold.held_at if hold else None,
        "next_try_at": hold.next_try if hold else None,
        "tries": hold.tries if hold else 0,
    }
