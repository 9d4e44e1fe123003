"""A door that the engine has never heard of: each letter has its own words, thread and time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from sendonce.adapters.metrics import Metrics
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob, Thread, ended_topic
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.letters import Letter
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.flows.engine.tick import tick
from sendonce.ports.engine import EngineStore
from sendonce.ports.store import Store
from sendonce.settings import load_settings
from sendonce.wiring.worker import make_worker
from tests.conformance.backdoor import put_off

KIND = "invitation"


class Invitations:
    """The whole door: it opens a dispatch for a party, and learns from the outbox that all is said."""

    def __init__(self, store: EngineStore) -> None:
        self._store = store

    def invite(self, party: str, guests: dict[str, timedelta]) -> str:
        """Each guest is written to after a while, in answer to what was said before."""
        dispatch = self._store.dispatches.open(DEFAULT_TENANT, NewDispatch(KIND, party))
        jobs = [self._letter_to(guest, party, wait) for guest, wait in guests.items()]
        self._store.dispatches.plan(dispatch.id, jobs)
        self._store.dispatches.run(dispatch.id)
        return dispatch.id

    def _letter_to(self, guest: str, party: str, wait: timedelta) -> NewJob:
        words = f"{guest} is invited to {party}"
        letter = self._store.letters.put(DEFAULT_TENANT, Letter(words, "", f"<p>{words}</p>", words))
        return NewJob(
            parse_address(guest),
            letter_id=letter,
            thread=Thread(f"<{party}@party.example>", ("<first@party.example>",)),
            due_at=self._store.ledger.now() + wait,
        )

    def told(self) -> list[tuple[str, str]]:
        """The parties whose invitations are out, and how that went; each is told of once."""
        entries = self._store.outbox.due(ended_topic(KIND), 10)
        for entry_id, _ in entries:
            self._store.outbox.done(entry_id)
        return [(body["owner_id"], body["result"]) for _, body in entries]


def work(store: Store, folder: Path) -> None:
    """A worker as it is wired for everybody, until nothing is due."""
    folders = {"TRANSPORT": "maildir", "MAILDIR_PATH": f"{folder}/mail", "STATE_DIR": f"{folder}/state"}
    message = {"MAIL_FOOTER_ADDRESS": "1 Example Street", "APP_BASE_URL": "http://127.0.0.1:1"}
    settings = load_settings({**folders, **message}, dotenv=None)
    asyncio.run(tick(make_worker(settings, store, Metrics()), 30))


def mail(folder: Path) -> dict[str, Message]:
    letters = [message_from_bytes(file.read_bytes()) for file in (folder / "mail" / "new").iterdir()]
    return {str(letter["To"]): letter for letter in letters}


def test_a_door_needs_nothing_of_the_engine(store: Store, tmp_path: Path) -> None:
    door = Invitations(store)
    hour = timedelta(hours=1)
    door.invite(
        "ball", {"ann@example.com": timedelta(), "bob@example.com": timedelta(), "cid@example.com": hour}
    )
    work(store, tmp_path)
    letters = mail(tmp_path)
    assert set(letters) == {"ann@example.com", "bob@example.com"}
    assert {name: letter["Subject"] for name, letter in letters.items()} == {
        name: f"{name} is invited to ball" for name in letters
    }
    assert {letter["In-Reply-To"] for letter in letters.values()} == {"<ball@party.example>"}
    assert letters["ann@example.com"]["References"].split() == [
        "<first@party.example>",
        "<ball@party.example>",
    ]
    assert door.told() == []
    (waiting,) = store.jobs.list(states=[JobState.SCHEDULED])
    put_off(store, waiting.id, timedelta())  # its hour has come
    work(store, tmp_path)
    assert set(mail(tmp_path)) == {"ann@example.com", "bob@example.com", "cid@example.com"}
    assert door.told() == [("ball", "sent")]
    assert door.told() == []
