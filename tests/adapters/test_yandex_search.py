"""The Yandex client against the sandbox's Yandex, and against servers that behave worse."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sendonce.adapters.doctor.search import SearchProbe
from sendonce.adapters.search.exchanges import Exchanges
from sendonce.adapters.search.yandex import YandexAddresses, YandexSearch
from sendonce.adapters.search.yandex_auth import (
    FixedCredential,
    ServiceAccountTokens,
    read_service_account_key,
)
from sendonce.domain.prospecting.search_answers import (
    Accepted,
    Failed,
    FateUnknown,
    Gone,
    NotNow,
    NotTaken,
    Pending,
    Ready,
    Refused,
    SearchRequest,
    Verdict,
)
from sendonce.errors import BadSetting
from sendonce.ports.prospecting import SearchProvider
from sendonce.sandbox.companies.web import CompanyWeb
from sendonce.sandbox.http_server import Ending, HttpServer, Reply, Request
from sendonce.sandbox.yandex.faults import OperationFault, SubmitFault
from sendonce.sandbox.yandex.service import Yandex, YandexSettings
from tests.adapters.search_provider_contract import ProviderContract, Trouble

T = TypeVar("T")
PUMPS = SearchRequest("производители насосов", "43", 0)


MET_BY_SUBMITS = {
    Trouble.WRONG_CREDENTIALS: SubmitFault.UNAUTHORIZED,
    Trouble.BUSY: SubmitFault.THROTTLED,
    Trouble.REPLY_LOST: SubmitFault.RESET_AFTER,
}
MET_BY_OPERATIONS = {
    Trouble.GONE: OperationFault.EXPIRED,
    Trouble.GARBLED: OperationFault.BAD_BASE64,
    Trouble.NOTHING_FOUND: OperationFault.NOTHING,
}


class Clock:
    def __init__(self) -> None:
        self.now = 1_794_000_000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A Yandex in this process, on loopback, and a client of it; both for one event loop."""

    def __init__(self, directory: Path) -> None:
        self.clock = Clock()
        settings = YandexSettings(
            directory=directory,
            api_key="key",
            folder_id="folder",
            pending_seconds=0.0,
            rate=10,
            token_seconds=43_200.0,
            seed=1,
        )
        self.yandex = Yandex(settings, CompanyWeb(60, 1).results(), self.clock)
        self.answer: Callable[[Request], Reply] | None = None

    def run(self, play: Callable[[YandexSearch], Awaitable[T]], **changes: Any) -> T:
        async def scene() -> T:
            async def answer(request: Request) -> Reply:
                return self.answer(request) if self.answer else await self.yandex.answer(request)

            server = HttpServer(answer, self.clock)
            url = f"http://127.0.0.1:{await server.listen(0)}"
            provider = self._provider(url, **changes)
            try:
                return await play(provider)
            finally:
                await provider.close()
                await server.close()

        return asyncio.run(scene())

    def _provider(
        self,
        url: str,
        *,
        key: str = "key",
        folder: str = "folder",
        account: bool = False,
        seconds: float = 30.0,
    ) -> YandexSearch:
        exchanges = Exchanges(seconds)
        authority: Any = FixedCredential("Api-Key", key)
        if account:
            made = read_service_account_key(json.dumps(self.yandex.iam.make_key()), "key")
            authority = ServiceAccountTokens(made, url, exchanges.post_json, self.clock)
        return YandexSearch(YandexAddresses(url, url, folder), authority, exchanges, timedelta(minutes=5))

    def meet(self, trouble: Trouble) -> None:
        plan = self.yandex.dice.plan
        plan.pending_seconds = 300 if trouble is Trouble.PENDING else None
        if trouble in MET_BY_SUBMITS:
            plan.submits.append(MET_BY_SUBMITS[trouble])
        elif trouble in MET_BY_OPERATIONS:
            plan.operations.append(MET_BY_OPERATIONS[trouble])

    def taken(self) -> int:
        return len(self.yandex.log)

    def submit(self, request: SearchRequest = PUMPS, **changes: Any) -> Any:
        return self.run(lambda provider: provider.submit(request), **changes)

    def fetch(self, provider_id: str, **changes: Any) -> Any:
        return self.run(lambda provider: provider.fetch(provider_id), **changes)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def stage(scene: Scene) -> Scene:
    return scene


