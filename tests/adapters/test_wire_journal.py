"""The worker's file: what proves a death, and what a dead worker's journal may be asked."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sendonce.adapters.wire_journal import SLOT, StateDirectory, WireLog, WorkerFile, boot_id
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.errors import RefusedByRule
from sendonce.ports.mortality import Wired

LEDGER = "ledger-1"
# A worker in a process of its own: it enlists, journals one letter, says so, and waits for its end.
WORKER = """
import os, sys, time
from pathlib import Path
from sendonce.adapters.wire_journal import StateDirectory
file = StateDirectory(Path(sys.argv[1]), "ledger-1").enlist("w", "worker-1", 16)
file.wire("job-1", 1)
forked = "fork" in sys.argv and os.fork()
if not forked:
    print(file.inode, os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path, LEDGER)


class Living:
    """A worker process, and the row that the ledger would have of it."""

    def __init__(self, root: Path, state: StateDirectory, *arguments: str) -> None:
        command = [sys.executable, "-c", WORKER, str(root), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        inode, self.speaker = map(int, self.process.stdout.readline().split())
        self.record = _record(state, inode)


@contextmanager
def living(root: Path, state: StateDirectory, *arguments: str) -> Iterator[Living]:
    worker = Living(root, state, *arguments)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.wait()
        assert worker.process.stdout is not None
        worker.process.stdout.close()
        if worker.speaker != worker.process.pid:
            os.kill(worker.speaker, signal.SIGKILL)


def _record(state: StateDirectory, inode: int) -> WorkerRecord:
    return WorkerRecord("worker-1", "w", "ses", state.lock_domain, "w", inode, boot_id(), "host", 1)


def _is_dead(state: StateDirectory, record: WorkerRecord) -> bool:
    with state.open_if_dead(record) as wire_log:
        return wire_log is not None


def _lock_file(root: Path) -> Path:
    return root / LEDGER / "workers" / "w"


# -- who is dead -----------------------------------------------------------------------------------


def test_a_stopped_worker_is_alive(tmp_path: Path, state: StateDirectory) -> None:
    with living(tmp_path, state) as worker:
        worker.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert not _is_dead(state, worker.record)


def test_a_killed_worker_is_dead_before_anybody_has_reaped_it(tmp_path: Path, state: StateDirectory) -> None:
    with living(tmp_path, state) as worker:
        worker.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
        with state.open_if_dead(worker.record) as wire_log:
            assert wire_log is not None
            assert wire_log.verdict("job-1", 1) is Wired.MAYBE
            assert wire_log.verdict("job-2", 1) is Wired.NEVER
        assert not _lock_file(tmp_path).exists()


def test_a_forked_child_keeps_its_parent_alive(tmp_path: Path, state: StateDirectory) -> None:
    """The child may hold the parent's sockets too: the safe side."""
    with living(tmp_path, state, "fork") as worker:
        worker.process.kill()
        worker.process.wait()
        assert not _is_dead(state, worker.record)


def test_a_replaced_lock_file_proves_nothing(tmp_path: Path, state: StateDirectory) -> None:
    with living(tmp_path, state) as worker:
        copy = _lock_file(tmp_path).with_suffix(".copy")
        shutil.copy(_lock_file(tmp_path), copy)
        copy.replace(_lock_file(tmp_path))
        assert not _is_dead(state, worker.record)


def test_a_lock_file_that_is_gone_proves_nothing(tmp_path: Path, state: StateDirectory) -> None:
    with living(tmp_path, state) as worker:
        _lock_file(tmp_path).unlink()
        assert not _is_dead(state, worker.record)
        assert not _lock_file(tmp_path).exists()


def test_who_sees_another_lock_domain_cannot_judge(tmp_path: Path, state: StateDirectory) -> None:
    elsewhere = StateDirectory(tmp_path / "elsewhere", LEDGER)
    with living(tmp_path, state) as worker:
        worker.process.kill()
        worker.process.wait()
        shutil.copy(_lock_file(tmp_path), elsewhere._workers / "w")
        assert not _is_dead(elsewhere, worker.record)
        assert _is_dead(state, worker.record)


def test_a_name_and_an_inode_mean_nothing_in_another_lock_domain(
    tmp_path: Path, state: StateDirectory
) -> None:
    """Another machine may have a file of this name and number, and nobody holds that one."""
    with living(tmp_path, state) as worker:
        worker.process.kill()
        worker.process.wait()
        assert not _is_dead(state, replace(worker.record, lock_domain="of another machine"))
        assert _is_dead(state, worker.record)


def test_after_a_restart_of_the_machine_all_are_dead_and_no_journal_is_believed(
    tmp_path: Path, state: StateDirectory
) -> None:
    file = _enlist(state)
    file.reply("job-1", 1, Accepted("m-1"))
    record = replace(_record(state, file.inode), boot_id="the boot before")
    file.close(settled=False)
    with state.open_if_dead(record) as wire_log:
        assert wire_log is not None
        assert wire_log.verdict("job-1", 1) is Wired.MAYBE
        assert wire_log.verdict("job-2", 1) is Wired.MAYBE
    assert not _lock_file(tmp_path).exists()


def test_another_boot_id_is_no_death_while_the_lock_is_held(tmp_path: Path, state: StateDirectory) -> None:
    """Two containers that share a state volume may see different boot ids while both live."""
    with living(tmp_path, state) as worker:
        elsewhere = replace(worker.record, boot_id="another container's")
        assert not _is_dead(state, elsewhere)
        worker.process.kill()
        worker.process.wait()
        assert _is_dead(state, elsewhere)


def test_another_boot_id_is_no_death_where_the_lock_file_is_gone(
    tmp_path: Path, state: StateDirectory
) -> None:
    """Somebody cleaned up the folder under a living worker, or a namesake's file stands in its place."""
    with living(tmp_path, state) as worker:
        elsewhere = replace(worker.record, boot_id="another container's")
        _lock_file(tmp_path).unlink()
        assert not _is_dead(state, elsewhere)
        namesake = _enlist(state)
        assert not _is_dead(state, elsewhere)
        assert _lock_file(tmp_path).exists()
        namesake.close(settled=True)


def test_a_burial_that_fails_keeps_the_journal(tmp_path: Path, state: StateDirectory) -> None:
    file = _enlist(state)
    record = _record(state, file.inode)
    file.close(settled=False)
    with pytest.raises(ZeroDivisionError), state.open_if_dead(record):
        raise ZeroDivisionError
    assert _is_dead(state, record)


# -- starting --------------------------------------------------------------------------------------


def test_a_name_is_taken_while_its_worker_lives(tmp_path: Path, state: StateDirectory) -> None:
    with living(tmp_path, state):
        state.sweep("w", set())
        with pytest.raises(RefusedByRule, match="worker named 'w' already"):
            state.enlist("w", "worker-2", 16)


def test_a_file_that_no_worker_of_the_ledger_stands_behind_is_swept(state: StateDirectory) -> None:
    """A process that died between its lock and its registration."""
    left = _enlist(state)
    left.close(settled=False)
    assert left.path.exists()
    state.sweep("w", set())
    assert not left.path.exists()
    _enlist(state).close(settled=True)


def test_a_namesake_that_sweeps_up_meanwhile_takes_no_file_away(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three processes of one name sweeps while another makes its file: the third gets no such file."""
    lock = fcntl.flock

    def slow_lock(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        state.sweep("w", set())
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", slow_lock)
    first = _enlist(state)
    assert first.path.stat().st_ino == first.inode
    with pytest.raises(RefusedByRule, match="worker named 'w' already"):
        state.enlist("w", "worker-3", 16)
    assert first.path.stat().st_ino == first.inode
    assert [each.name for each in state._root.iterdir() if each.name.startswith(".worker")] == []
    first.close(settled=True)


def test_a_file_system_without_real_locks_is_refused(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    with pytest.raises(RefusedByRule, match="does not keep locks"):
        _enlist(state)
    assert list(state._workers.iterdir()) == []


@pytest.mark.parametrize("folder", ["", LEDGER, f"{LEDGER}/workers"])
def test_a_state_directory_that_others_may_write_is_refused(tmp_path: Path, folder: str) -> None:
    """They could replace a lock, and make a living worker look dead."""
    StateDirectory(tmp_path / "state", LEDGER)
    (tmp_path / "state" / folder).chmod(0o777)
    with pytest.raises(RefusedByRule, match="Other users may write"):
        StateDirectory(tmp_path / "state", LEDGER)


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to give a folder away")
def test_a_state_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    StateDirectory(tmp_path / "state", LEDGER)
    os.chown(tmp_path / "state", 12345, 12345)
    with pytest.raises(RefusedByRule, match="Other users may write"):
        StateDirectory(tmp_path / "state", LEDGER)


def test_a_new_state_directory_is_its_owners_alone(tmp_path: Path) -> None:
    StateDirectory(tmp_path / "new" / "state", LEDGER)
    assert (tmp_path / "new" / "state").stat().st_mode & 0o077 == 0


def test_the_lock_domain_is_made_once(tmp_path: Path, state: StateDirectory) -> None:
    assert StateDirectory(tmp_path, LEDGER).lock_domain == state.lock_domain
    assert StateDirectory(tmp_path, "ledger-2").lock_domain != state.lock_domain


# -- the journal -----------------------------------------------------------------------------------


def _enlist(state: StateDirectory, slots: int = 16) -> WorkerFile:
    return state.enlist("w", "worker-1", slots)


def _wire_log(state: StateDirectory, file: WorkerFile) -> WireLog:
    record = _record(state, file.inode)
    file.close(settled=False)
    with state.open_if_dead(record) as wire_log:
        assert wire_log is not None
        return wire_log


@pytest.mark.parametrize(
    "outcome",
    [
        Accepted("0100018f-1234-000000"),
        Refused("MessageRejected", "Email address is not verified | really"),
        Deferred("421", "not now", throttle=False),
        Deferred("TooManyRequestsException", "slow down", throttle=True),
        InDoubt("no answer within 10 s"),
        InDoubt(""),
    ],
)
def test_a_reply_is_read_back_as_it_was(state: StateDirectory, outcome: Outcome) -> None:
    file = _enlist(state)
    file.wire("job-1", 3)
    file.reply("job-1", 3, outcome)
    assert _wire_log(state, file).verdict("job-1", 3) == outcome


def test_only_the_attempt_that_was_journaled_is_known(state: StateDirectory) -> None:
    file = _enlist(state)
    file.wire("job-1", 1)
    file.reply("job-1", 1, Deferred("421", "not now"))
    file.wire("job-1", 2)
    wire_log = _wire_log(state, file)
    assert wire_log.verdict("job-1", 2) is Wired.MAYBE
    assert wire_log.verdict("job-1", 3) is Wired.NEVER


def test_a_long_reason_does_not_spoil_its_slot(state: StateDirectory) -> None:
    file = _enlist(state)
    file.reply("job-1", 1, Refused("550", "щ" * 1000))
    file.reply("job-2", 1, Accepted("m-2"))
    wire_log = _wire_log(state, file)
    assert isinstance(wire_log.verdict("job-1", 1), Refused)
    assert wire_log.verdict("job-2", 1) == Accepted("m-2")


def test_the_ring_forgets_the_oldest_replies(state: StateDirectory) -> None:
    file = _enlist(state, slots=5)
    for number in range(10):
        assert file.wire(f"job-{number}", 1)
        file.reply(f"job-{number}", 1, Accepted("m"))
    wire_log = _wire_log(state, file)
    assert wire_log.verdict("job-7", 1) is Wired.NEVER
    assert wire_log.verdict("job-9", 1) == Accepted("m")


def test_the_ring_never_forgets_a_letter_on_the_wire(state: StateDirectory) -> None:
    """One reply may take ten minutes, and thousands of other letters pass it by."""
    file = _enlist(state, slots=8)
    assert file.wire("slow", 1)
    for number in range(100):
        assert file.wire(f"job-{number}", 1)
        file.reply(f"job-{number}", 1, Accepted("m"))
    assert _wire_log(state, file).verdict("slow", 1) is Wired.MAYBE


def test_a_journal_full_of_letters_on_the_wire_takes_no_more(state: StateDirectory) -> None:
    file = _enlist(state, slots=8)
    taken = [number for number in range(20) if file.wire(f"job-{number}", 1)]
    assert len(taken) == 5
    for number in taken:
        file.reply(f"job-{number}", 1, Accepted("m"))
    assert file.wire("job-20", 1)
    wire_log = _wire_log(state, file)
    assert wire_log.verdict("job-20", 1) is Wired.MAYBE
    assert wire_log.verdict("job-4", 1) == Accepted("m")


@pytest.mark.parametrize("size", [0, SLOT, 3 * SLOT, 16 * SLOT], ids=["empty", "a slot", "some", "zeros"])
def test_a_journal_that_was_cut_off_or_emptied_is_not_believed(
    tmp_path: Path, state: StateDirectory, size: int
) -> None:
    file = _enlist(state)
    with _lock_file(tmp_path).open("r+b") as raw:
        if size == 16 * SLOT:
            raw.write(bytes(size))
        raw.truncate(size)
    assert _wire_log(state, file).verdict("job-1", 1) is Wired.MAYBE


@pytest.mark.parametrize("damage", [b"garbage", b"\xff" * SLOT])
def test_after_a_torn_slot_nothing_unknown_is_believed_unsent(
    tmp_path: Path, state: StateDirectory, damage: bytes
) -> None:
    file = _enlist(state)
    file.reply("job-1", 1, Accepted("m-1"))
    file.wire("job-2", 1)
    with _lock_file(tmp_path).open("r+b") as raw:
        raw.seek(2 * SLOT + 3)
        raw.write(damage)
    wire_log = _wire_log(state, file)
    assert wire_log.verdict("job-1", 1) == Accepted("m-1")
    assert wire_log.verdict("job-3", 1) is Wired.MAYBE


def test_a_slot_that_its_writer_did_not_finish_is_of_a_letter_that_never_left(
    tmp_path: Path, state: StateDirectory
) -> None:
    file = _enlist(state)
    file.wire("job-1", 1)
    file.wire("job-2", 1)
    with _lock_file(tmp_path).open("r+b") as raw:
        raw.seek(2 * SLOT)
        raw.write(b"\0")
    wire_log = _wire_log(state, file)
    assert wire_log.verdict("job-1", 1) is Wired.MAYBE
    assert wire_log.verdict("job-2", 1) is Wired.NEVER


def test_two_unfinished_slots_are_nobodys_work(tmp_path: Path, state: StateDirectory) -> None:
    file = _enlist(state)
    file.wire("job-1", 1)
    file.wire("job-2", 1)
    with _lock_file(tmp_path).open("r+b") as raw:
        for slot in (1, 2):
            raw.seek(slot * SLOT)
            raw.write(b"\0")
    assert _wire_log(state, file).verdict("job-3", 1) is Wired.MAYBE


def test_a_journal_of_somebody_else_is_not_believed(state: StateDirectory) -> None:
    file = state.enlist("w", "worker-2", 16)
    assert _wire_log(state, file).verdict("job-1", 1) is Wired.MAYBE


def test_a_journal_that_cannot_be_written_says_so(state: StateDirectory) -> None:
    file = _enlist(state)
    os.close(file._descriptor)
    file._descriptor = os.open(file.path, os.O_RDONLY)
    file.claimed(1, 1)
    assert file.wire("job-1", 1) is False
    os.close(file._descriptor)
    file._descriptor = os.open(file.path, os.O_RDWR)
    file.claimed(2, 2)
    assert file.wire("job-1", 1) is True
    file.close(settled=True)


# -- the highest claim -----------------------------------------------------------------------------


def test_the_highest_claim_outlives_the_workers_file(tmp_path: Path, state: StateDirectory) -> None:
    """A database that is restored after the burial must still show as older."""
    file = _enlist(state)
    file.claimed(41, 41)
    assert state.highest_claim() == 41
    _wire_log(state, file)
    assert not _lock_file(tmp_path).exists()
    assert StateDirectory(tmp_path, LEDGER).highest_claim() == 41


def test_the_highest_claim_never_falls(state: StateDirectory) -> None:
    file = _enlist(state)
    file.claimed(7, 7)
    file.claimed(5, 5)
    assert (file.highest_claim, state.highest_claim()) == (7, 7)
    state.keep_claim(7)
    state.keep_claim(3)
    file.close(settled=True)
    assert state.highest_claim() == 7
