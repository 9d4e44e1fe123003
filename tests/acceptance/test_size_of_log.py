"""How much log 10,000 letters leave: docs/how-to/watch-it.md states it."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from tests.acceptance.test_held_sender import Desk
from tests.postgres import quick_folder

LETTERS = 10_000
MOST_BYTES = 64_000


def test_ten_thousand_letters_leave_little_log() -> None:
    """Into a maildir, as fast as it takes them: a line for what happens, none for a letter."""
    folder = quick_folder("sendonce-log-")
    try:
        send(folder)
        lines = (folder / "log").read_text(encoding="utf-8").splitlines()
    finally:
        shutil.rmtree(folder)
    batches = [json.loads(line) for line in lines if json.loads(line)["event"] == "batch"]
    assert sum(batch["settled"]["accepted"] for batch in batches) == LETTERS
    assert sum(map(len, lines)) < MOST_BYTES


def send(folder: Path) -> None:
    desk = Desk(folder, f"sqlite:///{folder}/sendonce.db")
    desk.environment |= {
        "TRANSPORT": "maildir",
        "MAILDIR_PATH": str(folder / "letters"),
        "RATE_LIMIT_PER_SEC": "0",
        "LOG_FILE": str(folder / "log"),
    }
    with closing(open_store(desk.environment["DATABASE_URL"])) as store:
        people = [NewSubscriber(parse_address(f"user{number}@example.org")) for number in range(LETTERS)]
        store.subscribers.upsert(DEFAULT_TENANT, people)
    (folder / "letter.md").write_text("---\nsubject: News\n---\n\nHello.\n")
    mailout = desk.json("mailout", "create", "letter.md")["id"]
    desk.run("mailout", "send", mailout, "--yes")
