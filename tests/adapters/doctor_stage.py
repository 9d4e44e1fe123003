"""What the doctor's tests share: settings that stop nothing, and a look at what the doctor says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from sendonce.adapters.stores.sql import open_store
from sendonce.domain.engine.checks import Check, Verdict
from sendonce.flows.engine.doctor import Probe
from sendonce.settings import load_settings
from sendonce.wiring.doctor import run_doctor

TOPIC = "arn:aws:sns:us-east-1:123456789012:ses-events"
WELL = {
    "EXECUTOR_SHARED_SECRET": "a shared secret of the tests",
    "UNSUBSCRIBE_SECRET": "signs the links of the tests",
    "MAIL_FOOTER_ADDRESS": "Example Ltd, 1 Example Street",
    "TEST_EMAILS": "me@example.com",
    "APP_BASE_URL": "http://127.0.0.1:1",
}
SES = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "SANDBOXACCESSKEY",
    "AWS_SECRET_ACCESS_KEY": "sandbox-secret",
    "SES_FROM_EMAIL": "news@example.com",
    "SES_CONFIGURATION_SET": "sandbox",
    "SNS_ALLOWED_TOPIC_ARNS": TOPIC,
}


def adopt(database_url: str) -> str:
    """Tests copy their database files, and a copy is refused until somebody says that it is in use."""
    store = open_store(database_url)
    store.ledger.vouch(store.fingerprint(), "tests")
    store.close()
    return database_url


class Findings:
    """The checks by name; where a name comes twice the worst is kept."""

    def __init__(self, checks: Sequence[Check]) -> None:
        gravity = list(Verdict)
        self.all = list(checks)
        self._worst: dict[str, Check] = {}
        for check in sorted(checks, key=lambda it: gravity.index(it.verdict)):
            self._worst[check.name] = check

    def __getitem__(self, name: str) -> Check:
        return self._worst[name]

    def __contains__(self, name: str) -> bool:
        return name in self._worst

    def stops(self) -> set[str]:
        return {check.name for check in self.all if check.verdict is Verdict.STOP}

    def told(self, name: str) -> str:
        """The verdict and what was found, after the promise that what is not well comes with a fix."""
        check = self[name]
        assert bool(check.fix) == (check.verdict is not Verdict.OK), check
        return f"{check.verdict}: {check.what}"


def doctor(
    database_url: str, state: Path, environment: Mapping[str, str] | None = None, mailout: str | None = None
) -> Findings:
    """All of the doctor, on settings that stop nothing but for what ``environment`` changes."""
    given = {**WELL, "DATABASE_URL": database_url, "STATE_DIR": str(state), "HOME": str(state)}
    settings = load_settings({**given, **(environment or {})}, dotenv=None)
    return Findings(asyncio.run(run_doctor(settings, mailout)))


def ask(probe: Probe) -> Findings:
    """One probe alone."""

    async def examine() -> Sequence[Check]:
        return await probe.examine()

    return Findings(asyncio.run(examine()))


class FakeSes:
    """Answers GET requests of the SES API from a table: path → body, or (status, body)."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.asked: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.asked.append(self.path)
                answer = answers.get(self.path, (404, {"__type": "NotFoundException", "message": "no such"}))
                if isinstance(answer, list):  # one after the other, the last one stays
                    answer = answer.pop(0) if len(answer) > 1 else answer[0]
                status, body = answer if isinstance(answer, tuple) else (200, answer)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeSes:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


ACCOUNT = "/v2/email/account"
IDENTITY = "/v2/email/identities/"
SET = "/v2/email/configuration-sets/sandbox"
DESTINATIONS = f"{SET}/event-destinations"

HEALTHY_ACCOUNT = {
    "EnforcementStatus": "HEALTHY",
    "ProductionAccessEnabled": True,
    "SendingEnabled": True,
    "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 10.0},
}
VERIFIED = {
    "IdentityType": "DOMAIN",
    "VerifiedForSendingStatus": True,
    "DkimAttributes": {"SigningEnabled": True, "Status": "SUCCESS", "Tokens": ["tok1", "tok2", "tok3"]},
}
DESTINATION = {
    "Name": "events",
    "Enabled": True,
    "MatchingEventTypes": ["SEND", "REJECT", "BOUNCE", "COMPLAINT", "DELIVERY", "DELIVERY_DELAY"],
    "SnsDestination": {"TopicArn": TOPIC},
}
WELL_SES: dict[str, Any] = {
    ACCOUNT: HEALTHY_ACCOUNT,
    f"{IDENTITY}example.com": VERIFIED,
    SET: {"ConfigurationSetName": "sandbox", "SendingOptions": {"SendingEnabled": True}},
    DESTINATIONS: {"EventDestinations": [DESTINATION]},
}
