"""What whoever watches over the house needs: the checks of every day, and those that alerts come from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.engine.alarms import Alarm, Trouble
from sendonce.domain.engine.gauges import Gauges
from sendonce.ports.engine.store import EngineStore
from sendonce.ports.engine.workers import Leases


class GaugeLog(Protocol):
    """The gauges of the last day. No verb reads the history of letters."""

    def read(self) -> Gauges:
        """As they stand now, but for the tenants."""

    def take(self) -> Gauges:
        """The same with the books of the tenants; kept, and what is too old forgotten."""

    def last_day(self) -> Sequence[Gauges]:
        """What was kept, the oldest first."""

    def newest(self) -> Gauges | None: ...

    def day_ago(self) -> Gauges | None:
        """The last reading that is a day old; the oldest, if the gauges were not read for so long."""

    def last_event(self) -> datetime | None:
        """When the provider last told something of a letter; what mailboxes told does not count."""

    def unheard(self, transport: str, since: datetime, until: datetime) -> int:
        """Letters that a transport handed over in that time and that no event has told of: at least so many.

        Looks at a bounded number of them, the newest.
        """


class Alarms(Protocol):
    """What is wrong now."""

    def stand(self, trouble: Trouble) -> Alarm:
        """Begin an alarm, or say anew what it is about."""

    def note_told(self, about: str) -> None: ...

    def end(self, about: str) -> bool:
        """False where it is over already: of many callers one ends it."""

    def standing(self) -> Sequence[Alarm]:
        """The oldest first."""


class WatchStore(EngineStore, Protocol):
    """An open database with what the watch keeps in it."""

    leases: Leases
    gauge_log: GaugeLog
    alarms: Alarms
