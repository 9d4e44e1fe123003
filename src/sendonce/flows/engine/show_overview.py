"""Show how the house stands, without a look at the history of letters."""

from __future__ import annotations

from sendonce.domain.engine.gauges import rates_between
from sendonce.domain.engine.mailbox.found import still_in_use
from sendonce.domain.engine.overview import Overview
from sendonce.ports.engine import WatchStore


def show_overview(store: WatchStore) -> Overview:
    gauges = store.gauge_log
    now, day_ago, newest = gauges.read(), gauges.day_ago(), gauges.newest()
    return Overview(
        now=now,
        rates=rates_between(day_ago.books if day_ago else now.books, now.books),
        tenants=newest.tenants if newest else {},
        alarms=store.alarms.standing(),
        holds=store.sender_holds.all(),
        workers=store.workers.open(),
        mailboxes=still_in_use(store.mailbox_log.readings()),
        last_event=gauges.last_event(),
    )
