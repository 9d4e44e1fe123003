"""How the house stands, as families of metrics. The books are counters, so that Prometheus can tell rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sendonce.domain.engine.jobs import Books

if TYPE_CHECKING:
    from prometheus_client import Metric

    from sendonce.domain.engine.overview import Overview

# What becomes of letters. The first three are told by events, after the letter was accepted.
_ENDS = ("delivered", "bounced", "complained", "rejected", "sent", "failed", "skipped", "dead")


def overview_families(shown: Overview) -> list[Metric]:
    return [*_letters(shown), *_rates(shown), *_house(shown), *_mailboxes(shown)]


def _letters(shown: Overview) -> list[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    letters = CounterMetricFamily("sendonce_letters", "Letters by what became of them.", labels=["result"])
    for name in _ENDS:
        letters.add_metric([name], getattr(shown.now.books, name))
    about = "Letters of each tenant's dispatches that are open or were made in the last 30 days."
    tenants = GaugeMetricFamily("sendonce_tenant_letters", about, labels=["tenant", "result"])
    for tenant, books in shown.tenants.items():
        for name in (*_ENDS, "scheduled"):
            tenants.add_metric([tenant, name], getattr(books, name))
    return [letters, tenants, *_success(shown.tenants.items())]


def _success(tenants: Iterable[tuple[str, Books]]) -> list[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    about = "Letters that were accepted and did not bounce, of those that are over, by tenant."
    family = GaugeMetricFamily("sendonce_tenant_success_ratio", about, labels=["tenant"])
    for tenant, books in tenants:
        over = books.sent + books.failed + books.dead
        if over:
            family.add_metric([tenant], (books.sent - books.bounced) / over)
    return [family]


def _rates(shown: Overview) -> list[Metric]:
    """Of the last 24 hours. What cannot be told, because nothing was sent, is left out."""
    from prometheus_client.core import GaugeMetricFamily

    rates = shown.rates
    about = "Letters of the last 24 hours that were {}, of those that were accepted."
    told = [("delivery", "delivered", rates.delivery), ("bounce", "bounced", rates.bounce)]
    told.append(("complaint", "complained of", rates.complaint))
    return [
        GaugeMetricFamily(f"sendonce_{name}_ratio", about.format(word), value=value)
        for name, word, value in told
        if value is not None
    ]


def _house(shown: Overview) -> list[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    workers = GaugeMetricFamily("sendonce_workers", "Workers by how they are.", labels=["state"])
    workers.add_metric(["at_work"], shown.at_work)
    workers.add_metric(["missing"], shown.missing)
    holds = GaugeMetricFamily("sendonce_held_senders", "Senders that are held.", value=len(shown.holds))
    alarms = GaugeMetricFamily("sendonce_alarms", "Alarms that stand.", value=len(shown.alarms))
    found: list[Metric] = [workers, holds, alarms]
    if shown.last_event is not None:
        about = "When the provider last told something of a letter."
        at = shown.last_event.timestamp()
        found.append(GaugeMetricFamily("sendonce_last_event_timestamp_seconds", about, value=at))
    return found


def _mailboxes(shown: Overview) -> list[Metric]:
    """All mailboxes together: their names are addresses."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if not shown.mailboxes:
        return []
    found: Counter[str] = Counter()
    for each in shown.mailboxes:
        found.update(each.found)
    messages = CounterMetricFamily("sendonce_mailbox_messages", "Messages by kind.", labels=["kind"])
    for kind, count in sorted(found.items()):
        messages.add_metric([kind], count)
    failing = sum(each.trouble is not None for each in shown.mailboxes)
    states = GaugeMetricFamily("sendonce_mailboxes", "Mailboxes by their last reading.", labels=["state"])
    states.add_metric(["read"], len(shown.mailboxes) - failing)
    states.add_metric(["failing"], failing)
    read = [each.read_at.timestamp() for each in shown.mailboxes if each.read_at is not None]
    about = "When the mailbox was last read that was not read for the longest time."
    oldest = GaugeMetricFamily(
        "sendonce_mailbox_last_read_timestamp_seconds", about, value=min(read, default=0)
    )
    return [messages, states, oldest]
