"""What comes from outside: garbage, naughty names, and who asks for the metrics."""

from __future__ import annotations

import csv
import http.client
import json
import socket
import threading
from pathlib import Path

import pytest

from tests.adapters.worker.stage import accepted
from tests.crash.world import World, free_port, until

NAUGHTY_STRINGS = Path(__file__).parents[3].parent / "shared" / "corpora" / "blns.json"


def test_an_endpoint_that_answers_garbage_takes_nothing_for_sent(world: World) -> None:
    world.plan(3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_babble, args=(server,), daemon=True).start()
        worker = world.worker(AWS_ENDPOINT_URL_SESV2=f"http://127.0.0.1:{port}", DOUBT_CANARY="false")
        until(lambda: world.states() == {"in_doubt": 3}, 20, "all is in doubt")
        assert worker.end() == 0, worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()


def _babble(server: socket.socket) -> None:
    while True:
        try:
            wire, _ = server.accept()
        except OSError:
            return
        with wire:
            wire.recv(1 << 20)
            wire.sendall(b"\x00\xff\x15\x03\x01 \xd0\x9d\xd0\xb5\xd1\x82 HTTP?\r\n\r\n")


@pytest.mark.skipif(
    not NAUGHTY_STRINGS.exists(), reason="the corpus of naughty strings is not beside the repository"
)
def test_naughty_names_are_sent_or_refused_and_never_stop_the_rest(world: World) -> None:
    names = json.loads(NAUGHTY_STRINGS.read_text(encoding="utf-8"))
    people = world.directory / "people.csv"
    with people.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["email", "name"])
        writer.writerows((f"n{number:04}@example.org", name) for number, name in enumerate(names))
    letter = world.directory / "letter.md"
    letter.write_text(
        "---\nsubject: Dear {{ name | default: 'friend' }}\n---\n\nDear {{ name | default: 'friend' }}!\n",
        encoding="utf-8",
    )
    world.run("subscribers", "import", str(people))
    mailout = world.ask("mailout", "create", str(letter))["id"]
    world.run("mailout", "send", mailout)
    states = world.states()
    assert set(states) <= {"sent", "failed"}
    assert states["sent"] == len(accepted(world)) == len(set(accepted(world)))
    reasons = world.eye.rows("SELECT reason FROM message_jobs WHERE state = 'failed'")
    assert all("name" in reason[0].lower() for reason in reasons)
    assert states["sent"] > 0.9 * sum(states.values())


def test_the_metrics_of_a_worker_are_for_who_has_the_secret(world: World) -> None:
    """EXECUTOR_SHARED_SECRET, where it is set."""
    port = free_port()
    world.worker(METRICS_PORT=str(port), EXECUTOR_SHARED_SECRET="the secret of the house")

    def asked(**headers: str) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics", headers=headers)
            return connection.getresponse().status
        except ConnectionRefusedError:
            return None
        finally:
            connection.close()

    assert until(asked, 20, "the metrics are served") == 401
    assert asked(Authorization="Bearer the secret of the house") == 200
