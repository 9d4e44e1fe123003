"""Debian's Dovecot for the tests: a process of its own with a folder and ports of its own, on loopback.

It is not the system's instance. It needs root, as all mail servers do to start.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.crash.world import free_port, until
from tests.postgres import quick_folder

DOVECOT = Path("/usr/sbin/dovecot")
USER, PASSWORD = "news@example.com", 'a "quoted" \\ пароль'

_CONFIGURATION = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{folder}/server.pem
ssl_key = <{folder}/server.key
disable_plaintext_auth = yes
auth_mechanisms = plain login
first_valid_uid = 1
mail_location = maildir:{folder}/mail/%u
passdb {{
  driver = passwd-file
  args = scheme=plain username_format=%u {folder}/passwd
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  mailbox "Отправленные" {{
    special_use = \\Sent
    auto = create
  }}
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
"""


@dataclass
class Dovecot:
    folder: Path
    port: int
    tls_port: int

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def deliver(self, raw: bytes, mailbox: str = "INBOX") -> None:
        """Put a message into a folder, through the server's own tool."""
        self._doveadm("save", "-u", USER, "-m", mailbox, told=raw)

    def seen(self) -> list[bytes]:
        """The messages of the inbox that somebody has marked as read."""
        return self._doveadm("search", "-u", USER, "mailbox", "INBOX", "SEEN").splitlines()

    def renumber(self) -> None:
        """Its index of the inbox is lost: the next reader finds another UIDVALIDITY."""
        for index in (self.folder / "mail" / USER).glob("dovecot*"):
            index.unlink()

    def _doveadm(self, *arguments: str, told: bytes = b"") -> bytes:
        command = ["doveadm", "-c", str(self.folder / "dovecot.conf"), *arguments]
        return subprocess.run(command, input=told, check=True, capture_output=True).stdout


@contextmanager
def running_dovecot() -> Iterator[Dovecot]:
    folder = quick_folder("sendonce-dovecot-")
    server = Dovecot(folder, free_port(), free_port())
    _prepare(server)
    command = [str(DOVECOT), "-F", "-c", str(folder / "dovecot.conf")]
    with (folder / "output").open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        until(lambda: child.poll() is not None or _listens(server.port), 20, "Dovecot listens")
        assert child.poll() is None, (folder / "output").read_text() + (folder / "dovecot.log").read_text()
        yield server
    finally:
        child.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        shutil.rmtree(folder)


def _prepare(server: Dovecot) -> None:
    folder = server.folder
    folder.chmod(0o755)
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(server.ca_file)
    certificate.private_key_pem.write_to_path(folder / "server.key")
    for number, pem in enumerate(certificate.cert_chain_pems):
        pem.write_to_path(folder / "server.pem", append=number > 0)
    # A colon ends a field of this file, and there is none in the password.
    (folder / "passwd").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    (folder / "mail").mkdir()
    shutil.chown(folder / "mail", "mail", "mail")
    settings = {"folder": folder, "port": server.port, "tls_port": server.tls_port}
    (folder / "dovecot.conf").write_text(_CONFIGURATION.format(**settings))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
