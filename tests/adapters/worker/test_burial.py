"""Who is buried, by proof or by word, and who is not."""

from __future__ import annotations

import shutil
import socket
import threading
from pathlib import Path

from tests.adapters.worker.stage import accepted, bury
from tests.crash.world import CONNECTIONS, PROGRAM, World, opened, until


def test_a_worker_cut_off_from_postgres_is_not_buried(tmp_path: Path, postgres_url: str) -> None:
    """Its database connection is dead; it is not, and the letters in its hands may still leave."""
    with opened(World(tmp_path, postgres_url)) as world:
        world.plan(200)
        world.sandbox.faults(slow=[300, 300])
        with Bridge(tmp_path, postgres_url) as bridge:
            lonely = world.worker(DATABASE_URL=bridge.url)
            until(lambda: world.eye.sending_of(lonely.pid), 20, "the worker has letters")
            bridge.cut()
            held = world.eye.sending_of(lonely.pid)
            other = world.worker()
            until(lambda: world.eye.count("sent") >= 50, 60, "another worker has buried whom it could")
            assert world.eye.sending_of(lonely.pid) == held > 0
            lonely.kill()
            until(lambda: world.eye.sending_of(lonely.pid) == 0, 20, "now it is dead, and buried")
            assert other.end() == 0


def test_a_worker_whose_postgres_stalls_can_be_stopped(tmp_path: Path, postgres_url: str) -> None:
    """It does not wait for the answer, and loses nothing: the next worker settles what is in the journal."""
    with opened(World(tmp_path, postgres_url)) as world:
        world.plan(200)
        world.sandbox.faults(slow=[20, 20])
        with Bridge(tmp_path, postgres_url) as bridge:
            stalled = world.worker(DATABASE_URL=bridge.url)
            until(lambda: world.eye.count("sent") >= 20, 20, "letters leave")
            bridge.stall()
            assert stalled.end() == 1
            assert "the next worker settles what this one sent" in stalled.log.read_text()
        world.run("worker", "--until-idle")
        assert world.states() == {"sent": 200}
        assert sorted(accepted(world)) == sorted(world.recipients)


class Bridge:
    """A second way to PostgreSQL's socket, which can be cut."""

    def __init__(self, directory: Path, url: str) -> None:
        base, _, query = url.partition("?")
        host = dict(pair.split("=") for pair in query.split("&"))["host"]
        self._target = str(Path(host.replace("%2F", "/")) / ".s.PGSQL.5432")
        self.url = f"{base}?host={directory}"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(directory / ".s.PGSQL.5432"))
        self._server.listen()
        self._flowing = threading.Event()
        self._flowing.set()
        self._pairs: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Bridge:
        self._run(self._accept)
        return self

    def _run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            self._pairs += [near, far]
            self._run(self._pump, near, far)
            self._run(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
        except OSError:
            return

    def stall(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        self._flowing.clear()

    def cut(self) -> None:
        self._flowing.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._pairs:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def __exit__(self, *_: object) -> None:
        if self._server.fileno() >= 0:
            self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._pairs:
            end.close()


def test_two_living_workers_with_different_boot_ids_do_not_bury_each_other(world: World) -> None:
    """As in two containers that share a state volume: one recipient once got two letters that way."""
    world.plan(200)
    (world.directory / "boot_id").write_text("00000000-1111-2222-3333-444444444444\n")
    mount = f"mount --bind {world.directory}/boot_id /proc/sys/kernel/random/boot_id"
    container = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "container", *PROGRAM]
    here = world.worker()
    until(lambda: world.eye.sending_of(here.pid), 20, "the first has letters on the wire")
    there = world.worker(program=container)
    until(lambda: world.registered(there), 20, "the second is at work")
    until(lambda: world.eye.count("sent") == 200, 60, "all is sent")
    for worker in (here, there):
        assert worker.end() == 0, worker.log.read_text()
        assert "buried" not in worker.log.read_text()
    assert len(accepted(world)) == len(set(accepted(world))) == 200


def test_what_a_lost_state_directory_left_is_buried_by_word(world: World) -> None:
    """The container and its volume are gone, and over SMTP no signature runs out."""
    world.plan(20)
    worker = world.worker(STATE_DIR=str(world.disk / "lost"))
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    (known,) = world.ask("workers", "list")
    assert (known["pid"], known["ended_at"]) == (worker.pid, None)
    worker.kill()
    shutil.rmtree(world.disk / "lost")
    left = world.eye.count("sending")
    assert bury(world) == 0
    assert "--i-know-it-is-dead" in world.run("workers", "bury", known["id"], expect=3)
    told = world.ask("workers", "bury", known["id"], "--i-know-it-is-dead")
    assert told == {"id": known["id"], "in_doubt": left}
    assert world.eye.count("in_doubt") == left
    assert world.ask("workers", "list") == []
    assert "over already" in world.run("workers", "bury", known["id"], "--i-know-it-is-dead", expect=3)


def test_no_word_buries_a_worker_that_can_be_seen_to_live(world: World) -> None:
    world.plan(300)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    (known,) = world.ask("workers", "list")
    assert "is alive" in world.run("workers", "bury", known["id"], "--i-know-it-is-dead", expect=3)
    worker.kill()
    assert world.ask("workers", "bury", known["id"], "--i-know-it-is-dead")["in_doubt"] == 0
    assert world.eye.count("in_doubt") <= CONNECTIONS


def test_a_living_worker_that_was_buried_leaves_with_a_word(world: World) -> None:
    """Somebody was wrong about its death: it sends nothing more, says so, and a new one goes on."""
    world.plan(400)
    worker = world.worker()
    until(lambda: world.eye.count("sent") >= 20, 20, "letters are sent")
    ((worker_id,),) = world.eye.rows("SELECT id FROM workers WHERE ended_at IS NULL")
    world.run("workers", "bury", worker_id, "--i-know-it-is-dead", STATE_DIR=str(world.disk / "elsewhere"))
    assert worker.wait() == 1
    assert "may claim nothing more" in worker.log.read_text()
    world.serve()
    world.run("worker", "--until-idle")
    assert len(accepted(world)) == len(set(accepted(world)))
    assert world.states().get("sent", 0) + world.states().get("in_doubt", 0) == 400
