"""Real mail servers for the tests: Debian's Postfix and Exim, each with a folder and a port of its own.

Neither is the system's instance. Both accept letters for everybody and keep them in their queue, where they
can be counted: nothing is delivered anywhere. They need root, as all mail servers do to start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.crash.world import free_port, until
from tests.postgres import quick_folder

ROOT = Path(__file__).parents[2]
MASTER = Path("/usr/lib/postfix/sbin/master")
EXIM = ROOT / ".stamp" / "exim"

_POSTFIX = {
    "compatibility_level": "3.6",
    "mail_owner": "postfix",
    "setgid_group": "postdrop",
    "inet_interfaces": "127.0.0.1",
    "inet_protocols": "ipv4",
    "myhostname": "mx.example.org",
    "mydestination": "",
    "local_recipient_maps": "",
    "smtpd_relay_restrictions": "permit_mynetworks, reject",
    "smtpd_recipient_restrictions": "check_client_access static:HOLD, permit",
    # Postfix exempts its own networks from the limits that are to be tried.
    "smtpd_client_event_limit_exceptions": "",
    "anvil_rate_time_unit": "5s",
}
_POSTFIX_SERVICES = """
127.0.0.1:{port} inet n - n - {processes} smtpd
postlog unix-dgram n - n - 1 postlogd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
showq unix n - n - - showq
error unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
"""

_EXIM = """
exim_user = mail
exim_group = mail
never_users =
spool_directory = {folder}/spool
log_file_path = {folder}/log/%slog
pid_file_path = {folder}/exim.pid
primary_hostname = mx.example.org
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
queue_only = true
acl_smtp_rcpt = accept
tls_advertise_hosts =
keep_environment = LD_PRELOAD : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP
smtp_accept_max = 100
smtp_connect_backlog = 100
{settings}
begin acl
accept:
  accept
"""


class MailServer:
    """A running server. ``recipients`` are those of the letters that it holds, one entry per letter."""

    def __init__(self, command: list[str], folder: Path, port: int, environment: Mapping[str, str]) -> None:
        self.port = port
        self.folder = folder
        self._command = command
        self._environment = environment
        self._log = folder / "output.log"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            child = subprocess.Popen(
                self._command, stdout=output, stderr=output, env=self._environment, start_new_session=True
            )
        self._child = child
        until(lambda: child.poll() is not None or _greets(self.port), 20, f"{self._command[0]} greets")
        assert child.poll() is None, self._log.read_text()

    def stop(self) -> None:
        """Kill all its processes: they are a process group of their own."""
        child, self._child = self._child, None
        if child is not None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def recipients(self) -> list[str]:
        raise NotImplementedError


class Postfix(MailServer):
    def recipients(self) -> list[str]:
        listing = subprocess.run(
            ["postqueue", "-c", str(self.folder / "etc"), "-j"], capture_output=True, check=True, text=True
        )
        letters = [json.loads(line) for line in listing.stdout.splitlines()]
        return [recipient["address"] for letter in letters for recipient in letter["recipients"]]


class Exim(MailServer):
    def recipients(self) -> list[str]:
        found: list[str] = []
        for header in (self.folder / "spool" / "input").rglob("*-H"):
            lines = header.read_text().splitlines()
            start = lines.index("XX") + 2  # the tree of those who have it already, then a count
            found += lines[start : start + int(lines[start - 1])]
        return found


@contextmanager
def postfix(settings: Mapping[str, str] | None = None, processes: int = 100) -> Iterator[Postfix]:
    program = shutil.which("postfix") or "/usr/sbin/postfix"
    assert Path(program).exists(), "postfix is missing: run make test-long, which installs it"
    folder, port = quick_folder("sendonce-postfix-"), free_port()
    folder.chmod(0o755)
    for name in ("etc", "queue", "data"):
        (folder / name).mkdir()
    shutil.chown(folder / "data", "postfix")
    places = {
        "queue_directory": f"{folder}/queue",
        "data_directory": f"{folder}/data",
        "maillog_file": f"{folder}/mail.log",
        "maillog_file_prefixes": str(folder),
    }
    lines = [f"{name} = {value}" for name, value in {**_POSTFIX, **places, **(settings or {})}.items()]
    (folder / "etc" / "main.cf").write_text("\n".join(lines) + "\n")
    (folder / "etc" / "master.cf").write_text(_POSTFIX_SERVICES.format(port=port, processes=processes))
    subprocess.run([program, "-c", str(folder / "etc"), "check"], check=True)  # it makes the queue's folders
    server = Postfix([str(MASTER), "-c", str(folder / "etc"), "-s"], folder, port, os.environ)
    with _running(server):
        yield server


@contextmanager
def exim(settings: str = "") -> Iterator[Exim]:
    program = EXIM / "usr/sbin/exim4"
    assert program.exists(), "exim is missing: run make test-long, which fetches it"
    (wrapper,) = EXIM.glob("usr/lib/*/libnss_wrapper.so")
    folder, port = quick_folder("sendonce-exim-"), free_port()
    folder.chmod(0o755)
    for name in ("spool", "log"):
        (folder / name).mkdir()
        shutil.chown(folder / name, "mail", "mail")
    (folder / "exim.conf").write_text(_EXIM.format(folder=folder, port=port, settings=settings))
    # It looks for the user of its Debian package, which is not installed here.
    for name, entry in (("passwd", "Debian-exim:x:8:8::/:/bin/false"), ("group", "Debian-exim:x:8:")):
        (folder / name).write_text(f"{Path('/etc', name).read_text()}{entry}\n")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(wrapper.parent),
        "LD_PRELOAD": str(wrapper),
        "NSS_WRAPPER_PASSWD": str(folder / "passwd"),
        "NSS_WRAPPER_GROUP": str(folder / "group"),
    }
    server = Exim([str(program), "-C", str(folder / "exim.conf"), "-bdf"], folder, port, environment)
    with _running(server):
        yield server


@contextmanager
def _running(server: MailServer) -> Iterator[None]:
    try:
        server.start()
        yield
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            return connection.recv(3) == b"220"
    except OSError:
        return False
