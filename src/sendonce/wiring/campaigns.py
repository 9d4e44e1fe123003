"""The working parts of campaigns."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.domain.campaigns.accounts import parse_account_limits
from sendonce.domain.campaigns.campaign_files import CampaignFile, StepSource
from sendonce.domain.campaigns.campaigns import Image, NewCampaign, NewStep
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.costs import UnitPrice, read_prices
from sendonce.domain.campaigns.leads import NewLead
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import parse_limits
from sendonce.domain.campaigns.warm_up import default_ramp, parse_ramp
from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.hosts import is_loopback, is_loopback_url
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.templates import half_written
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.letter_files import WrittenLetter
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import BadRow
from sendonce.errors import BadInput, BadSetting, Unsendable
from sendonce.flows.campaigns.desk import USUAL_ROUND, CampaignDesk
from sendonce.flows.campaigns.keep_hours import CampaignTimetable
from sendonce.settings import Settings
from sendonce.wiring.house import time_zone
from sendonce.wiring.letters import letter_in_file
from sendonce.wiring.messages import sample_message_settings
from sendonce.wiring.senders import account_of, keys_of

if TYPE_CHECKING:
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.campaigns import CampaignStore, Receivers
    from sendonce.ports.engine import Timetable

_ROUNDS_AN_HOUR = 4
_SHORTEST_ROUND, _LATEST_ROUND = timedelta(seconds=0.2), timedelta(seconds=5)
_FARTHEST = timedelta(days=1000 * 365)  # ahead of the real time: calendars end with the year 9999


def campaign_desk(
    settings: Settings, store: CampaignStore, between_rounds: timedelta = USUAL_ROUND
) -> CampaignDesk:
    """Raises BadSetting where a fast clock would write to the world."""
    _refuse_a_fast_clock(settings, store)
    return CampaignDesk(
        store,
        _clock(settings, store),
        time_zone(settings),
        keys_of(settings),
        _message_id,
        parse_limits(settings.receiver_limits),
        lambda about, what: _alert(store, about, what),
        between_rounds,
        settings.contacts_per_company,
        lambda identity: account_of(settings, identity.made),
        parse_account_limits(settings.account_limits),
    )


def campaign_timetable(settings: Settings, store: CampaignStore) -> Timetable:
    return CampaignTimetable(store, _clock(settings, store), time_zone(settings))


def _clock(settings: Settings, store: CampaignStore) -> CampaignClock:
    since, speed = store.ledger.identity().since, settings.clock_speed
    age = store.ledger.now() - since
    if age * speed > _FARTHEST:
        raise BadSetting(
            f"CLOCK_SPEED is {speed}, and this database is {count_of(age.days, 'day')} old: its campaigns "
            "would be in another age. Rehearse with a new database."
        )
    return CampaignClock(since, speed)


def _alert(store: CampaignStore, about: str, what: str) -> None:
    from sendonce.flows.engine.alert import raise_alert

    raise_alert(store, about, what)


def pool_limits(
    transport: str,
    direction: str | None,
    daily: int | None,
    per_hour: int | None,
    *,
    warm_up: bool,
    ramp: str | None,
) -> SenderLimits | None:
    """What a sender of a pool may do; None for a sender of mailouts. Raises BadInput for half of it."""
    if direction is None:
        if daily is not None or per_hour is not None or warm_up or ramp:
            raise BadInput(
                "--daily, --per-hour, --warm-up and --ramp are for campaigns: say --direction, too."
            )
        return None
    if daily is None:
        raise BadInput("A sender of campaigns has a limit: say how many letters a day with --daily.")
    days = parse_ramp(ramp) if ramp else default_ramp(transport) if warm_up else ()
    limits = SenderLimits("", TenantId(""), direction, daily, per_hour, days)
    limits.check()
    return limits


def add_pool_sender(
    settings: Settings,
    store: CampaignStore,
    tenant: str,
    new: NewSender,
    pool: SenderLimits | None,
    actor: str,
) -> SenderIdentity:
    from sendonce.flows.campaigns.add_pool_sender import add_pool_sender

    if settings.clock_speed > 1 and not _stays_here(settings, new):
        raise _leaves(settings, new.address)
    return add_pool_sender(store, tenant, new, pool, settings.sender, actor)


def campaign_chores(settings: Settings, store: CampaignStore) -> list[Chore]:
    """What a worker and a scheduler do for campaigns now and then."""
    from sendonce.flows.campaigns.run_campaigns import run_campaigns

    planner = f"{socket.gethostname()}-{os.getpid()}"
    last = [time.monotonic()]

    def do_a_round() -> None:
        if store.campaigns.open() or store.campaigns.winding_up():
            # On a busy machine rounds are late, and each plans for the time until the next.
            between, last[0] = timedelta(seconds=time.monotonic() - last[0]), time.monotonic()
            usual = _round(settings)
            desk = campaign_desk(settings, store, max(usual, min(between, _LATEST_ROUND)))
            run_campaigns(desk, planner)

    return [(_round(settings).total_seconds(), do_a_round)]


def _round(settings: Settings) -> timedelta:
    """A fast clock needs quick rounds: a letter under way counts for the limits of its hour."""
    of_an_hour = timedelta(hours=1) / settings.clock_speed / _ROUNDS_AN_HOUR
    return min(USUAL_ROUND, max(_SHORTEST_ROUND, of_an_hour))


def campaign_in_file(settings: Settings, file: Path) -> tuple[CampaignFile, NewCampaign]:
    """Read a campaign and the letters beside it. Raises BadInput, with the line, for what is wrong."""
    from sendonce.adapters.sources.campaign_toml import read_campaign

    try:
        said = read_campaign(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file} is not UTF-8 text: save it as UTF-8.") from exc
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
    except BadInput as exc:
        raise BadInput(f"{file}: {exc}") from exc
    steps = tuple(_new_step(settings, file, step) for step in said.steps)
    return said, NewCampaign(said.name, said.direction, said.window, said.brakes, steps)


def _new_step(settings: Settings, file: Path, step: StepSource) -> NewStep:
    try:
        written = _written(settings, file.parent, step)
        letter = written.new.letter
        assert letter is not None
        if braces := half_written(f"{letter.subject}\n{letter.text}"):
            raise BadInput(
                f"{braces} would be sent as it stands. "
                'A field is written {{ name | default: "friends" }}.'
            )
        if written.new.send_at is not None:
            raise BadInput(
                "send_at is for mailouts. A letter of a campaign leaves by its window and its delay."
            )
    except (BadInput, Unsendable) as exc:
        raise BadInput(f"{file}: Line {step.line}: {exc}") from exc
    images = tuple(Image(asset.sha256, asset.content_type, asset.content) for asset in written.assets)
    return NewStep(letter, step.after, images)


def _written(settings: Settings, folder: Path, step: StepSource) -> WrittenLetter:
    if step.template is None:
        assert step.subject is not None
        assert step.text is not None
        return _plain_letter(settings, step.subject, step.text)
    template = folder / step.template
    if not template.is_file():
        raise BadInput(f"there is no file {template}.")
    try:
        return letter_in_file(settings, template)
    except BadInput as exc:
        raise BadInput(f"{template}: {exc}") from exc


def _plain_letter(settings: Settings, subject: str, text: str) -> WrittenLetter:
    """Words as they are written, as a person would send them. Raises BadInput for what cannot be sent."""
    from html import escape

    from sendonce.flows.mailouts.preflight import check_letter

    paragraphs = "".join(
        f"<p>{escape(part, quote=False)}</p>".replace("\n", "<br>") for part in text.strip().split("\n\n")
    )
    letter = Letter(subject, "", f"<html><body>{paragraphs}</body></html>", text.strip())
    check_letter(letter, sample_message_settings(settings), "new")
    return WrittenLetter(NewMailout(subject, "file", letter))


def unit_prices() -> list[UnitPrice]:
    """From one file of the program."""
    from importlib.resources import files

    table = files("sendonce.adapters.files").joinpath("unit_prices.csv").read_text(encoding="utf-8")
    return read_prices(table.splitlines())


def leads_in(file: Path, columns: Mapping[str, str], encoding: str) -> Iterator[NewLead | BadRow]:
    from sendonce.adapters.sources.leads_csv import read_leads

    return read_leads(file, columns, encoding or None)


def receivers(settings: Settings) -> Receivers | None:
    """None in a rehearsal: its domains are made up, and no name server outside knows them."""
    if settings.clock_speed != 1 and not settings.dns_server:
        return None
    from sendonce.adapters.web.dns_records import Records
    from sendonce.adapters.web.receivers import MxReceivers

    return MxReceivers(Records(settings.dns_server or None))


def _message_id(identity: SenderIdentity, job_id: str, told: str | None) -> str:
    """SES puts its own Message-ID in the place of ours, with the region in it. Of a sender with two regions
    both are named: RFC 5322 lets a reply name several, and mail programs look for any of them."""
    made = identity.made
    if made.transport == "ses" and told:
        regions = [region for region in (made.place, made.second_region) if region]
        hosts = ["email" if region == "us-east-1" else region for region in regions]
        return " ".join(f"<{told}@{host}.amazonses.com>" for host in hosts)
    return f"<{job_id}@{made.address.rpartition('@')[2].lower()}>"


def _refuse_a_fast_clock(settings: Settings, store: CampaignStore) -> None:
    if settings.clock_speed == 1:
        return
    for identity in store.senders.all():
        if not _stays_here(settings, identity.made):
            raise _leaves(settings, identity.address)


def _leaves(settings: Settings, address: str) -> BadSetting:
    return BadSetting(
        f"CLOCK_SPEED is {settings.clock_speed}, and letters of {address} would leave this machine: it is "
        "for rehearsals only. Unset it, or use a sender on loopback."
    )


def _stays_here(settings: Settings, made: NewSender) -> bool:
    if made.transport == "smtp":
        return is_loopback(made.place)
    if (
        made.transport == "ses"
        and made.second_region
        and not is_loopback_url(settings.ses_second_endpoint_url)
    ):
        return False
    return made.transport == "maildir" or is_loopback_url(settings.aws_endpoint_url_sesv2 or "")
