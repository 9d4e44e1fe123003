"""A sender in, the outlet that its letters leave through out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.flows.engine.outlet import Outlet, OutletOptions
from sendonce.settings import Settings
from sendonce.wiring.messages import message_settings
from sendonce.wiring.mortality import require_death_proof
from sendonce.wiring.senders import SenderSettings, in_second_region, own_settings, settings_of
from sendonce.wiring.transports import make_transport, sender_key

if TYPE_CHECKING:
    from sendonce.flows.engine.keep_time import TimeKeeper
    from sendonce.flows.engine.outlets import Way
    from sendonce.ports.engine import Meter, Timetable
    from sendonce.ports.mortality import Mortality
    from sendonce.ports.store import Store


@dataclass(frozen=True, slots=True)
class OutletMaker:
    """``name`` is that of the process. The outlets of added senders have their senders' ids behind it."""

    settings: Settings
    store: Store
    mortality: Mortality
    clock: TimeKeeper
    meter: Meter
    timetable: Timetable | None
    name: str

    def own(self) -> Outlet:
        return self._make(own_settings(self.settings), self.name, OWN_SENDER)

    def of(self, way: Way) -> Outlet:
        """Raises BadInput where its secret is not found, or its settings do not fit together."""
        if way.identity is None:
            sender, name = own_settings(self.settings), self.name
        else:
            sender = settings_of(self.settings, way.identity.made)
            name = f"{self.name}.{way.identity.id}"
        if way.second:
            second, name = in_second_region(sender), f"{name}.second"
            assert second is not None, "only a sender with a second region goes there"
            sender = second
        return self._make(sender, name, way.sender_id)

    def _make(self, sender: SenderSettings, name: str, sender_id: str) -> Outlet:
        settings = sender.settings
        require_death_proof(settings)
        retry = RetryPolicy(settings.max_tries, settings.retry_base_seconds, settings.retry_max_seconds)
        return Outlet(
            OutletOptions(
                name=name,
                rate_limit=settings.rate_limit_per_sec,
                rate_key=sender.rate_key,
                sender_key=str(sender_key(settings)),
                route=sender.route,
                connections=settings.concurrency,
                batch_size=settings.batch_size,
                retry=retry,
                sender_id=sender_id,
                quiet_time=settings.ses_fail_back_seconds if in_second_region(sender) else None,
            ),
            store=self.store,
            mortality=self.mortality,
            transport=make_transport(settings),
            message_settings=message_settings(settings, self.store),
            timetable=self.timetable,
            clock=self.clock,
            meter=self.meter,
        )
