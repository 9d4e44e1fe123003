"""Our Notion client, against the stand-in and against servers that behave badly."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import trustme

from sendonce.adapters.notion.answers import NotionBusy, ReplyLost
from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.pace import Pace, Policy
from sendonce.domain.mailouts.page_ids import looks_like_page, page_id
from sendonce.errors import BadInput, NotFound, RefusedByRule, SendonceError, Unavailable
from tests.adapters.http_server import ScriptedServer, Step, answer, dripping
from tests.adapters.notion_stage import QUICK, SEEDS, NotionStage, listing, nested

ME = "/v1/users/me"
LETTER = f"/v1/pages/{SEEDS.letter}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotionStage]:
    stage = NotionStage(tmp_path_factory.mktemp("notion"))
    yield stage
    stage.close()


TRANSIENT = ["conflict", "rate_limited", "error", "bad_gateway", "unavailable", "timeout", "overload"]
LOST = ["error_after", "bad_gateway_after", "reset_after", "truncate_after", "garbage_after", "html_after"]


@pytest.mark.parametrize("mode", [*TRANSIENT, "reset_before", *LOST])
def test_reading_survives_every_passing_fault(stage: NotionStage, mode: str) -> None:
    """A GET and a PATCH are asked again after each fault that may pass, and get through."""
    stage.fail(mode, mode, retry_after=0)
    assert stage.client.get(ME)["type"] == "bot"
    stage.fail(mode, retry_after=0)
    stage.client.update(LETTER, {"properties": {"Запланировано": {"number": 7}}})
    assert stage.look(SEEDS.letter)["Запланировано"] == 7


@pytest.mark.parametrize("mode", ["conflict", "rate_limited", "overload"])
def test_creation_is_repeated_where_notion_says_it_did_nothing(stage: NotionStage, mode: str) -> None:
    """409, 429 and 529 mean that nothing was made: the creation is asked again and happens once."""
    before = len(stage.rows(SEEDS.letters))
    stage.fail(mode, on="POST /v1/pages", retry_after=0)
    stage.client.create("/v1/pages", {"parent": {"data_source_id": SEEDS.letters_source}, "properties": {}})
    assert len(stage.rows(SEEDS.letters)) == before + 1


@pytest.mark.parametrize("mode", [*LOST, "error", "bad_gateway", "unavailable", "timeout"])
def test_a_doubtful_creation_is_not_repeated(stage: NotionStage, mode: str) -> None:
    """Where it is unknown whether something was made, the client does not make it again."""
    before = stage.asked("POST /v1/pages")
    stage.fail(mode, on="POST /v1/pages")
    with pytest.raises(ReplyLost):
        stage.client.create("/v1/pages", {"parent": {"data_source_id": SEEDS.letters_source}})
    assert stage.asked("POST /v1/pages") == before + 1


def test_gives_up_after_some_tries(stage: NotionStage) -> None:
    """A Notion that stays broken is Unavailable, with what it said last."""
    stage.fail(*["unavailable"] * 9)
    with pytest.raises(NotionBusy, match=r"503 to GET /v1/users/me: The sandbox was asked for this\."):
        stage.client.get(ME)
    stage.fail()


def test_a_long_wait_is_handed_to_the_caller(stage: NotionStage) -> None:
    """A Retry-After beyond our patience raises at once and says when; nobody else asks meanwhile."""
    client = stage.connect()
    stage.fail("rate_limited", retry_after=120)
    asked = stage.asked("GET /v1/users/me")
    started = time.monotonic()
    with pytest.raises(NotionBusy) as caught:
        client.get(ME)
    with pytest.raises(NotionBusy):
        client.get(ME)
    client.close()
    assert caught.value.retry_after == 120
    assert time.monotonic() - started < 60
    assert stage.asked("GET /v1/users/me") == asked + 1


def test_retry_after_is_obeyed(stage: NotionStage) -> None:
    """The next try comes no sooner than Notion said."""
    stage.fail("rate_limited", retry_after=1)
    started = time.monotonic()
    stage.client.get(ME)
    assert time.monotonic() - started >= 1


def test_refusals_say_what_to_do(stage: NotionStage) -> None:
    """A wrong token, a page that is not shared and a bad value each have their error and fix."""
    stranger = stage.connect(token="ntn_wrong")
    with pytest.raises(RefusedByRule, match="my-integrations"):
        stranger.get(ME)
    stranger.close()
    with pytest.raises(NotFound, match="Connections, and add the integration"):
        stage.client.get(f"/v1/pages/{SEEDS.unshared}")
    with pytest.raises(BadInput, match="Nope is not a property that exists"):
        stage.client.update(LETTER, {"properties": {"Nope": {"number": 1}}})


def test_the_token_is_never_told(stage: NotionStage) -> None:
    """No error carries the token."""
    client = stage.connect(token="ntn_very_secret")
    with pytest.raises(RefusedByRule) as caught:
        client.get(ME)
    client.close()
    assert "very_secret" not in str(caught.value) + repr(caught.value)


def test_lists_are_read_to_the_end(stage: NotionStage) -> None:
    """A list goes on over its pages of a hundred, in order."""
    page = stage.write({"Название": "Длинное"}, [{"divider": {}}] * 205)
    blocks = list(stage.client.pages(f"/v1/blocks/{page}/children"))
    assert len({block["id"] for block in blocks}) == 205


def talk_to(script: list[Step], policy: Policy = QUICK) -> SendonceError | dict[str, object]:
    """What a client makes of a server that follows a script."""
    with ScriptedServer(script) as server:
        client = NotionClient("ntn_x", server.url, policy=policy)
        try:
            return client.get(ME)
        except SendonceError as exc:
            return exc
        finally:
            client.close()


ONCE = Policy(rate=10_000, burst=10, tries=1, patience=3, request_seconds=0.3)


@pytest.mark.parametrize(
    "step",
    [
        answer(200, b"<html>"),
        answer(200, b"[]"),
        answer(200, b'{"a": NaN}'),
        answer(200, b'{"a": 1, "a": 2}'),
        answer(200, nested(100_000)),
        answer(200, b'{"a": "\xff"}'),
        answer(200, b""),
        answer(302, b"", Location="http://169.254.169.254/"),
        Step(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "close"),
        Step(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b" " * 1000, "close"),
        Step(b"HTTP/1.1 2000 OK\r\n\r\n", "close"),
        Step(b"\x16\x03\x01", "close"),
        Step(b"", "hang"),
        Step(b"", "reset"),
    ],
)
def test_hostile_answers_are_unavailable(step: Step) -> None:
    """Whatever a server says instead of JSON, it is an error of ours and nothing is believed."""
    assert isinstance(talk_to([step], ONCE), Unavailable)


def test_endless_answers_are_cut() -> None:
    """An answer larger than any real one is not read to its end."""
    huge = Step(b"HTTP/1.1 200 OK\r\nContent-Length: 40000000\r\n\r\n" + b" " * 40_000_000, "close")
    slow = Policy(tries=1, request_seconds=20, patience=30)
    told = talk_to([huge], slow)
    assert isinstance(told, Unavailable)
    assert "more than 33554432 bytes" in str(told)


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    ],
    ids=["headers", "interim answers", "the body"],
)
def test_patience_ends_however_slowly_an_answer_comes(first: bytes, drop: bytes) -> None:
    """A caller is free again when its patience is over, also while bytes still trickle in."""
    policy = Policy(rate=1000, burst=1000, tries=3, patience=0.4, request_seconds=10)
    began = time.monotonic()
    with dripping(first, drop) as port, pytest.raises(Unavailable, match="does not answer"):
        NotionClient("secret", f"http://127.0.0.1:{port}", policy=policy).get("/v1/users/me")
    assert time.monotonic() - began < 8


def test_patience_counts_the_wait_for_other_threads() -> None:
    """A request that waits for another one's answer gives up in time, too."""
    policy = Policy(rate=1000, burst=1000, tries=1, patience=0.3, request_seconds=10)
    with ScriptedServer([Step(b"", "hang")] * 2) as server:
        client = NotionClient("secret", server.url, policy=policy)
        with ThreadPoolExecutor(4) as pool:
            began = time.monotonic()
            asked = [pool.submit(client.get, "/v1/users/me") for _ in range(4)]
            for one in asked:
                with pytest.raises(Unavailable):
                    one.result(8)
            assert time.monotonic() - began < 8


