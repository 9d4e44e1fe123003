"""A user's house: the sandbox, `sendonce serve` and the command line, each a real process."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.world import PROGRAM, Process, Running, SandboxSes, free_port, quick_start, until
from tests.nursery import run_program

SECRET = "the-house-secret"


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(
    url: str, body: Any = None, *, method: str | None = None, headers: dict[str, str] | None = None
) -> Answer:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return Answer(reply.status, reply.read().decode(), dict(reply.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(), dict(error.headers))


class House:
    service: Running

    def __init__(self, folder: Path, database_url: str, sandbox: SandboxSes, port: int) -> None:
        self.folder = folder
        self.sandbox = sandbox
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            "PYTHONUTF8": "1",
            **sandbox.environment,
            "DATABASE_URL": database_url,
            "STATE_DIR": str(folder / "state"),
            "PORT": str(port),
            "APP_BASE_URL": self.url,
            "EXECUTOR_SHARED_SECRET": SECRET,
            "UNSUBSCRIBE_SECRET": "unsubscribe",
            "MAIL_FOOTER_ADDRESS": "Riga, 1 Example Street",
            "TEST_EMAILS": "tester@example.org",
            "RATE_LIMIT_PER_SEC": "200",
            "CONCURRENCY": "4",
            "BURY_INTERVAL_SECONDS": "0.5",
            "IN_DOUBT_QUIET_SECONDS": "2",
            "RETRY_BASE_SECONDS": "0.5",
            "LOG_FORMAT": "json",
        }

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """A command as a user types it."""
        done = run_program(arguments, self.environment, self.folder)
        assert done.returncode == code, done.stderr + done.stdout
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return ask(self.url + path, body, headers=headers)

    def mailout(self, mailout_id: str) -> dict[str, Any]:
        answer = ask(f"{self.url}/mailouts/{mailout_id}", headers={"Authorization": f"Bearer {SECRET}"})
        assert answer.status == 200, answer.text
        result: dict[str, Any] = answer.json
        return result

    def wait_for(self, mailout_id: str, status: str, seconds: float = 40.0) -> dict[str, Any]:
        def there() -> dict[str, Any] | None:
            shown = self.mailout(mailout_id)
            time.sleep(0.05)
            return shown if shown["status"] == status else None

        return until(there, seconds, f"mailout {mailout_id} is {status}")  # type: ignore[no-any-return]

    def wait_until(self, condition: Callable[[], Any], what: str, seconds: float = 40.0) -> Any:
        def calmly() -> Any:
            time.sleep(0.05)
            return condition()

        return until(calmly, seconds, what)

    def accepted(self) -> list[str]:
        """Whom the provider accepted letters for, by its own log."""
        return sorted(row["to"][0] for row in self.sandbox.acceptances())

    def letter_to(self, address: str) -> str:
        """The newest raw letter that the provider took for an address."""
        row = [row for row in self.sandbox.acceptances() if row["to"] == [address]][-1]
        return (self.sandbox.directory / "messages" / f"{row['message_id']}.eml").read_text()

    def unsubscribe_link(self, address: str) -> str:
        unfolded = re.sub(r"\r?\n[ \t]", " ", self.letter_to(address))
        found = re.search(r"^List-Unsubscribe:\s*<([^>]+)>", unfolded, re.MULTILINE)
        assert found is not None
        return found.group(1)


@contextmanager
def housed(
    folder: Path,
    database_url: str,
    sandbox_flags: Sequence[str] = (),
    *,
    through: Sequence[str] = (),
    **environment: str,
) -> Iterator[House]:
    """``through`` is a command that runs the service; settings are changed by name."""
    port = free_port()
    flags = ["--max-rate=1000", f"--events-url=http://127.0.0.1:{port}/ses-events", *sandbox_flags]
    sandbox = SandboxSes(folder / "sandbox", ["--subscribe", "--keep-messages=1000", *flags])
    house = House(folder, database_url, sandbox, port)
    house.environment |= environment
    log = folder / "serve.log"
    if through:
        service: Running = Process([*through, *PROGRAM, "serve"], house.environment, log, folder)
    else:
        service = quick_start(["serve"], house.environment, log, folder)
    house.service = service
    try:
        house.wait_until(lambda: _ready(house.url), "the service is ready", 30)
        yield house
    finally:
        service.end()
        sandbox.stop()


def _ready(url: str) -> bool:
    try:
        return ask(f"{url}/readyz").status == 200
    except OSError:
        return False
