"""Hours: a letter is made only where it may leave, by the store's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sendonce.domain.engine.jobs import BEFORE_ALL, ClaimedJob
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.outcomes import Deferred
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.flows.engine.build import ParcelBuilder
from sendonce.flows.engine.keep_time import boot_time

SETTINGS = MessageSettings("a@one.example", None, None, "Riga", "http://x.example", "one.example", b"s")
NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
DAY = timedelta(days=1)


class OfficeHours:
    """From nine to ten, once."""

    def opens_in(self, job: ClaimedJob, now: datetime) -> timedelta:
        return max(NINE - now, timedelta()) if now < NINE + timedelta(hours=1) else timedelta.max


class Desk:
    """One letter, and the hours of its dispatch."""

    def put(self, tenant_id: TenantId, letter: Letter) -> str:
        raise NotImplementedError

    def get(self, letter_id: str) -> Letter:
        return Letter("Hi", "", "<p>Hi</p>", "Hi")

    def of(self, dispatch_id: DispatchId) -> OfficeHours:
        return OfficeHours()


def made(claimed_at: datetime, seconds_since: float) -> Parcel | Deferred:
    """Of a job whose claim began so many seconds ago, and found the store's clock there."""
    job = ClaimedJob(BEFORE_ALL, DispatchId("d"), "letter", 1, 0, "ann@example.org", {}, claimed_at)
    builder = ParcelBuilder(Desk(), SETTINGS, Desk())
    builder.load((job,))
    return builder.build(job, boot_time() - seconds_since)


def test_a_letter_in_its_hours_is_made() -> None:
    assert isinstance(made(NINE, 0.5), Parcel)


@pytest.mark.parametrize(
    ("claimed_at", "seconds_since", "wait"),
    [
        (NINE - timedelta(hours=1), 0.0, 3600.0),
        # The claim may have waited for the store: its clock was read just now.
        (NINE - timedelta(seconds=0.2), 0.9, 0.2),
        # Or the letter waited after it.
        (NINE + timedelta(hours=1, seconds=-0.2), 0.9, DAY.total_seconds()),
        (NINE - 3 * DAY, 0.0, DAY.total_seconds()),
    ],
)
def test_a_letter_that_may_be_out_of_its_hours_waits(
    claimed_at: datetime, seconds_since: float, wait: float
) -> None:
    """A day at the most, and then it is asked about again."""
    deferred = made(claimed_at, seconds_since)
    assert isinstance(deferred, Deferred)
    assert deferred.throttle
    assert deferred.retry_after == pytest.approx(wait)
