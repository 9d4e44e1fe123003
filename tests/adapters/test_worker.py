"""Worker processes as they are started by users, against the sandbox: the rules that need a real process."""

from __future__ import annotations

import csv
import fcntl
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.sql.store import open_store
from sendonce.adapters.wire_journal import StateDirectory
from sendonce.flows.engine.bury import bury_the_dead
from tests.crash.failing_sync import FailingDisk
from tests.crash.judge import judge_world
from tests.crash.world import CONNECTIONS, PROGRAM, Process, World, free_port, opened, until

STOPPING = [sys.executable, "-m", "tests.crash.stopping"]
JUMPING = [sys.executable, "-m", "tests.crash.jumping_clock"]
NAUGHTY_STRINGS = Path(__file__).parents[2].parent / "shared" / "corpora" / "blns.json"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    slow = '--faults={"slow": [5, 10]}'
    with opened(World(tmp_path, f"sqlite:///{tmp_path}/disk/sendonce.db", [slow])) as world:
        yield world


def accepted(world: World) -> list[str]:
    return [row["to"][0] for row in world.sandbox.acceptances()]


def stopped(worker: Process) -> bool:
    return Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def bury(world: World) -> int:
    """Bury by hand what is dead; how many workers were."""
    store = open_store(world.database_url)
    try:
        state = StateDirectory(Path(world.environment["STATE_DIR"]), store.ledger.identity().ledger_id)
        return len(bury_the_dead(store, state, retry_after=0.0))
    finally:
        store.close()


# -- leaving and dying -----------------------------------------------------------------------------


def test_sigterm_drains_and_leaves_nothing_behind(world: World) -> None:
    world.plan(300)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    began = time.monotonic()
    assert worker.end() == 0, worker.log.read_text()
    assert time.monotonic() - began < 30
    states = world.states()
    assert set(states) <= {"sent", "scheduled"}
    assert states.get("sent", 0) == len(accepted(world))
    assert [row.end for row in world.eye.rows('SELECT "end" FROM workers')] == ["left"]
    assert not list((world.disk / "state").glob("*/workers/*"))


