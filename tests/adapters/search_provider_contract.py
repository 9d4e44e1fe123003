"""What every search provider has to keep. A test module inherits the contract and brings a stage for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sendonce.domain.prospecting.search_answers import (
    Accepted,
    FateUnknown,
    Gone,
    NotNow,
    NotTaken,
    Pending,
    Ready,
    SearchRequest,
    SerpPage,
    Submission,
    Verdict,
)
from sendonce.ports.prospecting import SearchProvider

T = TypeVar("T")
REQUEST = SearchRequest("производители насосов", "43", 0)


class Trouble(Enum):
    """What a service may be told to do to the next request."""

    WRONG_CREDENTIALS = auto()
    BUSY = auto()
    REPLY_LOST = auto()
    PENDING = auto()
    GONE = auto()
    GARBLED = auto()
    NOTHING_FOUND = auto()


class ProviderStage(Protocol):
    """A provider, and a stand-in for its service on loopback."""

    def run(self, play: Callable[[SearchProvider], Awaitable[T]]) -> T: ...

    def meet(self, trouble: Trouble) -> None: ...

    def taken(self) -> int:
        """How many submissions the service has taken, and would bill."""


class ProviderContract:
    def test_an_accepted_request_is_answered(self, stage: ProviderStage) -> None:
        page = stage.run(answer)
        assert page.verdict is Verdict.RESULTS
        assert [document.position for document in page.documents] == [*range(1, len(page.documents) + 1)]
        assert all(document.url.startswith("http") for document in page.documents)
        assert all(document.title == " ".join(document.title.split()) for document in page.documents)
        assert stage.taken() == 1

    def test_nothing_found_is_a_success(self, stage: ProviderStage) -> None:
        stage.meet(Trouble.NOTHING_FOUND)
        page = stage.run(answer)
        assert (page.verdict, list(page.documents)) == (Verdict.NOTHING, [])

    def test_what_was_not_taken_says_so(self, stage: ProviderStage) -> None:
        for trouble in (Trouble.WRONG_CREDENTIALS, Trouble.BUSY):
            stage.meet(trouble)
            assert isinstance(stage.run(submit), NotTaken)
        assert stage.taken() == 0

    def test_a_lost_reply_is_an_unknown_fate_and_nothing_is_sent_twice(self, stage: ProviderStage) -> None:
        stage.meet(Trouble.REPLY_LOST)
        assert isinstance(stage.run(submit), FateUnknown)
        assert stage.taken() == 1

    def test_an_answer_that_is_not_there_yet_or_no_more_says_so(self, stage: ProviderStage) -> None:
        for trouble, said in ((Trouble.PENDING, Pending), (Trouble.GONE, Gone), (Trouble.GARBLED, NotNow)):
            stage.meet(trouble)
            assert isinstance(stage.run(submit_and_fetch), said)

    def test_terms_are_stated(self, stage: ProviderStage) -> None:
        async def ask(provider: SearchProvider) -> Any:
            return provider.name, provider.terms

        name, terms = stage.run(ask)
        assert name.isidentifier()
        assert terms.page_size > 0
        assert terms.results_live > terms.first_poll
        assert terms.submitting
        assert terms.fetching

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
    @given(st.binary(max_size=200))
    def test_reading_never_raises(self, stage: ProviderStage, data: bytes) -> None:
        async def read(provider: SearchProvider) -> SerpPage:
            return provider.read(data)

        assert not stage.run(read).documents


async def submit(provider: SearchProvider) -> Submission:
    return await provider.submit(REQUEST)


async def submit_and_fetch(provider: SearchProvider) -> Any:
    accepted = await provider.submit(REQUEST)
    assert isinstance(accepted, Accepted)
    return await provider.fetch(accepted.provider_id)


async def answer(provider: SearchProvider) -> SerpPage:
    fetched = await submit_and_fetch(provider)
    assert isinstance(fetched, Ready)
    return provider.read(fetched.data)
