"""The power cuts are known to cut: what was not synced is gone, what was synced is there."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import psycopg
import pytest

from tests.crash.power_postgres import ServerFiles, fragile, undo_unsynced
from tests.postgres import PostgresServer, running_postgres


def record(kind: str, inode: int, offset: int = 0, size: int = 0, thread: int = 1, old: bytes = b"") -> bytes:
    return struct.pack("=6Q", ord(kind), inode, offset, size, thread, len(old)) + old


def test_a_write_after_the_last_finished_sync_is_undone(tmp_path: Path) -> None:
    """A sync covers what was written before it began; a file's growth is undone with the write."""
    file = tmp_path / "file"
    file.write_bytes(b"AABBCC")
    inode = file.stat().st_ino
    log = (
        record("W", inode, 0, 4, old=b"aa")
        + record("B", inode)
        + record("W", inode, 2, 4, thread=2, old=b"bb")
        + record("E", inode)
        + record("W", inode, 4, 4, thread=2)
        + record("B", inode, thread=2)
    )
    assert undo_unsynced(log, tmp_path) == 2
    assert file.read_bytes() == b"AAbb"


def test_a_file_that_has_the_number_of_a_deleted_one_keeps_its_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"new")
    inode = file.stat().st_ino
    assert undo_unsynced(record("W", inode, 0, 3, old=b"old") + record("U", inode), tmp_path) == 0
    assert file.read_bytes() == b"new"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="the server is not ours to break")
def test_postgres_keeps_through_a_power_cut_what_it_waited_for_and_nothing_else() -> None:
    with running_postgres() as server, fragile(ServerFiles(server)) as cut:
        server.execute("CREATE TABLE kept (waited boolean)")
        # What nobody waits for is synced in the background, by default five times a second.
        server.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        server.reload_until("SHOW wal_writer_delay", "10s")
        write_some(server, "on")
        write_some(server, "off")
        assert cut.cut_the_power() > 0
        cut.start()
        assert server.execute("SELECT count(*) FROM kept WHERE waited") == "30"
        assert server.execute("SELECT count(*) FROM kept WHERE NOT waited") == "0"


def write_some(server: PostgresServer, synchronous: str) -> None:
    url = server.admin.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET synchronous_commit = {synchronous}".encode())
        for _ in range(30):
            connection.execute("INSERT INTO kept VALUES (current_setting('synchronous_commit') = 'on')")
