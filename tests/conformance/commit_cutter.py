"""A proxy in front of PostgreSQL that loses the connection at a COMMIT, before or after it happened."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Thread

from sqlalchemy.engine import make_url


class CommitCutter:
    """Forwards everything. After ``cut`` the next COMMIT is lost, with its connection."""

    def __init__(self, url: str) -> None:
        self._target = make_url(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed = Event()
        self._lose_the_question = False
        self._late = False
        self._delivered = Event()
        self._sockets: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """The same database, through the proxy."""
        host, port = self._listener.getsockname()
        through = self._target.set(host=host, port=port, query={"sslmode": "disable"})
        return through.render_as_string(hide_password=False)

    def cut(self, *, before: bool, late: bool = False) -> None:
        """Lose the next COMMIT: the question itself if ``before``, else only its answer.

        With ``late`` the question is on its way until ``deliver``, long after its client has gone.
        """
        self._lose_the_question, self._late = before, late
        self._delivered.clear()
        self._armed.set()

    def deliver(self) -> None:
        self._delivered.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._sockets:
            _hang_up(connection)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                self._sockets += [client, server]
                for talk in (self._questions, self._answers):
                    thread = Thread(target=talk, args=(client, server))
                    self._threads.append(thread)
                    thread.start()

    def _connect(self) -> socket.socket:
        folder = self._target.query.get("host")
        if isinstance(folder, str):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{folder}/.s.PGSQL.{self._target.port or 5432}")
            return server
        return socket.create_connection((self._target.host or "127.0.0.1", self._target.port or 5432))

    def _questions(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and self._armed.is_set():
                    self._armed.clear()
                    self._lose(data, client, server)
                    return
                server.sendall(data)
        _hang_up(client, server)

    def _lose(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        if self._lose_the_question:
            _hang_up(client, server)
            return
        # The client's side goes first: the answer shows that it happened, and reaches nobody.
        client.shutdown(socket.SHUT_WR)
        if self._late:
            self._delivered.wait(30)
        server.sendall(data)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        _hang_up(client, server)


def _hang_up(*connections: socket.socket) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
