"""What a worker honours until the last moment, and what stays in doubt."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.adapters.worker.stage import STOPPING, accepted, stopped
from tests.crash.judge import judge_world
from tests.crash.world import World, opened, until


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
