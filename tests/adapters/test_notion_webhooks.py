"""What Notion posts to us: presses of a button and signed events, and what strangers post instead."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from sendonce.adapters.notion.pages import letter_of
from sendonce.adapters.notion.webhooks import (
    SIGNATURE_HEADER,
    is_button_press,
    is_signed,
    read_button_press,
    read_event,
    read_handshake,
)
from sendonce.errors import BadInput
from tests.adapters.notion_stage import SEEDS, NotionStage, nested

TOKEN = "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"


class Listener:
    """A receiver that keeps the raw posts and answers with ``status``."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                listener.posts.append((dict(self.headers.items()), body))
                self.send_response(listener.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/send-mailout"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def test_the_button(stage: NotionStage, listener: Listener) -> None:
    """A press posts the page with its properties; the secret comes in a header of the author's choice."""
    wish = {"page": SEEDS.letter, "url": listener.url, "headers": {"X-Mailout-Token": "s3cret"}}
    pressed = stage.sandbox.post("notion/press", wish)
    headers, body = listener.posts[0]
    assert headers["X-Mailout-Token"] == "s3cret"
    content = json.loads(body)
    assert is_button_press(content)
    press = read_button_press(content)
    assert (press.page_id, press.event_id) == (SEEDS.letter, pressed["event_id"])
    assert letter_of(press.page).belongs_to(SEEDS.letters)


def test_an_error_pauses_the_button(stage: NotionStage, listener: Listener) -> None:
    """As in Notion: one bad answer, and the button is dead until somebody resumes it."""
    wish = {"page": SEEDS.letter, "url": listener.url}
    listener.status = 409
    assert stage.sandbox.post("notion/press", wish)["paused"]
    listener.status = 200
    assert stage.sandbox.post("notion/press", wish)["status"] is None
    stage.sandbox.post("notion/resume")
    assert stage.sandbox.post("notion/press", wish)["status"] == 200
    assert len(listener.posts) == 2


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"data": {}},
        {"source": {}, "data": {}},
        {"source": {}, "data": {"id": 5}},
        {"source": {}, "data": {"id": "x"}},
        {"source": {}, "data": {"id": SEEDS.letter, "object": "database"}},
        {"source": [], "data": {"id": SEEDS.letter}},
    ],
)
def test_what_no_button_posts(content: dict[str, Any]) -> None:
    """A body without a page is BadInput."""
    with pytest.raises(BadInput):
        read_button_press(content)


def test_a_webhook_from_handshake_to_event(stage: NotionStage, listener: Listener) -> None:
    """The first post brings the token, and each event after it is signed with it."""
    stage.sandbox.post("notion/webhook", {"url": listener.url})
    handshake = read_handshake(listener.posts[0][1])
    assert handshake is not None
    assert handshake.verification_token not in repr(handshake)
    for author in ("person", "bot"):
        stage.sandbox.post("notion/event", {"url": listener.url, "page": SEEDS.letter, "author": author})
    (headers, body), (_, by_bot) = listener.posts[1:]
    token = handshake.verification_token
    assert is_signed(body, headers[SIGNATURE_HEADER], token)
    assert not is_signed(body + b" ", headers[SIGNATURE_HEADER], token)
    assert not is_signed(by_bot, headers[SIGNATURE_HEADER], token)
    assert read_handshake(body) is None
    event = read_event(body)
    assert (event.type, event.entity_type, event.entity_id) == (
        "page.properties_updated",
        "page",
        SEEDS.letter,
    )
    assert not event.by_bots_only
    assert read_event(by_bot).by_bots_only


def test_signatures() -> None:
    """Only the right digest of the very bytes under the right token passes."""
    body = b'{"id": "1"}'
    digest = hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
    assert is_signed(body, f"sha256={digest}", TOKEN)
    for header in (
        None,
        "",
        digest,
        f"sha1={digest}",
        f"sha256={digest[:-1]}",
        f"sha256={'0' * 64}",
        "sha256=é" * 8,
    ):
        assert not is_signed(body, header, TOKEN)
    nobody = hmac.new(b"", body, hashlib.sha256).hexdigest()
    assert not is_signed(body, f"sha256={nobody}", "")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"\xff", b'{"a":NaN}', nested(100_000), b'{"id": "1", "id": "2"}']
)
def test_hostile_bodies(body: bytes) -> None:
    """What is not a sound JSON object is BadInput, at any depth."""
    with pytest.raises(BadInput):
        read_handshake(body)
    with pytest.raises(BadInput):
        read_event(body)


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"verification_token": 5}', b'{"verification_token": "a\\nb"}', b'{"verification_token": ""}'],
)
def test_no_handshake(body: bytes) -> None:
    """A token that could not be a header or an environment variable is none."""
    assert read_handshake(body) is None


@pytest.mark.parametrize("body", [b"{}", b'{"id": "1"}', b'{"id": "1", "entity": {"id": "x"}}'])
def test_events_without_an_entity(body: bytes) -> None:
    """An event that names no page is BadInput."""
    with pytest.raises(BadInput):
        read_event(body)
