"""Settings in, a worker out."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from sendonce.domain.engine import failpoints
from sendonce.domain.prospecting import failpoints as prospecting_failpoints
from sendonce.errors import BadSetting
from sendonce.flows.people.shelve_letters import shelve_letters
from sendonce.flows.people.sign_links import note_signing
from sendonce.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from sendonce.flows.engine.duties import Chore
    from sendonce.flows.engine.keep_time import SeenClocks
    from sendonce.flows.engine.work import Worker
    from sendonce.flows.mailouts.keep_house import Housekeeper
    from sendonce.ports.engine import Meter
    from sendonce.ports.store import Store
from sendonce.wiring.archive import make_archive_chore
from sendonce.wiring.doubts import doubt_quiet, make_expiries, make_resolvers, witness_of
from sendonce.wiring.house import worker_name
from sendonce.wiring.mailbox import make_mailbox_chores, make_sent_searchers
from sendonce.wiring.messages import message_settings
from sendonce.wiring.mortality import mortality_of, require_death_proof
from sendonce.wiring.notion import make_notion_chores
from sendonce.wiring.reports import write_due_reports
from sendonce.wiring.senders import keys_of
from sendonce.wiring.stores import has_campaigns
from sendonce.wiring.transports import make_transport


def require_for_work(settings: Settings, store: Store) -> None:
    """What a worker of this process cannot do without, before a mailout is started that it is to carry out:
    or else the mailout is sending, and nobody sends it."""
    make_transport(settings)
    require_death_proof(settings)
    mortality_of(settings, store).require_writable()


def make_worker(
    settings: Settings, store: Store, meter: Meter, name: str = "", clocks: SeenClocks | None = None
) -> Worker:
    from sendonce.flows.engine.keep_time import TimeKeeper
    from sendonce.flows.engine.outlets import Outlets
    from sendonce.flows.engine.work import Worker, WorkOptions
    from sendonce.flows.mailouts.start_due import DueStarter
    from sendonce.flows.mailouts.steward import Steward
    from sendonce.wiring.campaigns import campaign_timetable
    from sendonce.wiring.events import make_event_puller
    from sendonce.wiring.outlets import OutletMaker
    from sendonce.wiring.sender_check import PATIENTLY, make_sender_check

    arm_failpoint(settings)
    witness = witness_of(settings)
    letters = message_settings(settings, store)
    note_signing(store.keys, letters.unsubscribe_secret)
    own_name = name or worker_name(settings)
    mortality = mortality_of(settings, store)
    clock = TimeKeeper(store.ledger, witness, doubt_quiet(settings), clocks)
    sent_searchers = make_sent_searchers(settings, store)
    timetable = campaign_timetable(settings, store) if has_campaigns(store) else None
    maker = OutletMaker(settings, store, mortality, clock, meter, timetable, own_name)

    def engage_steward(planner: str, pause: Callable[[], bool]) -> Steward:
        check = make_sender_check(settings, store, PATIENTLY)
        starter = DueStarter(store, lambda: letters, check)
        return Steward(store, planner, pause, starter.run)

    return Worker(
        WorkOptions(
            retry_after=settings.retry_base_seconds,
            retry_within=settings.retry_max_seconds,
            bury_every=settings.bury_interval_seconds,
            account_shared=settings.ses_account_shared,
        ),
        store=store,
        mortality=mortality,
        outlet=maker.own(),
        outlets=Outlets(store, maker.of, keys_of(settings)),
        clock=clock,
        expiries=lambda: make_expiries(settings, store),
        resolvers=lambda: [*make_resolvers(settings, store), *sent_searchers],
        engage_steward=engage_steward,
        chores=make_chores(settings, store),
        puller=make_event_puller(settings, store, meter),
    )


def arm_failpoint(settings: Settings) -> None:
    """FAILPOINT=name:n makes the process kill itself there, for crash tests."""
    if not settings.failpoint:
        return
    name, _, count = settings.failpoint.partition(":")
    names = (*failpoints.NAMES, *prospecting_failpoints.NAMES)
    if name not in names or not (count or "1").isdigit():
        known = ", ".join(names)
        raise BadSetting(f"FAILPOINT is '{settings.failpoint}': it must be name:n with a name of {known}.")
    failpoints.arm(name, int(count or 1), lambda: os.kill(os.getpid(), signal.SIGKILL))


def make_chores(settings: Settings, store: Store) -> list[Chore]:
    """What a worker does now and then beside sending."""
    from sendonce.wiring.alerts import alert_chores
    from sendonce.wiring.campaigns import campaign_chores
    from sendonce.wiring.sender_domains import domain_chores
    from sendonce.wiring.suppressions import sync_chores

    return [
        (2.0, lambda: write_due_reports(settings, store)),
        make_archive_chore(settings, store),
        (60.0, lambda: shelve_letters(store)),
        *make_notion_chores(settings, store),
        *make_mailbox_chores(settings, store),
        *(campaign_chores(settings, store) if has_campaigns(store) else []),
        *sync_chores(settings, store),
        *(alert_chores(settings, store) if has_campaigns(store) else []),
        *(domain_chores(settings, store) if has_campaigns(store) else []),
    ]


def make_housekeeper(settings: Settings, store: Store) -> Housekeeper:
    """What does the duties that need no transport."""
    from sendonce.flows.mailouts.keep_house import Housekeeper, HouseRules
    from sendonce.flows.mailouts.start_due import DueStarter
    from sendonce.wiring.sender_check import PATIENTLY, make_sender_check

    check = make_sender_check(settings, store, PATIENTLY)
    rules = HouseRules(
        bury_every=settings.bury_interval_seconds,
        retry_after=settings.retry_base_seconds,
        longest_retry=settings.retry_max_seconds,
    )
    starter = DueStarter(store, lambda: message_settings(settings, store), check)
    chores = make_chores(settings, store)
    return Housekeeper(store, mortality_of(settings, store), rules, starter.run, chores)
