"""'jobs retry' by a choice: which letters it takes, and what it says that it did."""

from __future__ import annotations

from contextlib import closing

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.jobs import ClaimRequest, Settlement
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome, Refused
from tests.acceptance.test_threats_people import LETTER, Desk, desk
from tests.conformance.stage import worker_record

__all__ = ["desk"]

WORKER = "01900000-0000-7000-8000-000000000001"
TOKEN = "01900000-0000-7000-8000-000000000002"
ENDS: list[Outcome] = [
    Accepted("message-1"),
    Refused("550", "no such user"),
    Refused("550", "no such user"),
    Refused("552", "mailbox full"),
    Deferred("421", "not now"),
]


def ended(desk: Desk) -> str:
    """A mailout with one letter sent, two failed with 550, one failed with 552 and one dead."""
    desk.import_rows([[f"person{n}@example.com", "", ""] for n in range(len(ENDS))])
    (desk.folder / "letter.md").write_text(LETTER, encoding="utf-8")
    mailout: str = desk.json("mailout", "create", "letter.md")["id"]
    desk.run("mailout", "send", mailout, "--detach")
    with closing(open_store(desk.database_url)) as store:
        store.mailouts.plan_chunk(mailout, "the tests", 100)
        store.workers.register(worker_record(WORKER))
        jobs = store.ledger.turn((), ClaimRequest(WORKER, TOKEN, len(ENDS))).claimed
        settlements = [
            Settlement(job.id, job.attempt, end, exhausted=isinstance(end, Deferred))
            for job, end in zip(jobs, ENDS, strict=True)
        ]
        store.ledger.turn(settlements, None)
    return mailout


def test_dead_letters_are_shown_and_retried_by_cause(desk: Desk) -> None:
    """Failed ones are no dead letters: they are retried by cause only where --failed says so."""
    mailout = ended(desk)
    (group,) = desk.json("jobs", "dead")
    assert (group["cause"], group["count"], group["codes"]) == ("unknown", 1, {"421": 1})
    assert group["sample"]["reason"] == "not now"
    shown = desk.run("jobs", "dead", "--mailout", mailout)
    assert "1 dead letter" in shown
    assert "unknown" in shown
    said = desk.run("jobs", "retry", "--cause", "unknown")
    assert said == "Scheduled 1 letter again (1 dead with 421).\n"
    said = desk.run("jobs", "retry", "--failed", "--cause", "full")
    assert said == "Scheduled 1 letter again (1 failed with 552).\n"
    assert desk.json("jobs", "dead") == []


@pytest.mark.parametrize(
    ("chosen", "said", "moved"),
    [
        ([], "Scheduled 4 letters again (1 dead with 421, 2 failed with 550, 1 failed with 552).", 4),
        (["--failed"], "Scheduled 3 letters again (2 failed with 550, 1 failed with 552).", 3),
        (["--code", "550"], "Scheduled 2 letters again (2 failed with 550).", 2),
        (["--failed", "--code", "552"], "Scheduled 1 letter again (1 failed with 552).", 1),
    ],
    ids=["all", "failed", "code", "failed with code"],
)
def test_a_choice_is_scheduled_again_and_said(desk: Desk, chosen: list[str], said: str, moved: int) -> None:
    """A mailout alone is enough; options narrow the choice. What was sent stays sent."""
    mailout = ended(desk)
    assert desk.run("jobs", "retry", "--mailout", mailout, *chosen) == f"{said}\n"
    counts = desk.json("mailout", "status", mailout)["counts"]
    assert (counts["scheduled"], counts["sent"], counts["failed"] + counts["dead"]) == (moved, 1, 4 - moved)
