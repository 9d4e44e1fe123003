"""The judge of the campaign demonstration: what the provider took, held against what was promised.

Only the provider's own log says what was taken. The program is believed only in what it says about itself:
the status of its campaigns and senders, and its books.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

SPEED = 4320
"""A day is twenty seconds."""
OPENS, CLOSES = time(8), time(20)
"""When letters may leave, in UTC."""
DAY = timedelta(days=1)
_ON_THE_WIRE = timedelta(seconds=0.5) * SPEED
"""A letter that leaves at the last moment is taken a little later, and this clock runs fast."""
_TOLERANCE = 0.05
_NEARLY_ALL = 0.97
"""Clients use up their shares one after the other: while a tenth is left, the shares may look 5 % off."""

View = Mapping[str, Any]
"""What ``campaign status --json`` says."""


class Letter(NamedTuple):
    """One that the provider took, by the campaigns' clock."""

    at: datetime
    sender: str
    recipient: str
    campaign: str
    step: int

    @property
    def tenant(self) -> str:
        return self.recipient.partition("@")[2].partition("-")[0]


@dataclass(frozen=True)
class Client:
    """``senders`` are addresses and their letters a day. One address in ``bouncing`` is dead."""

    name: str
    leads: int
    senders: dict[str, int]
    weight: int = 1
    daily: int = 0
    bouncing: int = 0

    def smaller(self, times: int) -> Client:
        senders = {address: daily // times for address, daily in self.senders.items()}
        return replace(self, leads=self.leads // times, senders=senders, daily=self.daily // times)


@dataclass(frozen=True)
class Terms:
    """All senders are in one account, whose letters a day are fewer than all of them might send."""

    clients: tuple[Client, ...]
    account_limit: int

    def smaller(self, times: int) -> Terms:
        """The same world with fewer leads and lower limits."""
        return Terms(tuple(client.smaller(times) for client in self.clients), self.account_limit // times)


DEMO = Terms(
    (
        Client("alpha", 500, {"anna@alpha.example.com": 400, "oleg@post.alpha.example.com": 200}, weight=2),
        Client("beta", 400, {"boris@beta.example.com": 400}, bouncing=4),
        Client("gamma", 300, {"vera@gamma.example.com": 300, "spam@gamma-news.example.com": 200}, daily=250),
    ),
    450,
)
ACCOUNT = "ses/us-east-1"
DISLIKED = "spam@gamma-news.example.com"


class Share(NamedTuple):
    """So many of ``total`` letters were somebody's, and ``wanted`` is their part by weight."""

    name: str
    letters: int
    total: int
    wanted: float

    @property
    def part(self) -> float:
        return self.letters / self.total

    def __str__(self) -> str:
        return (
            f"{self.name}'s share: {self.letters} of {self.total} letters, {self.part:.1%}; "
            f"by weight {self.wanted:.1%}."
        )


def broken_promises(views: Sequence[View], letters: Sequence[Letter], terms: Terms = DEMO) -> Iterator[str]:
    states = {each["tenant"]: each["status"] for each in views}
    if states != {"alpha": "finished", "beta": "paused", "gamma": "finished"}:
        yield f"the campaigns are {states}"
    blocked = [s["address"] for each in views for s in each["senders"] if s["state"] == "blocked"]
    if blocked != [DISLIKED]:
        yield f"blocked are {blocked}"
    copies = Counter((letter.campaign, letter.step, letter.recipient) for letter in letters)
    twice = [f"step {step} to {person}" for (_, step, person), times in copies.items() if times > 1]
    if twice:
        yield f"{len(twice)} letters arrived twice: {', '.join(twice[:3])}"
    days = Counter((letter.recipient, letter.at.date()) for letter in letters)
    if max(days.values(), default=0) > 1:
        yield "somebody got two letters on a day"
    late = [letter for letter in letters if not _in_the_window(letter.at)]
    if late:
        yield f"{len(late)} letters left outside their window, one at {max(late).at:%H:%M}"
    yield from _misbooked(views, letters)
    yield from _exceeded(letters, terms)
    for share in shares(views, letters, terms):
        if abs(share.part - share.wanted) > _TOLERANCE:
            yield f"{share.name}'s share is {share.part:.1%}, and was to be {share.wanted:.1%}"


def _in_the_window(at: datetime) -> bool:
    return at.time() >= OPENS and (at - _ON_THE_WIRE).time() < CLOSES


def _misbooked(views: Sequence[View], letters: Sequence[Letter]) -> Iterator[str]:
    """A letter in doubt may or may not have been taken; every other is in the books as it is in the log."""
    taken = Counter(letter.campaign for letter in letters)
    for view in views:
        books, letters_taken = view["counts"], taken[view["id"]]
        unknown = books["in_doubt"] + books["sending"]
        if not books["sent"] <= letters_taken <= books["sent"] + unknown:
            yield f"{view['tenant']} has sent {books['sent']} letters, and the provider took {letters_taken}"


def _exceeded(letters: Sequence[Letter], terms: Terms) -> Iterator[str]:
    """In any 24 hours, wherever they begin."""
    limits = {address: daily for client in terms.clients for address, daily in client.senders.items()}
    limits |= {client.name: client.daily for client in terms.clients if client.daily}
    limits[ACCOUNT] = terms.account_limit
    for name, daily in limits.items():
        most = _most_in_a_day([each.at for each in letters if name in (each.sender, each.tenant, ACCOUNT)])
        if most > daily:
            yield f"{name} sent {most} letters in a day, and may send {daily}"


def _most_in_a_day(times: Iterable[datetime]) -> int:
    most, window = 0, deque[datetime]()
    for at in sorted(times):
        window.append(at)
        while window[0] <= at - DAY:
            window.popleft()
        most = max(most, len(window))
    return most


def shares(views: Sequence[View], letters: Sequence[Letter], terms: Terms = DEMO) -> list[Share]:
    """Of senders in what their client sent, and of clients in the first day that fills the account.

    Planned letters of a paused campaign keep their places in it. Where no day fills the rest (a machine is
    slow), the clients' shares were not tested.
    """
    by_sender = Counter(letter.sender for letter in letters if letter.tenant == "alpha")
    found = [Share("anna", by_sender["anna@alpha.example.com"], by_sender.total(), 2 / 3)]
    kept = sum(view["counts"]["scheduled"] for view in views if view["status"] == "paused")
    full_day = Counter(letter.tenant for letter in _first_full_day(letters, terms.account_limit - kept))
    if full_day:
        found.append(Share("alpha", full_day["alpha"], full_day["alpha"] + full_day["gamma"], 2 / 3))
    return [share for share in found if share.total]


def _first_full_day(letters: Sequence[Letter], places: int) -> Sequence[Letter]:
    ordered, begin = sorted(letters), 0
    for end, letter in enumerate(ordered):
        while ordered[begin].at <= letter.at - DAY:
            begin += 1
        if end - begin >= places * _NEARLY_ALL:
            return ordered[begin : end + 1]
    return []