def _own_the_terminal() -> None:
    """These tests may run under nohup, whose children ignore SIGHUP."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_closed_terminal_drains_like_sigterm(world: World) -> None:
    """The kernel sends SIGHUP, and nothing can be written to the terminal any more."""
    world.plan(300)
    master, terminal = pty.openpty()
    sending = subprocess.Popen(
        [*PROGRAM, "worker"],
        env=world.environment,
        cwd=world.directory,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_own_the_terminal,
    )
    os.close(terminal)
    try:
        until(lambda: world.eye.sending_of(sending.pid), 20, "letters are sending")
    finally:
        os.close(master)
        sending.wait(20)
    assert set(world.states()) <= {"sent", "scheduled"}
    assert [row.end for row in world.eye.rows('SELECT "end" FROM workers')] == ["left"]


def test_under_nohup_a_closed_terminal_changes_nothing(world: World) -> None:
    world.plan(60)
    worker = world.worker(program=["nohup", *PROGRAM])
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    worker.signal(signal.SIGHUP)
    until(lambda: world.eye.count("sent") == 60, 30, "all is sent all the same")
    assert worker.end() == 0


def test_who_leaves_when_nothing_is_due_leaves_no_mailout_open_and_no_report_unwritten(world: World) -> None:
    world.plan(60)
    world.run("worker", "--until-idle")
    assert [row.result for row in world.eye.rows("SELECT result FROM dispatches")] == ["sent"]
    (report,) = (world.disk / "state" / "reports").glob("*.csv")
    assert len(report.read_text(encoding="utf-8-sig").splitlines()) == 1 + 60


def test_a_report_that_cannot_be_written_keeps_nobody_from_sending(world: World) -> None:
    world.plan(60)
    (world.disk / "state" / "reports" / f"{world.mailout}.csv").mkdir(parents=True)
    world.run("worker", "--until-idle")
    assert world.states() == {"sent": 60}


def test_a_provider_that_hangs_leaves_its_own_calls_in_doubt_and_no_others(world: World) -> None:
    world.plan(100)
    world.sandbox.faults(hang_after=1.0, hang_seconds=60)
    worker = world.worker(SES_TIMEOUT_SECONDS="60")
    until(lambda: len(accepted(world)) == CONNECTIONS, 20, "all connections hang")
    began = time.monotonic()
    assert worker.end() == 0, worker.log.read_text()
    assert time.monotonic() - began < 30
    assert world.states() == {"in_doubt": CONNECTIONS, "scheduled": 100 - CONNECTIONS}


@pytest.mark.parametrize(
    ("failpoint", "times", "fewest", "most"),
    [
        ("wire-before", 7, 0, 0),
        ("wire-after", 7, 1, 1),
        ("body-after", 7, 1, 1),
        ("reply-before", 7, 1, 1),
        ("reply-after", 7, 0, 0),
        # The ledger has a thread of its own: meanwhile the connection may have a letter on the wire.
        ("claim-before-commit", 3, 0, 1),
        ("claimed", 3, 0, 1),
        ("settle-before", 3, 0, 1),
        ("settle-after", 3, 0, 1),
    ],
)
def test_the_journal_of_a_killed_worker_settles_all_but_what_was_on_the_wire(
    world: World, failpoint: str, times: int, fewest: int, most: int
) -> None:
    """Never wired: scheduled again at once. Answered: settled. In between: in doubt, one a connection."""
    world.plan(30)
    worker = world.worker(FAILPOINT=f"{failpoint}:{times}", CONCURRENCY="1")
    assert worker.wait() == -signal.SIGKILL
    assert bury(world) == 1
    states = world.states()
    in_doubt = states.get("in_doubt", 0)
    assert fewest <= in_doubt <= most
    assert set(states) <= {"sent", "scheduled", "in_doubt"}
    assert 0 <= len(accepted(world)) - states.get("sent", 0) <= in_doubt


def test_a_journal_that_went_back_lets_nothing_be_sent_again(world: World) -> None:
    """A backup of the state directory was put back over it. It does not know of the letters sent since."""
    world.plan(400)
    worker = world.worker("--name", "mailer", CONCURRENCY="1")
    journal = until_found(world, "workers/mailer")
    until(lambda: world.eye.count("sent") > 10, 20, "letters leave")
    backup = journal.read_bytes()
    until(lambda: world.eye.count("sent") > 60, 20, "more letters leave")
    worker.kill()
    journal.write_bytes(backup)
    left = world.eye.count("sending")
    assert bury(world) == 1
    assert world.eye.count("in_doubt") == left
    assert len(accepted(world)) == len(set(accepted(world)))


def until_found(world: World, name: str) -> Path:
    """A file in the state directory of the ledger."""
    root = Path(world.environment["STATE_DIR"])
    until(lambda: any(root.glob(f"*/{name}")), 20, f"{name} is there")
    return next(root.glob(f"*/{name}"))


def test_a_second_worker_of_the_same_name_is_refused(world: World) -> None:
    world.plan(400)
    first = world.worker("--name", "mailer")
    until(lambda: world.registered(first), 20, "the first is there")
    complaint = world.run("worker", "--name", "mailer", expect=3)
    assert "There is a worker named 'mailer' already" in complaint
    first.kill()
    again = world.worker("--name", "mailer")
    until(lambda: world.registered(again), 20, "its successor may have the name")
    assert again.end() == 0


# -- what is honoured ------------------------------------------------------------------------------


# Of these two the worker is stopped in mid-sentence: on SQLite it might hold the only lock there is.


def test_who_unsubscribes_while_the_worker_is_stopped_gets_nothing(tmp_path: Path, postgres_url: str) -> None:
    """The one-second promise, seen from outside: the claim is older than the unsubscription."""
    with opened(World(tmp_path, postgres_url)) as world:
        world.plan(1)
        worker = world.worker(program=STOPPING, FAILPOINT="wire-before:1")
        until(lambda: stopped(worker), 20, "the worker has stopped before the wire")
        assert world.eye.count("sending") == 1
        world.run("suppression", "add", "person000000@example.org")
        old = "SELECT count(*) FROM message_jobs WHERE claimed_at < now() - interval '1.2 seconds'"
        until(lambda: world.eye.number(old), 10, "the claim is old")
        worker.signal(signal.SIGCONT)
        until(lambda: world.eye.count("skipped") == 1, 20, "the letter is skipped")
        assert accepted(world) == []


def test_a_zombies_late_request_is_refused_and_its_letter_is_sent_once(
    tmp_path: Path, postgres_url: str
) -> None:
    """The signature fence: stopped after the last check, right before the socket."""
    settings = {"SES_SIGNATURE_WINDOW_SECONDS": "3", "IN_DOUBT_QUIET_SECONDS": "60", "CONCURRENCY": "1"}
    with opened(World(tmp_path, postgres_url, ["--signature-window=2"], **settings)) as world:
        world.plan(1)
        zombie = world.worker(program=STOPPING, FAILPOINT="wire-after:1")
        until(lambda: stopped(zombie), 20, "the worker has stopped before the socket")
        other = world.worker()
        until(lambda: world.eye.count("in_doubt") == 1, 20, "the signature's time is over")
        (proof,) = world.eye.rows("SELECT death_proof FROM message_jobs")
        assert "the signature expired at the provider" in proof[0]
        assert accepted(world) == []
        zombie.signal(signal.SIGCONT)
        until(lambda: world.eye.count("sent") == 1, 20, "the refused letter is sent again")
        assert accepted(world) == ["person000000@example.org"]
        assert (zombie.end(), other.end()) == (0, 0)


def test_without_a_disk_a_dead_workers_letters_die_by_their_signatures(
    tmp_path: Path, postgres_url: str
) -> None:
    """Killed on the wire with a group in its hands: all of it is in doubt when its time is over, none before,
    the worker is over by itself, and no lock was ever held."""
    settings = {"SES_SIGNATURE_WINDOW_SECONDS": "3", "IN_DOUBT_QUIET_SECONDS": "60"}
    flags = ["--signature-window=2"]
    with opened(World(tmp_path, postgres_url, flags, DEATH_PROOF="signature", **settings)) as world:
        world.plan(3)
        dead = world.worker(FAILPOINT="body-after:1")
        assert dead.wait() == -signal.SIGKILL
        held = world.eye.count("sending")
        assert held
        heir = world.worker()
        until(lambda: world.eye.count("in_doubt") == held, 20, "the signatures' time is over")
        proofs = world.eye.rows("SELECT death_proof FROM message_jobs WHERE state = 'in_doubt'")
        assert all("the signature expired at the provider" in row[0] for row in proofs)
        long_ago = "UPDATE workers SET seen_at = started_at - interval '1 hour' WHERE pid = :pid"
        world.eye.change(long_ago, pid=dead.pid)
        over = "SELECT count(*) FROM workers WHERE ended_at IS NOT NULL AND pid = :pid"
        until(lambda: world.eye.number(over, pid=dead.pid), 20, "the dead worker is over")
        assert heir.end() == 0
        assert len(set(accepted(world))) == len(accepted(world))
        assert not list(world.disk.rglob("workers"))


def test_only_ses_lets_letters_die_by_their_signatures(tmp_path: Path, sqlite_url: str) -> None:
    with opened(World(tmp_path, sqlite_url, DEATH_PROOF="signature", TRANSPORT="maildir")) as world:
        told = world.run("worker", "--until-idle", expect=2)
        assert "DEATH_PROOF is signature, and letters leave by maildir" in told


def test_a_paused_mailout_rests_and_a_cancelled_one_ends(world: World) -> None:
    world.plan(1000)
    world.sandbox.faults(slow=[60, 60])
    worker = world.worker()
    until(lambda: world.eye.count("sent") > 20, 20, "letters leave")
    world.run("mailout", "pause", world.mailout)
    until(lambda: world.eye.count("sending") == 0, 10, "what was on its way has arrived")
    resting = len(accepted(world))
    world.run("mailout", "resume", world.mailout)
    until(lambda: len(accepted(world)) > resting + 20, 20, "it goes on")
    world.run("mailout", "cancel", world.mailout)
    until(lambda: world.eye.number("SELECT count(*) FROM dispatches WHERE result = 'sent'"), 10, "it is over")
    assert worker.end() == 0
    states = world.states()
    assert set(states) == {"sent", "skipped"}
    assert states["sent"] == len(accepted(world)) < 1000
    assert judge_world(world).clean


# -- doubt -----------------------------------------------------------------------------------------


def test_doubt_stays_while_a_neighbours_event_is_missing(tmp_path: Path) -> None:
    """The event route may have lost more than one: absence is not proven."""
    with opened(
        World(tmp_path, f"sqlite:///{tmp_path}/disk/sendonce.db", IN_DOUBT_QUIET_SECONDS="1")
    ) as world:
        first, *_ = world.plan(12)
        world.sandbox.faults(events={"withhold_jobs": [first]})
        world.serve()
        assert world.worker(FAILPOINT="wire-after:5", CONCURRENCY="1").wait() == -signal.SIGKILL
        worker = world.worker()
        until(lambda: world.eye.count("sent") == 11, 20, "all others are sent")
        until(lambda: _age_of_doubt(world) > 3, 20, "the quiet time is long over")
        assert world.eye.count("in_doubt") == 1
        world.sandbox.behave()
        until(lambda: world.eye.count("sent") == 12, 20, "absence is proven, and the letter is sent")
        assert worker.end() == 0
        assert judge_world(world).clean


def test_an_event_lost_while_nobody_listened_sends_no_second_letter(tmp_path: Path) -> None:
    """The provider took it and gave its event up, the service was away for a moment, all others were heard.
    It stays parked, and both commands say why."""
    lost = f"sqlite:///{tmp_path}/disk/sendonce.db"
    with opened(World(tmp_path, lost, ["--event-attempts=1"], IN_DOUBT_QUIET_SECONDS="1")) as world:
        jobs = world.plan(12)
        world.sandbox.faults(events={"withhold_jobs": [jobs[5]]})
        service = world.serve()
        assert world.worker(FAILPOINT="reply-before:6", CONCURRENCY="1").wait() == -signal.SIGKILL
        service.end()
        world.serve()
        worker = world.worker()
        until(lambda: world.eye.count("sent") == 11, 20, "all others are sent")
        assert world.sandbox.drained()
        until(lambda: _age_of_doubt(world) > 3, 20, "the quiet time is long over")
        (doubt,) = world.ask("jobs", "in-doubt")
        assert (doubt["id"], doubt["parked"]) == (jobs[5], True)
        assert "without a break" in doubt["why"]
        assert "1 in doubt, parked: Events were not received" in world.run("mailout", "status", world.mailout)
        assert worker.end() == 0
        assert sorted(accepted(world)) == sorted(world.recipients)


def _age_of_doubt(world: World) -> float:
    age = "SELECT (julianday('now') - julianday(death_proof_at)) * 86400 FROM message_jobs"
    return float(world.eye.rows(f"{age} WHERE state = 'in_doubt'")[0][0])


def test_a_worker_cut_off_from_postgres_is_not_buried(tmp_path: Path, postgres_url: str) -> None:
    """Its database connection is dead; it is not, and the letters in its hands may still leave."""
    with opened(World(tmp_path, postgres_url)) as world:
        world.plan(200)
        world.sandbox.faults(slow=[300, 300])
        with Bridge(tmp_path, postgres_url) as bridge:
            lonely = world.worker(DATABASE_URL=bridge.url)
            until(lambda: world.eye.sending_of(lonely.pid), 20, "the worker has letters")
            bridge.cut()
            held = world.eye.sending_of(lonely.pid)
            other = world.worker()
            until(lambda: world.eye.count("sent") >= 50, 60, "another worker has buried whom it could")
            assert world.eye.sending_of(lonely.pid) == held > 0
            lonely.kill()
            until(lambda: world.eye.sending_of(lonely.pid) == 0, 20, "now it is dead, and buried")
            assert other.end() == 0


def test_a_worker_whose_postgres_stalls_can_be_stopped(tmp_path: Path, postgres_url: str) -> None:
    """It does not wait for the answer, and loses nothing: the next worker settles what is in the journal."""
    with opened(World(tmp_path, postgres_url)) as world:
        world.plan(200)
        world.sandbox.faults(slow=[20, 20])
        with Bridge(tmp_path, postgres_url) as bridge:
            stalled = world.worker(DATABASE_URL=bridge.url)
            until(lambda: world.eye.count("sent") >= 20, 20, "letters leave")
            bridge.stall()
            assert stalled.end() == 1
            assert "the next worker settles what this one sent" in stalled.log.read_text()
        world.run("worker", "--until-idle")
        assert world.states() == {"sent": 200}
        assert sorted(accepted(world)) == sorted(world.recipients)


class Bridge:
    """A second way to PostgreSQL's socket, which can be cut."""

    def __init__(self, directory: Path, url: str) -> None:
        base, _, query = url.partition("?")
        host = dict(pair.split("=") for pair in query.split("&"))["host"]
        self._target = str(Path(host.replace("%2F", "/")) / ".s.PGSQL.5432")
        self.url = f"{base}?host={directory}"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(directory / ".s.PGSQL.5432"))
        self._server.listen()
        self._flowing = threading.Event()
        self._flowing.set()
        self._pairs: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Bridge:
        self._run(self._accept)
        return self

    def _run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            self._pairs += [near, far]
            self._run(self._pump, near, far)
            self._run(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
        except OSError:
            return

    def stall(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        self._flowing.clear()

    def cut(self) -> None:
        self._flowing.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._pairs:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def __exit__(self, *_: object) -> None:
        if self._server.fileno() >= 0:
            self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._pairs:
            end.close()


# -- planning --------------------------------------------------------------------------------------


def test_a_planner_killed_at_each_chunk_plans_everybody_once(world: World) -> None:
    world.begin(12_000)
    for planned in (5_000, 10_000, 12_000):
        assert world.worker(FAILPOINT="plan-chunk:1").wait() == -signal.SIGKILL
        assert world.eye.number("SELECT count(*) FROM message_jobs") == planned
        world.eye.change("UPDATE dispatches SET planner_until = '2020-01-01 00:00:00.000000'")
    assert world.eye.number("SELECT count(DISTINCT recipient) FROM message_jobs") == 12_000
    assert world.eye.rows("SELECT phase FROM dispatches")[0][0] == "running"
    assert world.states() == {"scheduled": 12_000}


# -- databases that went back in time --------------------------------------------------------------


def _send_some(world: World) -> None:
    worker = world.worker()
    until(lambda: world.eye.count("sent") >= 30, 20, "letters are sent")
    worker.kill()


def test_a_restored_database_sends_nothing_until_it_is_adopted(world: World) -> None:
    world.plan(200)
    file = world.disk / "sendonce.db"
    with sqlite3.connect(file) as live, sqlite3.connect(world.directory / "backup.db") as backup:
        live.backup(backup)
    live.close()
    backup.close()
    _send_some(world)
    sent_before = len(accepted(world))
    world.eye.let_go()
    for leftover in world.disk.glob("sendonce.db-*"):
        leftover.unlink()
    file.write_bytes((world.directory / "backup.db").read_bytes())
    complaint = world.run("worker", "--until-idle", expect=3)
    assert "restored from an older copy" in complaint
    assert "sendonce db adopt" in complaint
    world.run("worker", "--until-idle", expect=3)  # it stays halted
    # What the dead worker had on the wire may have been read after its death; nothing else was.
    assert len(accepted(world)) == len(set(accepted(world))) <= sent_before + CONNECTIONS
    world.run("db", "adopt", "--yes")
    assert world.states() == {"in_doubt": 200}
    world.serve()
    assert world.sandbox.drained()
    until(lambda: world.eye.count("sent") == len(accepted(world)), 20, "the events have told what was sent")
    assert world.eye.count("in_doubt") == 200 - len(accepted(world))


def test_a_database_that_moved_goes_on_by_a_word(world: World) -> None:
    """After a clean move or switch-over nothing is put in doubt, and everybody gets one letter."""
    world.plan(20)
    world.eye.change("UPDATE ledger SET fingerprint = 'elsewhere:1'")
    complaint = world.run("worker", "--until-idle", expect=3)
    assert "elsewhere:1" in complaint
    assert "--nothing-was-lost" in complaint
    assert world.ask("mailout", "status", world.mailout)["counts"]["scheduled"] == 20
    answer = world.ask("db", "adopt", "--nothing-was-lost", "--yes")
    assert (answer["in_doubt"], answer["paused"]) == (0, [])
    world.run("worker", "--until-idle")
    assert world.states() == {"sent": 20}
    assert len(accepted(world)) == len(set(accepted(world))) == 20


def test_a_living_worker_that_was_buried_leaves_with_a_word(world: World) -> None:
    """Somebody was wrong about its death: it sends nothing more, says so, and a new one goes on."""
    world.plan(400)
    worker = world.worker()
    until(lambda: world.eye.count("sent") >= 20, 20, "letters are sent")
    ((worker_id,),) = world.eye.rows("SELECT id FROM workers WHERE ended_at IS NULL")
    world.run("workers", "bury", worker_id, "--i-know-it-is-dead", STATE_DIR=str(world.disk / "elsewhere"))
    assert worker.wait() == 1
    assert "may claim nothing more" in worker.log.read_text()
    world.serve()
    world.run("worker", "--until-idle")
    assert len(accepted(world)) == len(set(accepted(world)))
    assert world.states().get("sent", 0) + world.states().get("in_doubt", 0) == 400


def test_a_disk_that_went_back_with_all_that_is_on_it_is_refused(world: World) -> None:
    """A snapshot takes database and state directory back together: Amazon's own count shows it."""
    world.plan(60)
    world.eye.change("UPDATE ledger SET created_at = '2026-01-01 00:00:00.000000'")
    world.eye.let_go()
    file = world.disk / "sendonce.db"
    snapshot = file.read_bytes()
    world.run("worker", "--until-idle")
    sent = len(accepted(world))
    for leftover in world.disk.glob("sendonce.db-*"):
        leftover.unlink()
    file.write_bytes(snapshot)
    shutil.rmtree(world.disk / "state")
    complaint = world.run("worker", "--until-idle", expect=3)
    assert f"counted {sent} letters" in complaint
    assert "SES_ACCOUNT_SHARED=true" in complaint
    assert len(accepted(world)) == sent == 60
    world.run("db", "adopt", "--yes")
    world.run("worker", "--until-idle")
    assert len(accepted(world)) == 60


def test_a_database_copied_without_its_log_is_refused(world: World) -> None:
    world.plan(200)
    file = world.disk / "sendonce.db"
    keeper = sqlite3.connect(file)  # keeps the log from being moved into the file
    keeper.execute("SELECT 1 FROM message_jobs").fetchone()
    _send_some(world)
    bare = file.read_bytes()
    keeper.close()
    for leftover in world.disk.glob("sendonce.db-*"):
        leftover.unlink()
    file.write_bytes(bare)
    assert "restored from an older copy" in world.run("worker", "--until-idle", expect=3)


def test_a_copy_of_the_database_is_refused(world: World) -> None:
    world.plan(20)
    shutil.copy(world.disk / "sendonce.db", world.disk / "copy.db")
    complaint = world.run("worker", "--until-idle", expect=3, DATABASE_URL=f"sqlite:///{world.disk}/copy.db")
    assert "is a copy, or was moved from another machine" in complaint
    assert accepted(world) == []


def test_two_living_workers_with_different_boot_ids_do_not_bury_each_other(world: World) -> None:
    """As in two containers that share a state volume: one recipient once got two letters that way."""
    world.plan(200)
    (world.directory / "boot_id").write_text("00000000-1111-2222-3333-444444444444\n")
    mount = f"mount --bind {world.directory}/boot_id /proc/sys/kernel/random/boot_id"
    container = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "container", *PROGRAM]
    here = world.worker()
    until(lambda: world.eye.sending_of(here.pid), 20, "the first has letters on the wire")
    there = world.worker(program=container)
    until(lambda: world.registered(there), 20, "the second is at work")
    until(lambda: world.eye.count("sent") == 200, 60, "all is sent")
    for worker in (here, there):
        assert worker.end() == 0, worker.log.read_text()
        assert "buried" not in worker.log.read_text()
    assert len(accepted(world)) == len(set(accepted(world))) == 200


def test_what_a_lost_state_directory_left_is_buried_by_word(world: World) -> None:
    """The container and its volume are gone, and over SMTP no signature runs out."""
    world.plan(20)
    worker = world.worker(STATE_DIR=str(world.disk / "lost"))
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    (known,) = world.ask("workers", "list")
    assert (known["pid"], known["ended_at"]) == (worker.pid, None)
    worker.kill()
    shutil.rmtree(world.disk / "lost")
    left = world.eye.count("sending")
    assert bury(world) == 0
    assert "--i-know-it-is-dead" in world.run("workers", "bury", known["id"], expect=3)
    told = world.ask("workers", "bury", known["id"], "--i-know-it-is-dead")
    assert told == {"id": known["id"], "in_doubt": left}
    assert world.eye.count("in_doubt") == left
    assert world.ask("workers", "list") == []
    assert "over already" in world.run("workers", "bury", known["id"], "--i-know-it-is-dead", expect=3)


def test_no_word_buries_a_worker_that_can_be_seen_to_live(world: World) -> None:
    world.plan(300)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    (known,) = world.ask("workers", "list")
    assert "is alive" in world.run("workers", "bury", known["id"], "--i-know-it-is-dead", expect=3)
    worker.kill()
    assert world.ask("workers", "bury", known["id"], "--i-know-it-is-dead")["in_doubt"] == 0
    assert world.eye.count("in_doubt") <= CONNECTIONS


def test_a_failed_sync_ends_the_process(world: World) -> None:
    """After one nobody can know what is on the disk. A retry would succeed, and mean nothing."""
    world.plan(300)
    disk = FailingDisk(world.directory)
    worker = world.worker(program=PROGRAM, **disk.settings)
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    disk.break_down()
    assert worker.wait() == 1
    assert "could not be synced to the disk" in worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()
    disk.mend()
    world.serve()
    world.finish()
    assert len(accepted(world)) == len(set(accepted(world))) == 300


# -- clocks ----------------------------------------------------------------------------------------


def test_nothing_is_claimed_while_the_wall_clock_has_leapt(world: World) -> None:
    world.plan(400)
    worker = world.worker(program=JUMPING)
    until(lambda: world.eye.count("sent") > 20, 20, "letters leave")
    worker.signal(signal.SIGUSR1)
    until(lambda: "the clock jumped" in worker.log.read_text(), 20, "the leap is noticed")
    until(lambda: world.eye.count("sending") == 0, 20, "what was claimed has left")
    held = len(accepted(world))
    until(
        lambda: worker.log.read_text().count("the clock jumped") >= 3, 20, "the second clock was asked thrice"
    )
    assert len(accepted(world)) == held
    worker.signal(signal.SIGUSR2)
    until(lambda: world.eye.count("sent") == 400, 30, "it goes on when the clock is right again")
    assert worker.end() == 0


def test_no_mailout_starts_by_a_clock_that_has_leapt(world: World) -> None:
    """Its time has not come. It is neither started nor refused, and keeps its time."""
    world.plan(10)
    letter = world.directory / "later.md"
    letter.write_text("---\nsubject: Later\n---\nHello again\n")
    held = world.ask("mailout", "create", str(letter))["id"]
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    world.ask("mailout", "send", held, "--at", in_an_hour.strftime("%Y-%m-%dT%H:%MZ"))
    worker = world.worker(program=JUMPING)
    until(lambda: world.eye.count("sent") == 10, 20, "letters leave")
    worker.signal(signal.SIGUSR1)
    until(lambda: worker.log.read_text().count("the clock jumped") >= 2, 30, "the leap is noticed")
    told = world.ask("mailout", "status", held)
    assert (told["status"], told["scheduled"]) == ("ready", True)
    assert worker.end() == 0


def test_no_tick_starts_a_mailout_by_a_clock_that_has_leapt_since_the_last_one(world: World) -> None:
    """Each tick is a worker of its own, but the service has seen the clock before."""
    world.plan(3)
    letter = world.directory / "later.md"
    letter.write_text("---\nsubject: Later\n---\nHello again\n")
    held = world.ask("mailout", "create", str(letter))["id"]
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    world.ask("mailout", "send", held, "--at", in_an_hour.strftime("%Y-%m-%dT%H:%MZ"))
    world.service = service = world.start("serve", "--no-worker", program=JUMPING)
    until(world.answers, 20, "the service answers")

    def tick() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=30)
        with closing(connection):
            connection.request("GET", "/tick?seconds=3", headers={"Authorization": "Bearer crash-tests"})
            assert connection.getresponse().status == 200

    tick()
    assert world.eye.count("sent") == 3
    service.signal(signal.SIGUSR1)
    tick()
    told = world.ask("mailout", "status", held)
    assert (told["status"], told["scheduled"]) == ("ready", True)
    assert "the clock jumped" in service.log.read_text()
    assert service.end() == 0


