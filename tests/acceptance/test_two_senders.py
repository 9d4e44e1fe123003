"""Two senders on two SMTP servers in one worker, one of which refuses its login.

Real processes: the letters of the one all arrive, those of the other wait unharmed, and everybody sees why.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.letters import Letter
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from tests.acceptance.smtp_hosts import smtp_host
from tests.acceptance.test_held_sender import Desk
from tests.adapters.smtp_server import SmtpServer

LETTERS = 40
REFUSED = b"535 5.7.8 Error: authentication failed"
GOOD, BAD = "good@example.com", "bad@example.net"
SECRETS = {"SENDER_GOOD": "right", "SENDER_BAD": "wrong"}


@pytest.fixture(params=("sqlite_url", "postgres_url"))
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    desk = Desk(tmp_path, request.getfixturevalue(request.param))
    desk.environment |= {"TRANSPORT": "maildir", "MAILDIR_PATH": str(tmp_path / "own"), **SECRETS}
    return desk


def add(desk: Desk, address: str, host: SmtpServer, secret: str) -> str:
    login = (f"--username={address}", f"--secret-from={secret}")
    way = ("--host=127.0.0.1", f"--port={host.port}", "--security=plain", *login)
    return str(desk.json("sender", "add", address, *way)["id"])


def dispatch(desk: Desk, sender_id: str, count: int = LETTERS) -> str:
    """Letters of that sender, ready to be claimed, as any door plans them."""
    with closing(open_store(desk.environment["DATABASE_URL"])) as store:
        letter_id = store.letters.put(DEFAULT_TENANT, Letter("News", "", "<p>Hello!</p>", "Hello!"))
        new = NewDispatch("batch", "somebody's", letter_id, sender_id)
        opened = store.dispatches.open(DEFAULT_TENANT, new)
        people = [NewJob(parse_address(f"user{n:03}@example.org")) for n in range(count)]
        store.dispatches.plan(opened.id, people)
        store.dispatches.run(opened.id)
        return opened.id


def books(desk: Desk, dispatch_id: str) -> dict[str, int]:
    with closing(open_store(desk.environment["DATABASE_URL"])) as store:
        found = store.jobs.books(dispatch_id)
        return {"sent": found.sent, "scheduled": found.scheduled, "planned": found.planned}


def states(desk: Desk) -> dict[str, dict[str, Any]]:
    return {each["address"]: each for each in desk.json("sender", "list")}


def told_by_doctor(desk: Desk) -> list[str]:
    return [check["what"] for check in desk.json("doctor")["checks"] if check["verdict"] == "warning"]


def test_a_refused_login_holds_its_own_letters_and_nobody_elses(desk: Desk) -> None:
    """The first's letters wait and are named; after the login works they go out, each once."""
    with smtp_host() as well, smtp_host({"AUTH": [REFUSED]}) as ill:
        good = dispatch(desk, add(desk, GOOD, well, "SENDER_GOOD"))
        bad_id = add(desk, BAD, ill, "SENDER_BAD")
        bad = dispatch(desk, bad_id)
        own = dispatch(desk, "")
        log = desk.run("worker", "--until-idle").stderr
        assert len({to for to, _ in well.letters}) == len(well.letters) == LETTERS
        assert all(b"From: good@example.com" in letter for _, letter in well.letters)
        assert len(list((desk.folder / "own" / "new").iterdir())) == LETTERS
        assert ill.letters == []
        assert books(desk, good)["sent"] == books(desk, own)["sent"] == LETTERS
        assert books(desk, bad) == {"sent": 0, "scheduled": LETTERS, "planned": LETTERS}
        assert "the sender is held" in log
        shown = states(desk)
        assert (shown[GOOD]["state"], shown[BAD]["state"]) == ("ok", "held")
        assert "authentication failed" in shown[BAD]["reason"]
        assert any(BAD in what and "authentication failed" in what for what in told_by_doctor(desk))
    with smtp_host() as mended:
        desk.run("sender", "remove", BAD)
        assert add(desk, BAD, mended, "SENDER_BAD") == bad_id
        desk.run("worker", "--until-idle")
        assert len({to for to, _ in mended.letters}) == len(mended.letters) == LETTERS
        assert books(desk, bad)["sent"] == LETTERS


