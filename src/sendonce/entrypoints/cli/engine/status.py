"""sendonce status: how the house stands, on one screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sendonce.domain.engine.alarms import in_words
from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.gauges import per_hour
from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.engine.overview import Overview
from sendonce.domain.engine.senders import read_key, words_of_hold
from sendonce.entrypoints.cli.context import opened_campaigns, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say

_BARS = "▁▂▃▄▅▆▇█"
_HOURLY = ("sent", "delivered", "bounced", "failed", "dead")
_OF_TENANTS = ("planned", "scheduled", "sent", "delivered", "bounced", "complained", "failed", "dead")


def status(json: JsonFlag = False) -> None:
    """Show how sending fares: the last day, the queue, alarms, senders, workers, mailboxes and tenants."""
    from sendonce.flows.engine.show_overview import show_overview

    settings = ready_settings(quiet=json)
    with opened_campaigns(settings) as store:
        shown = show_overview(store)
        day = [*store.gauge_log.last_day(), shown.now]
    hourly = {counter: per_hour(day, counter, shown.now.taken_at) for counter in _HOURLY}
    if json:
        print_json(_as_json(shown, hourly))
        return
    for line in (*_lines(shown, time_zone(settings)), "", *_charts(hourly)):
        say(line)
    if len(shown.tenants) > 1:
        rows = [(name, *(getattr(books, it) for it in _OF_TENANTS)) for name, books in shown.tenants.items()]
        print_table("Tenants, the last 30 days", ["tenant", *_OF_TENANTS], rows)


def _as_json(shown: Overview, hourly: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    now = shown.now
    return {
        "at": now.taken_at,
        "counts": as_dict(now.books),
        "queue": {"depth": now.books.open, "oldest_seconds": round(now.queue_age, 1)},
        "last_day": {**as_dict(shown.rates), "per_hour": hourly},
        "alarms": [as_dict(alarm) for alarm in shown.alarms],
        "held_senders": [as_dict(hold) for hold in shown.holds],
        "workers": {"at_work": shown.at_work, "missing": shown.missing},
        "mailboxes": [as_dict(each) for each in shown.mailboxes],
        "last_event": shown.last_event,
        "tenants": {name: as_dict(books) for name, books in shown.tenants.items()},
    }


def _lines(shown: Overview, zone: tzinfo) -> Iterator[str]:
    books, rates = shown.now.books, shown.rates
    for alarm in shown.alarms:
        yield f"ALARM since {shown_moment(alarm.began_at, zone)}: {alarm.text}"
    age = in_words(timedelta(seconds=shown.now.queue_age))
    oldest = f", the oldest due for {age}" if shown.now.queue_age >= 1 else ""
    yield f"Queue       {count_of(books.scheduled, 'letter')} scheduled, {books.sending} on the way{oldest}."
    yield (
        f"Letters     {books.sent} sent, {books.failed} failed, {books.skipped} skipped, {books.dead} dead, "
        f"{books.in_doubt} in doubt."
    )
    yield (
        f"Last day    {count_of(rates.accepted, 'letter')} accepted; delivered {_share(rates.delivery)}, "
        f"bounced {_share(rates.bounce)}, complained of {_share(rates.complaint, 2)}."
    )
    missing = f", {shown.missing} missing ('sendonce workers list')" if shown.missing else ""
    yield f"Workers     {shown.at_work} at work{missing}."
    for hold in shown.holds:
        yield f"Held        {read_key(hold.key).address}: {words_of_hold(hold)}"
    for each in shown.mailboxes:
        yield f"Mailbox     {each.mailbox}: {_reading(each.read_at, each.trouble, zone)}"
    if shown.last_event is not None:
        yield f"Last event  {shown_moment(shown.last_event, zone)}"


def _share(value: float | None, digits: int = 1) -> str:
    return "unknown" if value is None else f"{value:.{digits}%}"


def _reading(read_at: datetime | None, trouble: str | None, zone: tzinfo) -> str:
    last = f"last read {shown_moment(read_at, zone)}" if read_at else "never read"
    return f"{last}; {trouble}" if trouble else last


def _charts(hourly: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """A line for each counter that rose: a chart on a terminal, numbers in a pipe."""
    yield "Letters per hour, the last 24 hours"
    for counter, counts in hourly.items():
        if any(counts) or counter == "sent":
            drawn = sparkline(counts) if sys.stdout.isatty() else " ".join(map(str, counts))
            yield f"{counter:<11} {drawn}  ({sum(counts)} in all, {max(counts)} in the busiest hour)"


def sparkline(counts: Sequence[int]) -> str:
    """A bar for each count. What is not nothing can be seen."""
    most = max(counts, default=0)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] if count else " " for count in counts)