def test_a_closed_keep_alive_is_not_an_error() -> None:
    """A connection that the server closed while idle is replaced without anybody noticing."""
    good = answer(200, {"ok": 1})
    with ScriptedServer([Step(good.reply, "close"), good]) as server:
        client = NotionClient("ntn_x", server.url, policy=ONCE)
        assert client.get(ME) == client.get(ME) == {"ok": 1}
        client.close()


def test_creations_take_a_fresh_connection() -> None:
    """So that a lost reply to one is never just a connection that had died before."""
    good = answer(200, {"ok": 1})
    with ScriptedServer([good] * 3) as server:
        client = NotionClient("ntn_x", server.url, policy=QUICK)
        client.get(ME)
        client.get(ME)
        client.create("/v1/pages", {})
        client.close()
        assert [request.connection for request in server.requests] == [1, 1, 2]
        assert server.requests[0].headers["Notion-Version"] == "2026-03-11"
        assert server.requests[0].headers["Authorization"] == "Bearer ntn_x"


def test_a_list_in_circles_ends() -> None:
    """A cursor that comes again is an error, not an endless loop."""
    with ScriptedServer([answer(200, listing(cursor="again"))] * 5) as server:
        client = NotionClient("ntn_x", server.url, policy=QUICK)
        with pytest.raises(Unavailable, match="circles"):
            list(client.pages("/v1/blocks/x/children"))
        client.close()