def test_a_sender_whose_secret_is_not_set_is_held_with_the_variables_name(desk: Desk) -> None:
    """The others send on; once it is set and the sender released, its letters leave."""
    with smtp_host() as host:
        waiting = dispatch(desk, add(desk, GOOD, host, "SENDER_GOOD"))
        own = dispatch(desk, "")
        desk.run("worker", "--until-idle", SENDER_GOOD="")
        assert books(desk, own)["sent"] == LETTERS
        assert books(desk, waiting)["scheduled"] == LETTERS
        held = states(desk)[GOOD]
        assert (held["state"], held["code"]) == ("held", "settings")
        assert "SENDER_GOOD is not set" in held["reason"]
        told = desk.run("doctor", SENDER_GOOD="").stdout
        assert told.count("SENDER_GOOD is not set") == 1
        desk.run("sender", "release", GOOD)
        desk.run("worker", "--until-idle")
        assert len(host.letters) == LETTERS


def test_letters_of_a_removed_sender_wait_and_are_named(desk: Desk) -> None:
    """Nothing is lost: added again, it sends them."""
    with smtp_host() as host:
        sender_id = add(desk, GOOD, host, "SENDER_GOOD")
        waiting = dispatch(desk, sender_id)
        desk.run("sender", "remove", GOOD)
        desk.run("worker", "--until-idle")
        assert books(desk, waiting)["scheduled"] == LETTERS
        assert states(desk)[GOOD]["state"] == "removed"
        assert any(GOOD in what and "removed" in what for what in told_by_doctor(desk))
        assert add(desk, GOOD, host, "SENDER_GOOD") == sender_id
        desk.run("worker", "--until-idle")
        assert len(host.letters) == books(desk, waiting)["sent"] == LETTERS


def test_a_mailout_leaves_from_the_sender_that_it_was_made_for(desk: Desk) -> None:
    """Its status says why nothing moves while that sender is held, or removed."""
    letter = desk.folder / "letter.md"
    letter.write_text("---\nsubject: News\n---\nHello!\n")
    desk.run("subscribers", "add", "ann@example.org", "--consent=a test")
    with smtp_host() as host:
        add(desk, GOOD, host, "SENDER_GOOD")
        mailout_id = desk.json("mailout", "create", str(letter), f"--sender={GOOD}")["id"]
        shown = desk.json("mailout", "preview", mailout_id)["file"]
        assert GOOD in Path(shown).read_text()
        desk.run("sender", "hold", GOOD, "--reason=the invoice is open")
        assert "the invoice is open" in desk.run("mailout", "send", mailout_id, "--yes", code=3).stderr
        held = desk.json("mailout", "status", mailout_id)["standstill"]
        assert (held["cause"], held["next_try_at"]) == ("held", None)
        desk.run("sender", "release", GOOD)
        desk.run("sender", "remove", GOOD)
        desk.run("worker", "--until-idle")
        assert GOOD in desk.json("mailout", "status", mailout_id)["standstill"]["detail"]
        add(desk, GOOD, host, "SENDER_GOOD")
        desk.run("worker", "--until-idle")
        assert [to for to, _ in host.letters] == ["ann@example.org"]
        shown = desk.json("mailout", "status", mailout_id)
        assert shown["status"] == "sent", shown
        unknown = desk.run("mailout", "create", str(letter), "--sender=nobody@example.com", code=1)
        assert "no sender nobody@example.com" in unknown.stderr


@pytest.mark.parametrize("failpoint", ["claimed:2", "wire-before:9", "reply-after:9"])
def test_a_killed_worker_leaves_no_doubt_that_its_journals_can_settle(desk: Desk, failpoint: str) -> None:
    """Each sender at work has a journal of its own, and the next worker buries them all."""
    with smtp_host() as one, smtp_host() as two:
        first = dispatch(desk, add(desk, GOOD, one, "SENDER_GOOD"))
        second = dispatch(desk, add(desk, BAD, two, "SENDER_BAD"))
        desk.run("worker", "--until-idle", code=-9, FAILPOINT=failpoint, CONCURRENCY="1")
        desk.run("worker", "--until-idle")
        for dispatch_id, host in ((first, one), (second, two)):
            with closing(open_store(desk.environment["DATABASE_URL"])) as store:
                found = store.jobs.books(dispatch_id)
            assert found.sent + found.in_doubt == LETTERS
            assert found.in_doubt <= 1, "one letter of the other sender may be on the wire"
            assert len({to for to, _ in host.letters}) == len(host.letters) >= found.sent
