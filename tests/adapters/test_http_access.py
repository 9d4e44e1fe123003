"""Who may call the HTTP service, and what becomes of those who guess."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.entrypoints.http import access, mailouts
from tests.adapters.http_stage import BEARER, SECRET, Answer, HttpStage, serving

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def service(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url) as stage:
        yield stage


def _refusals(service: HttpStage) -> Iterator[Answer]:
    mailout_id = service.ready_mailout()
    right = {"mailout_id": mailout_id, "auth_token": SECRET}
    shown: list[Any] = ["", SECRET[:-1], SECRET + "x", SECRET[:-1] + "T", None, 7, [SECRET], "\ud800"]
    for token in shown:
        yield service.ask("POST", "/send-mailout", right | {"auth_token": token})
    yield service.ask("POST", "/send-mailout", {"mailout_id": mailout_id})
    yield service.ask("POST", "/send-mailout", {"mailout_id": 7, "dry_run": 7})
    yield service.ask("POST", "/send-mailout")
    yield service.ask("POST", "/send-mailout", b"{", {"Authorization": "Bearer wrong"})
    yield service.ask("POST", "/send-mailout", b"{", {"X-Mailout-Token": "wrong"})
    yield service.ask("GET", f"/mailouts/{mailout_id}")
    yield service.ask("GET", f"/mailouts/{NOBODY}", headers={"Authorization": f"Basic {SECRET}"})
    yield service.ask("GET", "/metrics", headers={"Authorization": "Bearer"})
    yield service.ask("POST", "/tick", headers={"Authorization": "Bearer "})
    assert service.stage.get(mailout_id).status == MailoutStatus.READY


def test_every_failure_of_authorization_is_the_same_401(service: HttpStage) -> None:
    """Missing, empty, one character off, of a wrong kind: one answer, and nothing else is told."""
    answers = list(_refusals(service))
    assert {(answer.status, answer.body) for answer in answers} == {(401, b'{"error": "unauthorized"}')}
    headers = [{k: v for k, v in answer.headers.items() if k != "date"} for answer in answers]
    assert all(it == headers[0] for it in headers)


def test_without_a_secret_everything_is_refused(sqlite_url: str) -> None:
    """An empty EXECUTOR_SHARED_SECRET opens nothing, not even to an empty token."""
    with serving(sqlite_url, {"EXECUTOR_SHARED_SECRET": ""}) as service:
        mailout_id = service.ready_mailout()
        body = {"mailout_id": mailout_id, "auth_token": ""}
        for headers in ({}, {"Authorization": "Bearer "}, {"X-Mailout-Token": ""}):
            assert service.ask("POST", "/send-mailout", body, headers).status == 401
            assert service.ask("GET", f"/mailouts/{mailout_id}", headers=headers).status == 401
            assert service.ask("GET", "/tick", headers=headers).status == 401


def test_guessers_are_slowed_down_and_nobody_else(service: HttpStage) -> None:
    """After many wrong tokens a peer gets 429; the right one still passes from the same address."""
    mailout_id = service.ready_mailout()
    wrong = {"mailout_id": mailout_id, "auth_token": "guess"}
    statuses = [service.ask("POST", "/send-mailout", wrong).status for _ in range(30)]
    assert statuses[:20] == [401] * 20
    assert statuses[-1] == 429
    answer = service.ask("GET", f"/mailouts/{mailout_id}", headers={"Authorization": "Bearer guess"})
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    forwarded = {"X-Forwarded-For": "203.0.113.9", "Authorization": "Bearer guess"}
    assert service.ask("GET", f"/mailouts/{mailout_id}", headers=forwarded).status == 429
    assert service.ask("GET", f"/mailouts/{mailout_id}", headers=BEARER).status == 200
    assert service.start(mailout_id).status == 200


def test_a_bucket_refills_and_the_room_for_buckets_is_bounded() -> None:
    """One more failure is allowed every two seconds; ten thousand peers leave four thousand buckets."""
    now = 0.0
    limit = access.FailureLimit(lambda: now)
    assert [limit.spend("a") for _ in range(21)] == [True] * 20 + [False]
    now = 2.0
    assert [limit.spend("a"), limit.spend("a")] == [True, False]
    for peer in range(10_000):
        limit.spend(str(peer))
    assert len(limit._peers) == 4096


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hmac.compare_digest, over hashes of one length, each token with each secret to the end."""
    compared: list[tuple[int, int]] = []
    real = access.hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(access.hmac, "compare_digest", compare)
    assert access.is_among(["right", "x" * 100], ["right", "other", ""])
    assert compared == [(32, 32)] * 4


# -- the cheap check comes first ---------------------------------------------------------------------


def _padded(size: int, **fields: Any) -> bytes:
    return json.dumps(fields | {"padding": "x" * size}).encode()


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("shown", [{}, {"Authorization": "Bearer wrong"}, {"X-Mailout-Token": "wrong"}])
def test_a_long_body_without_the_secret_in_a_header_is_not_looked_into(
    service: HttpStage, shown: dict[str, str], chunked: bool
) -> None:
    """401 above 4 KB, even with the right secret in it; 413 above 256 KB. Up to 4 KB it is read."""
    mailout_id = service.ready_mailout()
    for size, status in ((3_000, 200), (5_000, 401), (250_000, 401), (270_000, 413)):
        body: Any = _padded(size, mailout_id=mailout_id, auth_token=SECRET, dry_run=True)
        body = iter([body[:100], body[100:]]) if chunked else body
        assert service.ask("POST", "/send-mailout", body, shown).status == status


def test_with_the_secret_in_a_header_a_body_may_be_long(service: HttpStage) -> None:
    """Notion posts the whole page."""
    body = _padded(200_000, mailout_id=service.ready_mailout(), dry_run=True)
    for headers in (BEARER, {"X-Mailout-Token": SECRET}):
        assert service.ask("POST", "/send-mailout", body, headers).status == 200


def test_a_long_body_is_parsed_beside_the_loop(service: HttpStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else waits for it, not even where it was sent by somebody who has the secret."""
    parsed: list[int] = []
    real = mailouts.read_object

    def read_object(body: bytes) -> dict[str, Any]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        parsed.append(len(body))
        return real(body)

    monkeypatch.setattr(mailouts, "read_object", read_object)
    body = _padded(200_000, mailout_id=service.ready_mailout(), dry_run=True)
    assert service.ask("POST", "/send-mailout", body, BEARER).status == 200
    assert parsed == [len(body)]


def test_a_peer_that_failed_too_often_is_not_parsed_for(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad JSON counts as a failure, too. After twenty nothing is parsed but what shows the right secret."""
    mailout_id = service.ready_mailout()
    statuses = [service.ask("POST", "/send-mailout", b"{").status for _ in range(30)]
    assert statuses[:20] == [400] * 20
    assert statuses[-1] == 429
    parsed: list[bytes] = []
    real = mailouts.read_object
    monkeypatch.setattr(mailouts, "read_object", lambda body: parsed.append(body) or real(body))
    guesses = [_padded(3000, auth_token=token) for token in ("guess", SECRET[:-1])]
    for guess in (b"{", b"[" * 4000, *guesses):
        assert service.ask("POST", "/send-mailout", guess).status == 429
    assert parsed == []
    assert service.start(mailout_id).status == 200
    assert len(parsed) == 1