def test_nobody_there() -> None:
    """A refused connection is Unavailable, also for a creation: it cannot have happened."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = NotionClient("ntn_x", f"http://127.0.0.1:{port}", policy=ONCE)
    with pytest.raises(Unavailable) as caught:
        client.create("/v1/pages", {})
    assert not isinstance(caught.value, ReplyLost)


def test_certificates_are_checked() -> None:
    """A server with a certificate of an unknown authority gets no token."""
    authority = trustme.CA()
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with ScriptedServer([answer(200, {"ok": 1})] * 2, tls=context) as server:
        wary = NotionClient("ntn_x", server.url, policy=ONCE)
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            wary.get(ME)
        friend = NotionClient("ntn_x", server.url, policy=ONCE, tls=trusting)
        assert friend.get(ME) == {"ok": 1}
        friend.close()


@pytest.mark.parametrize(
    "url", ["http://api.notion.com", "ftp://127.0.0.1", "notion", "http://[", "https://"]
)
def test_the_token_does_not_travel_in_the_clear(url: str) -> None:
    """Plain http is for this machine only."""
    with pytest.raises(BadInput, match="NOTION_API_URL"):
        NotionClient("ntn_x", url)


@pytest.mark.parametrize("token", ["", "a\r\nX: y", "жетон"])
def test_a_bad_token_is_told_at_once(token: str) -> None:
    """A token that cannot be a header is refused before anything is asked."""
    with pytest.raises(BadInput, match="NOTION_TOKEN"):
        NotionClient(token)


def test_pace() -> None:
    """After the burst, turns come at the rate; Notion's wish to wait holds for all."""
    pace = Pace(Policy(rate=0.01, burst=2))
    waits = [pace.wait_for_turn() for _ in range(4)]
    assert waits[:2] == [0, 0]
    assert waits[2:] == pytest.approx([100, 200], abs=5)
    pace.close_for(3000)
    assert pace.wait_for_turn() == pytest.approx(3000, abs=5)


DASHED = "01234567-89ab-cdef-0123-456789abcdef"
BARE = DASHED.replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        DASHED,
        BARE,
        f" {BARE.upper()}\n",
        f"https://www.notion.so/acme/Autumn-news-{BARE}",
        f"https://www.notion.so/acme/Autumn-news-{BARE}?pvs=4#fedcba98765432100123456789abcdef",
        f"https://www.notion.so/{BARE}/",
        f"https://acme.notion.site/Autumn-{BARE}",
        f"https://www.notion.so/acme/fedcba98765432100123456789abcdef?v=1&p={BARE}&pm=s",
        f"https://app.notion.com/p/acme/Осень-{BARE}",
    ],
)
def test_ids_as_people_write_them(text: str) -> None:
    """With dashes, without, or in a link; a page that is open beside its table is the one meant."""
    assert page_id(text) == DASHED
    assert looks_like_page(text)


@pytest.mark.parametrize(
    "text", ["", "news", BARE[1:], BARE + "0", "https://notion.so/", "https://[", f"x{BARE}"]
)
def test_what_is_no_page(text: str) -> None:
    """Anything else is told with what a good one looks like."""
    assert not looks_like_page(text)
    with pytest.raises(BadInput, match="Copy link"):
        page_id(text)
