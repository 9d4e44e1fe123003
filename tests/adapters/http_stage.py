"""What tests of the HTTP service share: the real server on a loopback socket, and a plain client."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from sendonce.adapters.metrics import Metrics
from sendonce.adapters.stores.sql import open_store
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.http import create_app, server_config
from sendonce.entrypoints.http.connections import ConnectionLimits
from sendonce.settings import load_settings
from tests.conformance.stage import Stage

SECRET = "a shared secret of the tests"
UNSUBSCRIBE_SECRET = "signs the links of the tests"
BEARER = {"Authorization": f"Bearer {SECRET}"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class HttpStage:
    """A running service, its store, and the words that the tests are told in."""

    def __init__(self, port: int, store: SqlStore) -> None:
        self.port = port
        self.store = store
        self.stage = Stage(store)
        self.nudges = 0

    def nudge(self) -> None:
        self.nudges += 1

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own. A dict is sent as JSON."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, content, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def start(self, mailout_id: str, **more: Any) -> Answer:
        return self.ask("POST", "/send-mailout", {"mailout_id": mailout_id, "auth_token": SECRET, **more})

    def ready_mailout(self, recipients: int = 1) -> str:
        self.stage.subscribe(range(recipients))
        return self.stage.mailout()

    def planned_job(self) -> Job:
        (job,) = self.store.jobs.list(dispatch_id=self.stage.running())
        return job

    def execute(self, statement: str) -> None:
        """Do to the database what no program should."""
        with self.store.database.writing() as tx:
            tx.exec_driver_sql(statement)


def token_of(job: Job) -> str:
    return sign_token(job.id, UNSUBSCRIBE_SECRET.encode())


class QuickServer(uvicorn.Server):
    """Looks every hundredth of a second, and not every tenth, whether it is to stop."""

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks // 10):
            ticks += 1
            await asyncio.sleep(0.01)


@contextmanager
def serving(
    database_url: str,
    environment: Mapping[str, str] | None = None,
    tick: Callable[[float], Awaitable[dict[str, Any]]] | None = None,
    tenant_id: str = DEFAULT_TENANT,
    limits: ConnectionLimits | None = None,
) -> Iterator[HttpStage]:
    """The service as uvicorn runs it, in a thread. The socket listens before the server is up."""
    given = {"EXECUTOR_SHARED_SECRET": SECRET, "UNSUBSCRIBE_SECRET": UNSUBSCRIBE_SECRET, "HOME": "/nowhere"}
    settings = load_settings({**given, "DATABASE_URL": database_url, **(environment or {})}, dotenv=None)
    store = open_store(database_url)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    stage = HttpStage(listener.getsockname()[1], store)
    metrics = Metrics(store.jobs.count_by_state)
    app = create_app(settings, store, metrics, nudge=stage.nudge, tick=tick, tenant_id=tenant_id)
    server = QuickServer(server_config(app, "127.0.0.1", 0, limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield stage
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
        listener.close()
        store.close()
