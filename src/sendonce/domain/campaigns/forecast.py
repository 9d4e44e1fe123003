"""Forecast: when a campaign will have written all its letters, and which limit it waits for.

Day after day: what the window and the senders allow, first for follow-ups that are due, then for leads that
have had no letter. Nobody answers or bounces in a forecast, so the campaign is over then at the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.slots import hourly
from sendonce.domain.campaigns.windows import Window

_LONGEST = 3650


class Binding(StrEnum):
    """What a campaign waits for most."""

    DAILY = "the daily limits of its senders"
    HOURLY = "the hourly limits of its senders"
    WARM_UP = "the warm-up of its senders"
    TENANT = "the daily limit of its tenant"
    ACCOUNT = "its tenant's share of an account's daily limit"
    DELAYS = "the delays between its steps"
    SENDERS = "a sender: none may send"


class Cap(NamedTuple):
    """The letters a day that some senders may send together."""

    senders: frozenset[str]
    daily: int
    binding: Binding


@dataclass(frozen=True, slots=True)
class Forecast:
    """``ends`` is None where it never would. ``days`` are the letters of each day."""

    letters: int
    ends: date | None
    binding: Binding
    days: tuple[tuple[date, int], ...]


def forecast(
    leads: int,
    waits: Sequence[timedelta],
    senders: Sequence[SenderLimits],
    window: Window,
    today: date,
    caps: Sequence[Cap] = (),
    begun: Mapping[int, int] = MappingProxyType({}),
) -> Forecast:
    """``leads`` have had no letter yet; ``begun`` is how many have had one, two and so on, the last of them
    today at the latest. ``waits`` are those of the steps, the first of which is nothing."""
    total = leads * len(waits) + sum(count * (len(waits) - had) for had, count in begun.items())
    due: Counter[tuple[date, int]] = Counter()
    for had, count in begun.items():
        _follow(due, had - 1, waits, today, count)
    fresh, day, sent = leads, today, 0
    days: list[tuple[date, int]] = []
    bound: Counter[Binding] = Counter()
    for _ in range(_LONGEST):
        if sent == total:
            break
        if not senders:
            return Forecast(total, None, Binding.SENDERS, ())
        if day.weekday() in window.days and day not in window.holidays:
            room, limit = _capacity(senders, window, day, caps)
            waiting = sorted((each for each in due if each[0] <= day), key=lambda each: (-each[1], each[0]))
            used = 0
            for key in waiting:
                taken = min(due[key], room - used)
                due[key] -= taken
                used += taken
                _follow(due, key[1], waits, day, taken)
            taken = min(fresh, room - used)
            fresh -= taken
            used += taken
            _follow(due, 0, waits, day, taken)
            if used:
                days.append((day, used))
                senders = [each.used_on(day) for each in senders]
            bound[limit if used == room else Binding.DELAYS] += 1
            sent += used
        day += timedelta(days=1)
    ends = days[-1][0] if days and sent == total else None
    return Forecast(total, ends, bound.most_common(1)[0][0] if bound else Binding.SENDERS, tuple(days))


def _follow(
    due: Counter[tuple[date, int]], step: int, waits: Sequence[timedelta], day: date, letters: int
) -> None:
    """The next letters of these leads: after the delay, and on another day."""
    if step + 1 < len(waits) and letters:
        wait = max(timedelta(days=1), waits[step + 1])
        due[day + timedelta(days=-(-wait // timedelta(days=1))), step + 1] += letters


def _capacity(
    senders: Sequence[SenderLimits], window: Window, day: date, caps: Sequence[Cap]
) -> tuple[int, Binding]:
    """How many letters all of them may send on a day, and what keeps it so low."""
    hours = (
        window.closes.hour * 60 + window.closes.minute - window.opens.hour * 60 - window.opens.minute
    ) / 60
    rooms, by = list[tuple[str, int]](), Counter[Binding]()
    for each in senders:
        allowed = each.allowed_on(day)
        by_hour = int(hourly(each.per_hour).count * hours) if each.per_hour else allowed
        rooms.append((each.sender_id, min(allowed, by_hour)))
        if by_hour < allowed:
            by[Binding.HOURLY] += 1
        else:
            by[Binding.WARM_UP if allowed < each.daily else Binding.DAILY] += 1
    room, binding = sum(each for _, each in rooms), by.most_common(1)[0][0]
    for cap in caps:
        beside = sum(each for name, each in rooms if name not in cap.senders)
        if beside + cap.daily < room:
            room, binding = beside + cap.daily, cap.binding
    return room, binding
