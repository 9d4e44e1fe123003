"""A PostgreSQL with an asynchronous standby that can be promoted after it has lost the last commits."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from tests.crash.power_postgres import ServerFiles
from tests.crash.world import free_port, until
from tests.postgres import quick_folder

_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 16MB
max_wal_senders = 4
wal_level = replica
hot_standby = on
"""


class ServerPair:
    """Two clusters of our own. ``url`` leads to the primary, after ``fail_over`` to what was the standby."""

    def __init__(self, files: ServerFiles, folder: Path) -> None:
        self._files = files
        self._primary, self._standby = folder / "primary", folder / "standby"
        self._port, self._aside = free_port(), free_port()
        self._run("initdb", "-D", self._primary, "-U", "postgres", "-A", "trust", "--no-sync")
        with (self._primary / "postgresql.conf").open("a") as configuration:
            configuration.write(_CONFIGURATION)
        self._start(self._primary, self._port)
        source = f"host=127.0.0.1 port={self._port} user=postgres"
        self._run("pg_basebackup", "-D", self._standby, "-d", source, "-R", "-c", "fast", "--no-sync")
        self._start(self._standby, self._aside)
        until(lambda: self._ask(self._port, "SELECT count(*) FROM pg_stat_replication"), 20, "it streams")

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def cut_the_stream(self) -> None:
        """From now on the primary's commits reach nobody else."""
        self._ask(self._aside, "ALTER SYSTEM SET primary_conninfo = ''")
        self._ask(self._aside, "SELECT pg_reload_conf()")
        streams = partial(self._ask, self._port, "SELECT count(*) FROM pg_stat_replication")
        until(lambda: streams() == 0, 20, "the stream is cut")

    def fail_over(self) -> None:
        """The primary dies, and the standby takes its place at the same address."""
        self._stop(self._primary, "immediate")
        self._stop(self._standby, "fast")
        self._start(self._standby, self._port)
        self._run("pg_ctl", "promote", "-w", "-D", self._standby)

    def close(self) -> None:
        for data in (self._primary, self._standby):
            if (data / "postmaster.pid").exists():
                self._stop(data, "immediate")

    def _start(self, data: Path, port: int) -> None:
        self._run("pg_ctl", "start", "-w", "-D", data, "-o", f"-p {port}", "-l", data.with_suffix(".log"))

    def _stop(self, data: Path, mode: str) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", data)

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [str(self._files.programs / program), *map(str, arguments)],
            check=True,
            user=self._files.user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def _ask(self, port: int, question: str) -> object:
        with psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True) as session:
            cursor = session.execute(question.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None


@contextmanager
def server_pair(files: ServerFiles) -> Iterator[ServerPair]:
    folder = quick_folder("sendonce-pair-")
    if files.user is not None:
        os.chown(folder, files.user, -1)
    pair = None
    try:
        pair = ServerPair(files, folder)
        yield pair
    finally:
        if pair is not None:
            pair.close()
        shutil.rmtree(folder, ignore_errors=True)