def test_nothing_is_claimed_while_the_database_servers_clock_has_leapt(
    tmp_path: Path, postgres_url: str
) -> None:
    """The server's clock decides what is due, and may leap while the worker's own does not."""
    slow = '--faults={"slow": [5, 10]}'
    with opened(World(tmp_path, postgres_url, [slow])) as world:
        for statement in LEAPING_SERVER:
            world.eye.change(statement.format(database=sa.make_url(postgres_url).database))
        world.plan(400)
        worker = world.worker()
        until(lambda: world.eye.count("sent") > 20, 20, "letters leave")
        world.eye.change("UPDATE leap SET ahead = interval '2 hours'")
        until(lambda: "the clock jumped" in worker.log.read_text(), 20, "the leap is noticed")
        until(lambda: world.eye.count("sending") == 0, 20, "what was claimed has left")
        held = len(accepted(world))
        until(lambda: worker.log.read_text().count("the clock jumped") >= 3, 20, "it was looked at thrice")
        assert 20 < len(accepted(world)) == held < 400
        world.eye.change("UPDATE leap SET ahead = interval '0'")
        until(lambda: world.eye.count("sent") == 400, 30, "it goes on when the clock is right again")
        assert worker.end() == 0
        assert len(set(accepted(world))) == 400


# pg_catalog comes first in every search path that does not name it.
LEAPING_SERVER = (
    "CREATE TABLE leap (ahead interval NOT NULL)",
    "INSERT INTO leap VALUES (interval '0')",
    "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
    "'SELECT pg_catalog.clock_timestamp() + ahead FROM public.leap'",
    "ALTER DATABASE {database} SET search_path = public, pg_catalog",
)