class TestYandex(ProviderContract):
    """What every provider keeps."""


def test_a_request_is_accepted_and_answered(scene: Scene) -> None:
    async def play(provider: SearchProvider) -> Any:
        accepted = await provider.submit(SearchRequest("всё на свете", "43", 0))
        assert isinstance(accepted, Accepted)
        return provider.read((await provider.fetch(accepted.provider_id)).data)  # type: ignore[union-attr]

    page = scene.run(play)
    assert page.verdict is Verdict.RESULTS
    assert any(".рф" in document.url for document in page.documents)
    (logged,) = scene.yandex.log
    assert (logged.text, logged.region, logged.page, logged.size) == ("всё на свете", "43", 0, 100)


def test_an_answer_takes_its_time_and_is_kept_for_half_a_day(scene: Scene) -> None:
    scene.yandex.dice.plan.pending_seconds = 300
    name = scene.submit().provider_id
    assert isinstance(scene.fetch(name), Pending)
    scene.clock.now += 300
    assert isinstance(scene.fetch(name), Ready)
    scene.clock.now += 12 * 3600
    assert isinstance(scene.fetch(name), Gone)


SUBMITTED = {
    SubmitFault.UNAUTHORIZED: NotTaken,
    SubmitFault.FORBIDDEN: NotTaken,
    SubmitFault.THROTTLED: NotTaken,
    SubmitFault.UNAVAILABLE: NotTaken,
    SubmitFault.RESET_BEFORE: FateUnknown,
    SubmitFault.RESET_AFTER: FateUnknown,
    SubmitFault.ERROR_AFTER: FateUnknown,
    SubmitFault.GARBAGE_AFTER: FateUnknown,
    SubmitFault.SILENCE_AFTER: FateUnknown,
}


@pytest.mark.parametrize("fault", SubmitFault)
def test_what_may_have_been_taken_is_never_called_not_taken(scene: Scene, fault: SubmitFault) -> None:
    """And nothing is posted twice: only the books know what a second time would cost."""
    scene.yandex.dice.plan.submits.append(fault)
    said = scene.submit(seconds=0.5 if fault is SubmitFault.SILENCE_AFTER else 30.0)
    assert isinstance(said, SUBMITTED[fault])
    assert scene.yandex.asked["submits"] == 1
    if len(scene.yandex.log):
        assert isinstance(said, FateUnknown)


FETCHED = {
    OperationFault.STUCK: Pending,
    OperationFault.EXPIRED: Gone,
    OperationFault.INTERNAL: Failed,
    OperationFault.INVALID: Failed,
    OperationFault.BAD_BASE64: NotNow,
}


@pytest.mark.parametrize("fault", FETCHED)
def test_operations_that_end_badly_are_told_apart(scene: Scene, fault: OperationFault) -> None:
    scene.yandex.dice.plan.operations.append(fault)
    said = scene.fetch(scene.submit().provider_id)
    assert isinstance(said, FETCHED[fault])
    if isinstance(said, Failed):
        assert said.passing == (fault is OperationFault.INTERNAL)
    if isinstance(said, NotNow):
        assert not said.for_all


VERDICTS = {
    OperationFault.NOTHING: Verdict.NOTHING,
    OperationFault.XML_ERROR: Verdict.AGAIN,
    OperationFault.XML_REFUSAL: Verdict.NEVER,
    OperationFault.CUT_XML: Verdict.RESULTS,
    OperationFault.DEEP_XML: Verdict.AGAIN,
    OperationFault.DOCTYPE: Verdict.AGAIN,
}


