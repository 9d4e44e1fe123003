"""Databases that went back in time, moved or were copied."""

from __future__ import annotations

import shutil
import sqlite3

from tests.adapters.worker.stage import accepted
from tests.crash.world import CONNECTIONS, World, until


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