# -- what comes from outside -----------------------------------------------------------------------


def test_an_endpoint_that_answers_garbage_takes_nothing_for_sent(world: World) -> None:
    world.plan(3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_babble, args=(server,), daemon=True).start()
        worker = world.worker(AWS_ENDPOINT_URL_SESV2=f"http://127.0.0.1:{port}", DOUBT_CANARY="false")
        until(lambda: world.states() == {"in_doubt": 3}, 20, "all is in doubt")
        assert worker.end() == 0, worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()


def _babble(server: socket.socket) -> None:
    while True:
        try:
            wire, _ = server.accept()
        except OSError:
            return
        with wire:
            wire.recv(1 << 20)
            wire.sendall(b"\x00\xff\x15\x03\x01 \xd0\x9d\xd0\xb5\xd1\x82 HTTP?\r\n\r\n")


@pytest.mark.skipif(
    not NAUGHTY_STRINGS.exists(), reason="the corpus of naughty strings is not beside the repository"
)
def test_naughty_names_are_sent_or_refused_and_never_stop_the_rest(world: World) -> None:
    names = json.loads(NAUGHTY_STRINGS.read_text(encoding="utf-8"))
    people = world.directory / "people.csv"
    with people.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["email", "name"])
        writer.writerows((f"n{number:04}@example.org", name) for number, name in enumerate(names))
    letter = world.directory / "letter.md"
    letter.write_text(
        "---\nsubject: Dear {{ name | default: 'friend' }}\n---\n\nDear {{ name | default: 'friend' }}!\n",
        encoding="utf-8",
    )
    world.run("subscribers", "import", str(people))
    mailout = world.ask("mailout", "create", str(letter))["id"]
    world.run("mailout", "send", mailout)
    states = world.states()
    assert set(states) <= {"sent", "failed"}
    assert states["sent"] == len(accepted(world)) == len(set(accepted(world)))
    reasons = world.eye.rows("SELECT reason FROM message_jobs WHERE state = 'failed'")
    assert all("name" in reason[0].lower() for reason in reasons)
    assert states["sent"] > 0.9 * sum(states.values())


def test_a_killed_worker_is_told_of_in_one_line(world: World) -> None:
    """The log names who was buried and on what proof."""
    world.plan(60)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    successor = world.worker()
    until(
        lambda: world.eye.count("sent") + world.eye.count("in_doubt") == 60, 20, "its successor has gone on"
    )
    assert successor.end() == 0
    (burial,) = [line for line in successor.lines() if line["event"] == "buried a dead worker"]
    assert f"(pid {worker.pid}) is dead: its lock is free" in burial["proof"]
    assert burial["in_doubt"] <= CONNECTIONS


def test_the_metrics_of_a_worker_are_for_who_has_the_secret(world: World) -> None:
    """EXECUTOR_SHARED_SECRET, where it is set."""
    port = free_port()
    world.worker(METRICS_PORT=str(port), EXECUTOR_SHARED_SECRET="the secret of the house")

    def asked(**headers: str) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics", headers=headers)
            return connection.getresponse().status
        except ConnectionRefusedError:
            return None
        finally:
            connection.close()

    assert until(asked, 20, "the metrics are served") == 401
    assert asked(Authorization="Bearer the secret of the house") == 200
