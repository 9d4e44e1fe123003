"""A power cut: the worker is killed, its machine boots anew, and every write that was never synced is gone.

The ledger's worker row gets another boot id, as after a restart, so that nothing in its wire journal is
believed. What a PostgreSQL server loses is in power_postgres.py. For SQLite, strace tells, in order, what
the worker wrote to the database and its log and what it synced. A write after a file's last sync may be
lost in a power cut, so it is overwritten with zeros: neither the old nor the new content, which is the
worst that a disk may do.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path

from tests.crash.scenes import NotHere, Stage
from tests.crash.world import PROGRAM

_CALLS = "trace=pwrite64,fsync,fdatasync,ftruncate"
_WRITE = re.compile(r"pwrite64\(\d+<([^>]+)>, .*, (\d+), (\d+)(?:\)| <unfinished)")
_SYNC = re.compile(r"^(\d+) +f(?:data)?sync\(\d+<([^>]+)>(\)\s+= 0| <unfinished)")
_SYNCED = re.compile(r"^(\d+) +<\.\.\. f(?:data)?sync resumed>\)\s+= 0")


_ANOTHER_BOOT = "UPDATE workers SET boot_id = 'the boot before' WHERE ended_at IS NULL"


def power_loss(stage: Stage) -> None:
    """What was never synced is gone, the journals count for nothing, the boot id is another one."""
    file = stage.world.disk / "sendonce.db"
    stage.world.stop_serving()
    if file.exists():
        _lose_sqlite(stage, file)
    else:
        _lose_postgres(stage)
    stage.world.serve()


def _lose_postgres(stage: Stage) -> None:
    """Worker and server are on one machine."""
    if stage.databases is None or stage.databases.fragile is None:
        raise NotHere("the server of TEST_DATABASE_URL is not ours to break")
    if shutil.which("gcc") is None:
        raise NotHere("gcc is not installed: apt-get install gcc")
    with stage.databases.fragile() as server:
        while not stage.done:
            worker = stage.world.worker()
            found = stage.sending(worker)
            stage.linger()
            worker.kill()
            if found:
                server.cut_the_power()
                server.start()
                stage.world.eye.change(_ANOTHER_BOOT)
                stage.count(worker)


def _lose_sqlite(stage: Stage, file: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        raise NotHere("strace is not installed: apt-get install strace")
    while not stage.done:
        _run_until_power_fails(stage, file, strace)


def _run_until_power_fails(stage: Stage, database: Path, strace: str) -> None:
    world = stage.world
    trace = world.directory / f"strace-{len(world.workers)}"
    tracing = [strace, "-f", "--seccomp-bpf", "-y", "-s", "0", "-e", _CALLS, "-o", str(trace)]
    tracer = world.worker(program=[*tracing, *PROGRAM])
    pid = _traced_worker(stage, tracer.pid)
    # Whoever closes the database last moves the log into the file. Let that be nobody.
    world.eye.let_go()
    if pid:
        stage.linger()
        os.kill(pid, signal.SIGKILL)
    else:
        for child in _children(tracer.pid):
            os.kill(child, signal.SIGTERM)  # the tracer passes none on
    tracer.wait()
    _lose_unsynced(trace, database)
    world.eye.change(_ANOTHER_BOOT)
    if pid and world.eye.sending_of(pid):
        stage.kills += 1


def _traced_worker(stage: Stage, tracer: int) -> int:
    """The pid of the worker once it has letters in ``sending``; 0 if there is nothing left to send."""
    ends = time.monotonic() + 60
    while stage.left() and time.monotonic() < ends:
        for child in _children(tracer):
            if stage.world.eye.sending_of(child):
                return child
        time.sleep(0.008)
    return 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lose_unsynced(trace: Path, database: Path) -> None:
    for name, writes in _unsynced(trace.read_text(errors="replace").splitlines()).items():
        if name.startswith(str(database)) and not name.endswith("-shm"):
            with Path(name).open("r+b") as file:
                for place, length in writes:
                    file.seek(place)
                    file.write(bytes(length))
    Path(f"{database}-shm").unlink(missing_ok=True)


def _unsynced(lines: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Place and length of the writes to each file that no finished sync began after."""
    unsynced: dict[str, list[tuple[int, int]]] = {}
    under_way: dict[str, tuple[str, int]] = {}
    for line in lines:
        if write := _WRITE.search(line):
            name, length, place = write.groups()
            unsynced.setdefault(name, []).append((int(place), int(length)))
        elif sync := _SYNC.search(line):
            thread, name, end = sync.groups()
            under_way[thread] = (name, len(unsynced.get(name, [])))
            if "unfinished" not in end:
                _forget(unsynced, under_way.pop(thread))
        elif (synced := _SYNCED.search(line)) and synced.group(1) in under_way:
            _forget(unsynced, under_way.pop(synced.group(1)))
    return unsynced


def _forget(unsynced: dict[str, list[tuple[int, int]]], sync: tuple[str, int]) -> None:
    name, count = sync
    unsynced[name] = unsynced.get(name, [])[count:]
