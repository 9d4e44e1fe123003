"""A letter that is gone holds its own jobs: they are neither failed nor lost, and the doctor names them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sendonce.adapters.doctor.letters_gone import LettersGoneProbe
from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import Check, Verdict
from sendonce.domain.engine.dispatches import LETTER_GONE, NewDispatch, NewJob
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.ports.store import Store
from tests.conformance.stage import LETTER, NOBODY
from tests.conformance.test_made_up_door import mail, work


def doctor(store: Store) -> Check:
    async def look() -> Check:
        (check,) = await LettersGoneProbe(StoreDoor(lambda: store)).examine()
        return check

    return asyncio.run(look())


def test_jobs_without_a_letter_wait_and_are_named(store: Store, tmp_path: Path) -> None:
    """They use up no try, and the others of their dispatch leave."""
    guests = [parse_address(f"{name}@example.com") for name in ("ann", "bob", "cid")]
    letter = store.letters.put(DEFAULT_TENANT, LETTER)
    dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("invitation", "ball"))
    jobs = [NewJob(guests[0], letter_id=letter), NewJob(guests[1], letter_id=NOBODY), NewJob(guests[2])]
    store.dispatches.plan(dispatch.id, jobs)
    store.dispatches.run(dispatch.id)
    assert doctor(store).verdict == Verdict.OK
    work(store, tmp_path)
    assert set(mail(tmp_path)) == {"ann@example.com"}
    held = store.jobs.list(states=[JobState.SCHEDULED], code=LETTER_GONE)
    assert {job.recipient: (job.tries, job.reason) for job in held} == {
        "bob@example.com": (0, f"The letter {NOBODY} is gone."),
        "cid@example.com": (0, "The letter of the dispatch is gone."),
    }
    check = doctor(store)
    assert check.verdict == Verdict.STOP
    assert check.what.startswith("2 jobs wait for a letter that is gone")
    assert dispatch.id in check.what