@pytest.mark.parametrize("fault", VERDICTS)
def test_answers_that_are_no_good_are_told_apart(scene: Scene, fault: OperationFault) -> None:
    scene.yandex.dice.plan.operations.append(fault)

    async def play(provider: YandexSearch) -> Any:
        accepted = await provider.submit(PUMPS)
        assert isinstance(accepted, Accepted)
        fetched = await provider.fetch(accepted.provider_id)
        assert isinstance(fetched, Ready)
        return provider.read(fetched.data)

    assert scene.run(play).verdict is VERDICTS[fault]


def test_wrong_credentials_say_what_to_check(scene: Scene) -> None:
    said = scene.submit(key="wrong")
    assert isinstance(said, NotTaken)
    assert "YANDEX_CLOUD_API_KEY" in said.reason
    assert "wrong" not in said.reason
    assert said.by_settings
    assert "YANDEX_CLOUD_FOLDER_ID" in scene.submit(folder="wrong").reason


@pytest.mark.parametrize(
    ("key", "verdict", "says"),
    [("right", "ok", "takes our credentials"), ("wrong", "warning", "YANDEX_CLOUD_API_KEY")],
)
def test_the_doctor_tries_the_credentials_and_submits_nothing(
    scene: Scene, key: str, verdict: str, says: str
) -> None:
    given = {} if key == "right" else {"key": key}

    async def play(provider: YandexSearch) -> Any:
        return await SearchProbe(lambda: provider).examine()

    (check,) = scene.run(play, **given)
    assert (check.verdict, says in check.what) == (verdict, True)
    assert scene.yandex.asked["submits"] == 0


def test_more_than_ten_in_a_second_are_refused(scene: Scene) -> None:
    async def play(provider: YandexSearch) -> Any:
        return await asyncio.gather(*(provider.submit(PUMPS) for _ in range(12)))

    said = scene.run(play)
    assert sum(isinstance(each, Accepted) for each in said) == 10
    assert [each.code for each in said if isinstance(each, NotTaken)] == ["429"] * 2


def test_a_request_that_yandex_finds_wrong_is_refused_for_good(scene: Scene) -> None:
    assert isinstance(scene.submit(SearchRequest("насосы " * 41, "", 0)), Refused)


def test_a_service_account_gets_a_token_and_keeps_it(scene: Scene) -> None:
    """One for all requests; a new one before the old has run out, and when the old one is refused."""

    async def play(provider: YandexSearch) -> None:
        said = await asyncio.gather(*(provider.submit(PUMPS) for _ in range(5)))
        assert all(isinstance(each, Accepted) for each in said)
        assert scene.yandex.asked["tokens"] == 1
        scene.clock.now += 3599
        await provider.submit(PUMPS)
        assert scene.yandex.asked["tokens"] == 1
        scene.clock.now += 1
        await provider.submit(PUMPS)
        assert scene.yandex.asked["tokens"] == 2
        scene.yandex.iam.issued.clear()
        assert isinstance(await provider.submit(PUMPS), Accepted)
        assert scene.yandex.asked["tokens"] == 3

    scene.run(play, account=True)


def test_a_token_is_not_used_in_its_last_minute(scene: Scene) -> None:
    scene.yandex.iam.token_seconds = 600

    async def play(provider: YandexSearch) -> None:
        for pause, tokens in ((0, 1), (539, 1), (1, 2)):
            scene.clock.now += pause
            await provider.submit(PUMPS)
            assert scene.yandex.asked["tokens"] == tokens

    scene.run(play, account=True)


def test_without_a_token_nothing_is_submitted(scene: Scene) -> None:
    """The key is another account's."""

    async def play(provider: YandexSearch) -> Any:
        scene.yandex.iam.key_file.unlink()
        return await provider.submit(PUMPS)

    said = scene.run(play, account=True)
    assert isinstance(said, NotTaken)
    assert said.by_settings
    assert scene.yandex.asked["submits"] == 0


