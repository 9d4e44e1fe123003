"""The judge: what the sandbox accepted, held against what was planned and what the ledger says.

Only the sandbox's own log says what was accepted. The ledger is believed in nothing else than what it
claims about itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.crash.world import World

STATES = ("scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt")
REFUSED = {"failed", "skipped", "dead"}


@dataclass(frozen=True)
class Findings:
    """What a run came to; every list but ``in_doubt`` must be empty, and that one too in the end."""

    duplicates: list[str]
    lost: list[str]
    in_doubt: list[str]
    misbooked: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.duplicates or self.lost or self.in_doubt or self.misbooked)


def judge(
    planned: Iterable[str],
    accepted: Sequence[str],
    states: Sequence[tuple[str, str]],
    books: Mapping[str, int],
) -> Findings:
    """``accepted`` has the recipient of every letter that was taken, ``states`` each job's recipient and
    state, ``books`` the counts that the program itself gives out."""
    copies = Counter(accepted)
    state_of = dict(states)
    people = set(planned)
    lost = [
        person
        for person in sorted(people)
        if person not in copies and state_of.get(person) not in REFUSED | {"in_doubt"}
    ]
    misbooked = [
        f"{person} was accepted but is {state_of.get(person)}"
        for person in sorted(copies)
        if state_of.get(person) not in ("sent", "in_doubt")
    ]
    return Findings(
        duplicates=sorted(person for person, count in copies.items() if count > 1),
        lost=lost,
        in_doubt=sorted(person for person, state in states if state == "in_doubt"),
        misbooked=misbooked + _unbalanced(states, len(people), books),
    )


def _unbalanced(states: Sequence[tuple[str, str]], planned: int, books: Mapping[str, int]) -> list[str]:
    counted = Counter(state for _, state in states)
    wrong = [
        f"the books have {books.get(state, 0)} {state}, the ledger {count}"
        for state, count in counted.items()
        if books.get(state, 0) != count
    ]
    summed = sum(books.get(state, 0) for state in STATES)
    if summed != books.get("planned"):
        wrong.append(f"the books do not balance: {dict(books)}")
    if len(states) != planned or books.get("planned") != planned:
        wrong.append(
            f"{planned} were planned: the ledger has {len(states)}, the books {books.get('planned')}"
        )
    return wrong


def judge_world(world: World) -> Findings:
    status = world.ask("mailout", "status", world.mailout)
    return judge(
        planned=world.recipients,
        accepted=[recipient for row in world.sandbox.acceptances() for recipient in row["to"]],
        states=[(job.recipient, job.state) for job in world.eye.jobs()],
        books=status["counts"],
    )
