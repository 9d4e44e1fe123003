"""The same claims through a transaction pooler: Debian's pgbouncer, which keeps no session for anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.crash.world import free_port, until
from tests.postgres import PostgresServer

pytestmark = pytest.mark.long


@contextmanager
def pgbouncer(server: PostgresServer, folder: Path) -> Iterator[str]:
    """The address of a pooler in transaction mode before the server, on a port of its own."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    assert Path(program).exists(), "pgbouncer is missing: apt-get install pgbouncer, or run make test-long"
    port = free_port()
    host = server.admin.query.get("host") or server.admin.host
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={host} port={server.admin.port or 5432} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 20\n"
        "server_idle_timeout = 5\nignore_startup_parameters = extra_float_digits\n"
    )
    # pgbouncer will not run as root, and must reach its file and the server's socket as somebody else.
    for way in (folder, *folder.parents[:2], Path(str(host)), Path(str(host)).parent):
        if os.geteuid() == 0 and not way.stat().st_mode & 0o005:
            way.chmod(way.stat().st_mode | 0o055)
    command = [program, "-q", *(["-u", "nobody"] if os.geteuid() == 0 else []), str(config)]
    child = subprocess.Popen(command)
    try:
        address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        until(lambda: _answers(address), 10, "pgbouncer answers")
        yield address
    finally:
        child.terminate()
        child.wait()


def _answers(address: str) -> bool:
    try:
        with psycopg.connect(address, prepare_threshold=None, connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_every_claim_holds_through_a_transaction_pooler(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """No prepared statement, no session lock and no session setting is relied on."""
    with pgbouncer(postgres_server, tmp_path) as address:
        environment = {
            **os.environ,
            "TEST_DATABASE_URL": postgres_server.admin.render_as_string(hide_password=False),
            "TEST_POOLER_URL": address,
        }
        command = [sys.executable, "-m", "pytest", "tests/conformance", "-k", "postgres", "-m", "not long"]
        # The proxy that cuts commits off stands before the server itself.
        command += ["--deselect", "tests/conformance/test_lost_commit.py", "-p", "no:xdist"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "passed" in done.stdout
