"""The judge of the campaign demonstration finds each broken promise, and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sendonce.entrypoints.cli.campaigns.demo_judge import (
    DEMO,
    DISLIKED,
    Letter,
    broken_promises,
)

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ANNA, OLEG, VERA = "anna@alpha.example.com", "oleg@post.alpha.example.com", "vera@gamma.example.com"
STATUSES = {"alpha": "finished", "beta": "paused", "gamma": "finished"}


def letter(number: int, sender: str = ANNA, at: datetime = NOON, step: int = 1) -> Letter:
    tenant = "alpha" if "alpha" in sender else "gamma"
    return Letter(at, sender, f"p{number}@{tenant}-{number}.example.org", tenant, step)


class Outcome:
    """A run in which all promises are kept, until a test breaks one."""

    def __init__(self) -> None:
        self.statuses = dict(STATUSES)
        self.blocked = [DISLIKED]
        self.letters = [letter(n) for n in range(20)] + [letter(20 + n, OLEG) for n in range(10)]
        self.more_in_books = 0
        self.waiting_in_beta = 0

    def judge(self) -> list[str]:
        return list(broken_promises([self._view(tenant) for tenant in self.statuses], self.letters))

    def _view(self, tenant: str) -> dict[str, Any]:
        sent = sum(each.campaign == tenant for each in self.letters) + self.more_in_books
        senders = [{"address": each, "state": "blocked"} for each in self.blocked if tenant == "gamma"]
        waiting = self.waiting_in_beta if tenant == "beta" else 0
        counts = {"scheduled": waiting, "sent": sent, "in_doubt": 0, "sending": 0}
        return {
            "id": tenant,
            "tenant": tenant,
            "status": self.statuses[tenant],
            "senders": senders,
            "counts": counts,
        }


def test_a_run_as_promised_is_not_found_fault_with() -> None:
    assert Outcome().judge() == []


def go_on(run: Outcome) -> None:
    run.statuses["beta"] = "finished"


def block_nobody(run: Outcome) -> None:
    run.blocked = []


def write_twice(run: Outcome) -> None:
    """From another sender, two days later: it is the same step to the same person."""
    run.letters.append(run.letters[0]._replace(sender=OLEG, at=NOON + timedelta(days=2)))


def write_twice_a_day(run: Outcome) -> None:
    run.letters.append(run.letters[0]._replace(step=2, at=NOON + timedelta(hours=1)))


def write_at_night(run: Outcome) -> None:
    run.letters[0] = letter(0, at=NOON.replace(hour=21))


def write_before_morning(run: Outcome) -> None:
    run.letters[0] = letter(0, at=NOON.replace(hour=7, minute=59))


def lose_one(run: Outcome) -> None:
    run.more_in_books = 1


def exceed_a_sender(run: Outcome) -> None:
    """The letters of a day, wherever the day begins."""
    run.letters += [letter(100 + n, VERA, NOON + timedelta(hours=n % 5)) for n in range(150)]
    run.letters += [letter(300 + n, VERA, NOON + timedelta(hours=20 + n % 2)) for n in range(151)]


def exceed_the_account(run: Outcome) -> None:
    run.letters = [letter(n, (ANNA, ANNA, OLEG)[n % 3]) for n in range(DEMO.account_limit + 1)]


def share_unfairly(run: Outcome) -> None:
    run.letters = [letter(n, (ANNA, OLEG)[n % 2]) for n in range(40)]


def favour_a_client(run: Outcome) -> None:
    """The account is full: a hundred of its letters are planned for the paused campaign."""
    run.waiting_in_beta = 100
    run.letters = [
        letter(n, (ANNA, ANNA, OLEG, VERA, VERA)[n % 5], NOON + timedelta(seconds=n))
        for n in range(DEMO.account_limit - 100)
    ]


@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        (go_on, "the campaigns are"),
        (block_nobody, "blocked are []"),
        (write_twice, "1 letters arrived twice: step 1 to p0@alpha-0.example.org"),
        (write_twice_a_day, "somebody got two letters on a day"),
        (write_at_night, "1 letters left outside their window, one at 21:00"),
        (write_before_morning, "1 letters left outside their window, one at 07:59"),
        (lose_one, "alpha has sent 31 letters, and the provider took 30"),
        (exceed_a_sender, "vera@gamma.example.com sent 301 letters in a day, and may send 300"),
        (exceed_the_account, "ses/us-east-1 sent 451 letters in a day, and may send 450"),
        (share_unfairly, "anna's share is 50.0%, and was to be 66.7%"),
        (favour_a_client, "alpha's share is 60.1%, and was to be 66.7%"),
    ],
)
def test_what_is_broken_is_found(breaks: Callable[[Outcome], None], told: str) -> None:
    run = Outcome()
    breaks(run)
    assert any(found.startswith(told) for found in run.judge()), run.judge()


def test_clients_that_do_not_fill_the_account_may_send_what_they_like() -> None:
    run = Outcome()
    favour_a_client(run)
    run.waiting_in_beta = 0
    assert run.judge() == []