NO_KEYS = (
    "",
    "[]",
    "{}",
    '{"id": 1, "service_account_id": "a", "private_key": "SECRET"}',
    '{"id": "a", "service_account_id": "b", "private_key": "-----BEGIN PRIVATE KEY-----SECRET"}',
)


@pytest.mark.parametrize("text", NO_KEYS)
def test_a_key_that_is_none_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(BadSetting, match="authorized key") as caught:
        read_service_account_key(text, "YANDEX_CLOUD_SA_KEY_JSON")
    assert "SECRET" not in str(caught.value)


def test_a_server_that_nobody_listens_at_has_taken_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def play() -> Any:
            authority = FixedCredential("Api-Key", "key")
            provider = YandexSearch(YandexAddresses(url, url, "f"), authority, Exchanges(), timedelta(0))
            try:
                return await provider.submit(PUMPS), await provider.fetch("a")
            finally:
                await provider.close()

        submitted, fetched = asyncio.run(play())
    assert isinstance(submitted, NotTaken)
    assert isinstance(fetched, NotNow)


def test_a_server_that_does_not_answer_has_perhaps_taken_it() -> None:
    """The whole exchange has its time, however slowly the server speaks."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    got: list[bytes] = []

    def listen() -> None:
        connection, _ = listening.accept()
        got.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        while connection.recv(65_536):
            pass
        connection.close()

    thread = threading.Thread(target=listen)
    thread.start()

    async def play() -> Any:
        authority = FixedCredential("Api-Key", "key")
        provider = YandexSearch(YandexAddresses(url, url, "f"), authority, Exchanges(0.2), timedelta(0))
        try:
            return await provider.submit(PUMPS)
        finally:
            await provider.close()

    assert isinstance(asyncio.run(play()), FateUnknown)
    thread.join()
    listening.close()
    assert got[0].startswith(b"POST /v2/web/searchAsync")


ODD = {
    "no id": (Reply(body=b"{}"), FateUnknown, NotNow),
    "a list": (Reply(body=b"[1]"), FateUnknown, NotNow),
    "not JSON": (Reply(body=b"<html>"), FateUnknown, NotNow),
    "an id that is no text": (Reply(body=b'{"id": 5, "done": true}'), FateUnknown, NotNow),
    "deep JSON": (Reply(body=b'{"a":' * 100_000), FateUnknown, NotNow),
    "a gateway": (Reply(502, b"Bad Gateway"), FateUnknown, NotNow),
    "a timeout of theirs": (Reply(504, b"{}"), FateUnknown, NotNow),
    "half of it": (Reply(body=b'{"id": "a"}' * 50, ending=Ending.CUT), FateUnknown, NotNow),
    "an error before its end": (Reply(body=b'{"id":"a","error":{"code":7}}'), Accepted, Failed),
    "an odd error": (Reply(body=b'{"id":"a","error":"no"}'), Accepted, Failed),
    "too much": (Reply(body=b" " * (17 * 2**20)), FateUnknown, NotNow),
}


@pytest.mark.parametrize("how", ODD)
def test_odd_answers_are_understood_with_care(scene: Scene, how: str) -> None:
    reply, submitted, fetched = ODD[how]
    scene.answer = lambda _: reply
    assert isinstance(scene.submit(), submitted)
    assert isinstance(scene.fetch("a/../b"), fetched)


def test_the_names_of_operations_cannot_lead_elsewhere(scene: Scene) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Reply:
        asked.append(request.path)
        return Reply(404)

    scene.answer = answer
    scene.fetch("../iam/v1/tokens?x=1")
    assert asked == ["/operations/..%2Fiam%2Fv1%2Ftokens%3Fx%3D1"]
