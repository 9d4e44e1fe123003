"""Keep this process to its share of the sending rate, and the account to its quota."""

from __future__ import annotations

import logging
import time
from math import floor

from sendonce.domain.engine.pacing import PERMIT_TRUST, Pacer, Unpaced
from sendonce.domain.engine.parcels import Quota
from sendonce.domain.engine.workers import Rest
from sendonce.errors import Unavailable
from sendonce.ports.engine import Permits, Transport

log = logging.getLogger(__name__)

QUOTA_REFRESH = 300.0
QUOTA_REFRESH_NEAR_END = 10.0
# More permits than any process could use in a second are no limit, only memory.
MOST_PERMITS = 50_000
_PAUSED = "The provider has switched sending off for this account."


class RateKeeper:
    """``limit`` is our own limit in letters a second, 0 for none; the provider's is added to it."""

    def __init__(
        self, *, key: str, worker_id: str, limit: int, permits: Permits, transport: Transport
    ) -> None:
        self._key = key
        self._worker_id = worker_id
        self._own_limit = limit
        self._permits = permits
        self._transport = transport
        self._quota: Quota | None = None
        self._told_of: Quota | None = None
        self._quota_at = float("-inf")
        self._accepted_since = 0
        self._accepted = 0
        self._measured = (time.monotonic(), 0)
        self._renewed = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.pacer: Pacer | Unpaced = Unpaced()

    @property
    def sent_last_day(self) -> int | None:
        """What the provider counted for the whole account, if it said so."""
        return self._quota.sent_last_day if self._quota else None

    @property
    def limit(self) -> int:
        """Letters a second for all processes together; 0 for no limit."""
        theirs = (self._quota.max_rate if self._quota else None) or 0.0
        limits = [n for n in (self._own_limit, theirs) if 0 < n <= MOST_PERMITS]
        return max(floor(min(limits)), 1) if limits else 0

    def may_send(self) -> bool:
        """Whether the provider's own quota leaves room for one more letter today."""
        if self._quota is None:
            return True
        if not self._quota.sending_enabled:
            return False
        left = self._quota.left_today
        return left is None or left > self._accepted_since

    def newly_paused(self) -> str | None:
        """What to tell where the provider's newest answer says that it takes nothing; once per answer."""
        if self._quota is None or self._quota is self._told_of:
            return None
        self._told_of = self._quota
        return None if self._quota.sending_enabled else _PAUSED

    def rest(self) -> tuple[Rest, str] | None:
        """Why the provider takes nothing from this account today, if it does not."""
        if self.may_send():
            return None
        if self._quota is not None and not self._quota.sending_enabled:
            return Rest.SENDING_PAUSED, _PAUSED
        return Rest.QUOTA, "The provider's quota for 24 hours is used up."

    def count_accepted(self) -> None:
        self._accepted_since += 1
        self._accepted += 1

    def measured(self) -> float:
        """Letters accepted per second since the last time it was asked."""
        (then, before), now = self._measured, time.monotonic()
        self._measured = (now, self._accepted)
        return (self._accepted - before) / max(now - then, 0.001)

    async def ask_quota(self) -> None:
        """Ask the provider what it allows, when the last answer is old or nearly used up."""
        if time.monotonic() - self._quota_at < self._patience():
            return
        self._quota_at = time.monotonic()
        try:
            quota = await self._transport.quota()
        except Unavailable as exc:
            log.warning("the quota is unknown", extra={"fields": {"error": str(exc)}})
            return
        self._quota, self._accepted_since = quota, 0
        if quota is not None and not self.may_send():
            log.warning(
                "the provider's quota is used up or sending is disabled", extra={"fields": {"quota": quota}}
            )

    def _patience(self) -> float:
        left = self._quota.left_today if self._quota else None
        if left is None:
            return QUOTA_REFRESH
        near = left - self._accepted_since < self.limit * QUOTA_REFRESH
        return QUOTA_REFRESH_NEAR_END if near else QUOTA_REFRESH

    @property
    def permits_until(self) -> float:
        """The boot time at which we stop using our permits, unless their lease is renewed before."""
        return self._renewed + PERMIT_TRUST if isinstance(self.pacer, Pacer) else float("inf")

    def open(self) -> None:
        """Make the pacer, with the share that is free now."""
        if self.limit:
            began = time.clock_gettime(time.CLOCK_BOOTTIME)
            share = self._permits.renew(self._key, self._worker_id, self.limit, 0)
            self.pacer = Pacer(share, time.monotonic())
            self._renewed = began

    def renew(self) -> int | None:
        """Renew the lease on our share: its new size, or None without a limit. For a thread of its own."""
        if not isinstance(self.pacer, Pacer):
            return None
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        share = self._permits.renew(self._key, self._worker_id, self.limit, self.pacer.held)
        self._renewed = began
        return share

    def close(self) -> None:
        if self.limit:
            self._permits.release(self._key, self._worker_id)
