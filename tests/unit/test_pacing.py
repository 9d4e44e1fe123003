"""Pacing by permits, on a clock of the test's own."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.pacing import (
    PERMIT_GRACE,
    PERMIT_LEASE,
    PERMIT_TRUST,
    Pacer,
    fair_share,
    group_size,
)


class Line:
    """A sender, a line with latency, and a receiver that writes down when each letter arrives."""

    def __init__(self, rate: int, latency: float, jitter: float = 0.0, seed: int = 0) -> None:
        self.now = 100.0
        self.pacer = Pacer(rate, self.now)
        self.arrivals: list[float] = []
        self._latency, self._jitter = latency, jitter
        self._replies: deque[float] = deque()
        self._dice = Random(seed)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self._collect_replies()
            wait = self.pacer.wait(self.now)
            if wait == 0:
                self._send()
                continue
            next_reply = self._replies[0] - self.now if self._replies else wait
            self.now += max(min(wait, next_reply), 1e-4)

    def stall(self, seconds: float) -> None:
        self.now += seconds

    def _send(self) -> None:
        self.pacer.take(self.now)
        there = self.now + self._latency / 2 + self._dice.uniform(0, self._jitter)
        self.arrivals.append(there)
        self._replies = deque(sorted([*self._replies, there + self._latency / 2]))

    def _collect_replies(self) -> None:
        while self._replies and self._replies[0] <= self.now:
            self._replies.popleft()
            self.pacer.give_back(self.now)

    def busiest_second(self) -> int:
        times = sorted(self.arrivals)
        return max(sum(start <= t <= start + 1.0 for t in times) for start in times)


@settings(max_examples=40, deadline=None)
@given(
    rate=st.integers(1, 20),
    latency=st.floats(0, 0.3),
    jitter=st.floats(0, 0.2),
    stall=st.floats(0, 3),
    seed=st.integers(0, 99),
)
def test_no_second_at_the_receiver_holds_more_than_the_rate(
    rate: int, latency: float, jitter: float, stall: float, seed: int
) -> None:
    """Whatever the line does, and also after the loop stalls."""
    line = Line(rate, latency, jitter, seed)
    line.run(3)
    line.stall(stall)
    line.run(3)
    assert line.busiest_second() <= rate


def test_the_rate_is_reached_on_a_quick_line() -> None:
    """At least 0.99 of what is allowed, after the first second of rest."""
    line = Line(14, latency=0.0005)
    line.run(21)
    assert len(line.arrivals) >= 0.99 * 14 * 20


def test_latency_has_its_price() -> None:
    """The rate is r / (1 + latency), as the module says."""
    line = Line(10, latency=0.25)
    line.run(41)
    assert len(line.arrivals) == pytest.approx(40 * 10 / 1.25, rel=0.03)


def test_a_new_process_waits_for_its_predecessors_second() -> None:
    """All permits are out at the start."""
    pacer = Pacer(5, 0.0)
    assert pacer.wait(0.0) == pytest.approx(1.0, abs=0.01)
    assert pacer.wait(1.01) == 0


def test_letters_are_spread_over_the_second() -> None:
    """The schedule leaves even gaps, not one burst a second."""
    line = Line(10, latency=0.001)
    line.run(5)
    gaps = [b - a for a, b in pairwise(line.arrivals)]
    assert max(gaps) < 0.2
    assert min(gaps) > 0.05


def test_more_permits_rest_first() -> None:
    """A larger share is usable a second after it was granted."""
    pacer = Pacer(1, 0.0)
    pacer.resize(3, 10.0)
    assert pacer.held == 3
    pacer.take(10.0)
    assert pacer.wait(10.5) == pytest.approx(0.5, abs=0.01)


def test_surplus_permits_retire_as_they_come_home() -> None:
    """A permit in use is given up when its letter is answered and has rested."""
    pacer = Pacer(2, 0.0)
    for moment in (5.0, 5.6):
        assert pacer.wait(moment) == 0
        pacer.take(moment)
    pacer.resize(1, 6.0)
    assert pacer.held == 2
    pacer.give_back(6.0)
    assert pacer.held == 2
    assert pacer.wait(7.1) == 1.0
    assert pacer.held == 1


def test_no_permits_no_letters() -> None:
    """With a share of nothing the pacer never says go."""
    pacer = Pacer(2, 0.0)
    pacer.resize(0, 5.0)
    assert pacer.wait(50.0) > 0


def test_a_hold_is_kept() -> None:
    """ "Not now" holds everything, and a shorter hold does not lift a longer one."""
    pacer = Pacer(2, 0.0)
    pacer.hold(60.0)
    pacer.hold(30.0)
    assert pacer.wait(40.0) == pytest.approx(20.0)
    assert pacer.wait(60.0) == 0


@pytest.mark.parametrize(
    ("rate", "batch", "size"),
    [(6, 50, 1), (14, 50, 3), (100, 50, 25), (200, 50, 50), (9999, 50, 50), (0.2, 50, 1)],
)
def test_a_group_is_a_quarter_of_a_second(rate: float, batch: int, size: int) -> None:
    """Never less than one, never more than the batch."""
    assert group_size(rate, batch) == size


@given(
    rate=st.integers(0, 50),
    moves=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60),
)
def test_shares_never_sum_above_the_rate(rate: int, moves: list[tuple[int, bool]]) -> None:
    """Workers come, renew and let go in any order; the books hold what each may still use."""
    books: dict[str, int] = {}
    held: dict[str, int] = {}
    for number, leaves in moves:
        worker = f"w{number}"
        others = {w: n for w, n in books.items() if w != worker}
        if leaves:
            books, held[worker] = others, 0
            continue
        may_hold = fair_share(rate, worker, others, held.get(worker, 0))
        books[worker] = max(may_hold, held.get(worker, 0))
        held[worker] = may_hold
        assert sum(books.values()) <= rate
        assert sum(held.values()) <= rate


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_shares_become_fair(workers: int) -> None:
    """After each has renewed a few times, all of the rate is given out and shares differ by one at most."""
    held = {f"w{n}": 0 for n in range(workers)}
    for _ in range(4):
        for worker in held:
            others = {w: n for w, n in held.items() if w != worker}
            held[worker] = fair_share(10, worker, others, held[worker])
    assert sum(held.values()) == 10
    assert max(held.values()) - min(held.values()) <= 1


def test_the_holder_stops_before_others_begin() -> None:
    """It trusts its lease for less time than the store keeps it, and the store waits a second more."""
    assert PERMIT_TRUST < PERMIT_LEASE
    assert PERMIT_GRACE >= 1.0
