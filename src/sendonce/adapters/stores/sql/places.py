"""How far the jobs of each dispatch are claimed, so that a claim need not begin at the first of them.

PostgreSQL keeps a claimed job in the index of due jobs until a vacuum, and until the last snapshot that may
still see it is gone. A claim that begins at the first job passes by all of these: with pg_dump running, a
claim after 60,000 letters took four times as long. So a claim begins after the last job claimed here.

What came back before that place is found by a look at all: one a second, and one whenever too few are found.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

GOOD_FOR = timedelta(seconds=1)
# Where more dispatches than these take turns, all of them are looked at once more.
MOST_PLACES = 1000


class Place(NamedTuple):
    """A job in the order in which they are claimed: when it was due, as PostgreSQL writes it, and so on."""

    due_at: str
    priority: int
    job_id: str


def as_values(place: Place | None) -> dict[str, Any]:
    """A place as the statements want it."""
    return dict(zip(("after_due", "after_priority", "after_id"), place or (None,) * 3, strict=True))


class Places:
    def __init__(self) -> None:
        self._places: dict[str, tuple[Place, datetime]] = {}
        self._last: dict[str, str] = {}

    def of(self, dispatch_id: str, now: datetime) -> Place | None:
        """Where a claim may begin; None if it must look at all."""
        place, looked_at = self._places.get(dispatch_id, (None, now))
        return place if looked_at <= now <= looked_at + GOOD_FOR else None

    def last(self, sender_id: str) -> dict[str, Any]:
        """Where a sender's last claim ended, and of which dispatch, as the statements want it."""
        dispatch_id = self._last.get(sender_id)
        place, _ = self._places.get(dispatch_id or "", (None, None))
        return {"last": dispatch_id, **as_values(place)}

    def remember(
        self, sender_id: str, dispatch_id: str, place: Place, now: datetime, *, after: Place | None
    ) -> None:
        """A claim that began after a place has ended at another; without the former it has looked at all."""
        _, looked_at = self._places.get(dispatch_id, (None, now))
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        self._places[dispatch_id] = (place, looked_at if after else now)
        self._last[sender_id] = dispatch_id
