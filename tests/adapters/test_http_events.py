"""POST /ses-events: signed SNS messages to a running service, and what becomes of them."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from sendonce.adapters.events import sns
from sendonce.adapters.events.sns_envelopes import SnsEnvelopes
from sendonce.domain.engine.event_route import Coverage
from sendonce.domain.engine.jobs import ClaimedJob, JobState
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.entrypoints.http.slow_lane import SlowLane
from sendonce.errors import Unavailable
from tests.adapters.http_server import ScriptedServer, Step, answer
from tests.adapters.http_stage import BEARER, Answer, HttpStage, serving
from tests.crash.world import until

TOPIC = "arn:aws:sns:eu-central-1:123456789012:ses-events"
CERTIFICATE = f"https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{'0af9' * 8}.pem"
KEY = rsa.generate_private_key(65537, 2048)
SNS_ENDPOINT = "http://127.0.0.1:1"
CONFIRMED = (
    b"<ConfirmSubscriptionResponse><ConfirmSubscriptionResult><SubscriptionArn>"
    + TOPIC.encode()
    + b":1</SubscriptionArn></ConfirmSubscriptionResult></ConfirmSubscriptionResponse>"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    file = tmp_path_factory.mktemp("sns") / "sns.pem"
    file.write_bytes(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file


def _environment(certificate: Path, sns: str = SNS_ENDPOINT) -> dict[str, str]:
    return {
        "SNS_ALLOWED_TOPIC_ARNS": TOPIC,
        "SNS_SIGNING_CERT_FILE": str(certificate),
        "AWS_ENDPOINT_URL_SNS": sns,
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "an aws secret".replace(" ", "-"),
    }


@pytest.fixture
def service(sqlite_url: str, certificate: Path) -> Iterator[HttpStage]:
    with serving(sqlite_url, _environment(certificate)) as stage:
        yield stage


def _signed(message: str, kind: str = "Notification", **changes: str) -> dict[str, str]:
    fields = {
        "Type": kind,
        "MessageId": str(uuid4()),
        "TopicArn": TOPIC,
        "Message": message,
        "Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "SignatureVersion": "2",
        "SigningCertURL": CERTIFICATE,
    }
    if kind != "Notification":
        fields |= {"Token": "a-token", "SubscribeURL": "http://127.0.0.1:1/never"}
    fields |= changes
    unsigned = {"SignatureVersion", "SigningCertURL"}
    text = "".join(f"{name}\n{fields[name]}\n" for name in sorted(fields.keys() - unsigned))
    signature = KEY.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return fields | {"Signature": base64.b64encode(signature).decode()}


def _event(name: str, job: str = "", attempt: int = 1, **parts: Any) -> str:
    mail = {
        "timestamp": "2026-03-04T05:06:07.000Z",
        "messageId": f"mid-{job}-{attempt}",
        "destination": ["user0000@example.com"],
        "tags": {"job": [job], "attempt": [str(attempt)]},
    }
    return json.dumps({"eventType": name, "mail": mail, **parts})


def _post(service: HttpStage, fields: dict[str, Any]) -> Answer:
    return service.ask("POST", "/ses-events", fields, {"Content-Type": "text/plain; charset=UTF-8"})


def _sending_job(service: HttpStage) -> ClaimedJob:
    service.stage.running()
    return service.stage.claim_one()


def test_an_event_settles_its_job_once(service: HttpStage) -> None:
    """The Send event makes it sent; the same message again, and the same fact again, change nothing."""
    job = _sending_job(service)
    message = _signed(_event("Send", job.id, send={}))
    first, again = _post(service, message), _post(service, message)
    same_fact = _post(service, _signed(_event("Send", job.id, send={})))
    assert [a.status for a in (first, again, same_fact)] == [200, 200, 200]
    assert first.json == {"verdict": "applied"}
    assert again.json == same_fact.json == {"verdict": "duplicate_event"}
    assert service.stage.state(job) == JobState.SENT
    metrics = service.ask("GET", "/metrics", headers=BEARER).text
    assert 'sendonce_events_total{type="sent",verdict="applied"} 1.0' in metrics
    assert 'sendonce_events_total{type="sent",verdict="duplicate_event"} 2.0' in metrics


def test_a_bounce_of_an_unknown_letter_still_suppresses(service: HttpStage) -> None:
    """It is kept raw, answered 200, and the address is not written to again."""
    service.stage.subscribe([0])
    bounced = {"bounceType": "Permanent", "bouncedRecipients": [{"emailAddress": "user0000@example.com"}]}
    bounced |= {"timestamp": "2026-03-04T05:06:08.000Z", "feedbackId": "f-1"}
    answer = _post(service, _signed(_event("Bounce", "not-ours", bounce=bounced)))
    assert (answer.status, answer.json) == (200, {"verdict": "unknown"})
    assert service.stage.subscriber().status == SubscriberStatus.BOUNCED
    (kept,) = service.store.events.all()
    assert kept.raw["bounce"]["feedbackId"] == "f-1"


@pytest.mark.parametrize("name", ["Bounce", "Complaint"])
def test_a_bounce_suppresses_only_whom_its_letter_was_addressed_to(service: HttpStage, name: str) -> None:
    """The receiving server wrote the other address into its report; the letter never went there."""
    service.stage.subscribe([0, 1])
    named = [{"emailAddress": "user0001@example.com"}, {"emailAddress": "User0000@EXAMPLE.com"}]
    part = {"timestamp": "2026-03-04T05:06:08.000Z", "feedbackId": "f-1"}
    part |= {"bounceType": "Permanent", "bouncedRecipients": named, "complainedRecipients": named}
    answer = _post(service, _signed(_event(name, "not-ours", **{name.lower(): part})))
    assert (answer.status, answer.json) == (200, {"verdict": "unknown"})
    assert service.stage.subscriber(0).status != SubscriberStatus.ACTIVE
    assert service.stage.subscriber(1).status == SubscriberStatus.ACTIVE


def test_a_second_copy_is_an_alarm(service: HttpStage, caplog: pytest.LogCaptureFixture) -> None:
    """Proof of an older attempt while a newer one was accepted is told at the level of errors."""
    service.stage.running()
    job = service.stage.second_attempt()
    assert _post(service, _signed(_event("Send", job.id, 2, send={}))).json == {"verdict": "applied"}
    answer = _post(service, _signed(_event("Send", job.id, 1, send={})))
    assert (answer.status, answer.json) == (200, {"verdict": "duplicate_send"})
    alarms = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in alarms] == ["a second copy of a letter left"]


def test_an_attempt_never_issued_stops_all_claims(
    service: HttpStage, caplog: pytest.LogCaptureFixture
) -> None:
    """The database was rolled back: quarantined, 200, alarm, and no mailout starts."""
    job = _sending_job(service)
    answer = _post(service, _signed(_event("Send", job.id, 7, send={})))
    assert (answer.status, answer.json) == (200, {"verdict": "quarantined"})
    assert "never issued" in caplog.text
    assert service.start(service.stage.mailout()).status == 409


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("Successfully validated SNS topic for Amazon SES event publishing.", "ignored"),
        (_event("Open"), "ignored"),
        (_event("Teleport"), "unreadable"),
        ("not JSON at all", "unreadable"),
        ("[" * 50_000, "unreadable"),
        ('{"eventType": "Send", "mail": {"timestamp": "yesterday"}}', "unreadable"),
    ],
)
def test_genuine_messages_are_never_asked_for_again(service: HttpStage, message: str, verdict: str) -> None:
    """What is of no interest or cannot be read is answered 200: a repeat would not help."""
    answer = _post(service, _signed(message))
    assert (answer.status, answer.json) == (200, {"verdict": verdict})


def test_what_cannot_be_read_is_kept(service: HttpStage) -> None:
    """Word for word, once, with its topic and the reason; counted; no job is touched."""
    job = _sending_job(service)
    message = _signed(_event("Teleport", job.id))
    assert [_post(service, message).json["verdict"] for _ in range(2)] == ["unreadable"] * 2
    (kept,) = service.store.events.unreadable()
    assert (kept.event_id, kept.source) == (message["MessageId"], TOPIC)
    assert kept.raw.decode() == message["Message"]
    assert "Teleport" in kept.why
    assert service.stage.state(job) == JobState.SENDING
    metrics = service.ask("GET", "/metrics", headers=BEARER).text
    assert "sendonce_unreadable_events_total 1.0" in metrics


# -- listening -------------------------------------------------------------------------------------


def _rows(service: HttpStage) -> int:
    return len(service.store.event_route.listening().receivers)


def test_who_was_never_told_anything_does_not_listen(service: HttpStage) -> None:
    """That a process runs proves nothing: the topic may not be subscribed. Its first message tells."""
    assert service.ask("GET", "/readyz").status == 200
    assert _rows(service) == 0
    assert _post(service, _signed(_event("Open"))).status == 200
    assert _rows(service) == 1


def test_a_confirmed_subscription_is_listened_to(sqlite_url: str, certificate: Path) -> None:
    """From the confirmation on, also after a restart; until the topic says goodbye."""
    environment = _environment(certificate)
    with ScriptedServer([answer(200, CONFIRMED)]) as sns:
        environment["AWS_ENDPOINT_URL_SNS"] = sns.url
        with serving(sqlite_url, environment) as service:
            assert _post(service, _signed("hello", "SubscriptionConfirmation")).status == 200
            assert _rows(service) == 1
    with serving(sqlite_url, environment) as service:
        assert service.ask("GET", "/readyz").status == 200
        until(lambda: _rows(service) == 2, 10, "it listens")
        assert _post(service, _signed("bye", "UnsubscribeConfirmation")).status == 200
    with serving(sqlite_url, environment) as service:
        assert service.ask("GET", "/readyz").status == 200
        assert _rows(service) == 2


@pytest.fixture
def listening(
    sqlite_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[HttpStage, datetime]]:
    """A service that listens, and notes it often, since the moment told."""
    monkeypatch.setattr("sendonce.entrypoints.http.ses_events.ATTEND_EVERY", 0.02)
    with serving(sqlite_url, _environment(certificate)) as service:
        assert _post(service, _signed(_event("Open"))).status == 200
        began = service.store.ledger.now()
        assert not _broken(service, began)
        yield service, began


def _broken(service: HttpStage, since: datetime) -> bool:
    listening = service.store.event_route.listening()
    return listening.covers(since, listening.now) is Coverage.BROKEN


def test_a_5xx_of_ours_begins_a_new_stretch(listening: tuple[HttpStage, datetime]) -> None:
    """SNS may give up the event that met it; nothing that was claimed before is proven absent."""
    service, began = listening
    service.execute("ALTER TABLE delivery_events RENAME TO elsewhere")
    assert _post(service, _signed(_event("Send", str(uuid4()), send={}))).status == 503
    service.execute("ALTER TABLE elsewhere RENAME TO delivery_events")
    until(lambda: _broken(service, began), 10, "the break is noted")
    assert not _broken(service, service.store.ledger.now())


@pytest.mark.parametrize(("length", "status"), [(300_000, 413), (10, 408)], ids=["too long", "too slow"])
@pytest.mark.parametrize("topic", [TOPIC, f"{TOPIC}-of-somebody-else", None])
def test_a_message_that_was_not_read_begins_a_new_stretch_if_it_may_be_ours(
    listening: tuple[HttpStage, datetime],
    monkeypatch: pytest.MonkeyPatch,
    length: int,
    status: int,
    topic: str | None,
) -> None:
    """SNS drops an event that meets a 4xx. Whoever names no topic of ours breaks nothing."""
    monkeypatch.setattr("sendonce.entrypoints.http.bodies._PATIENCE_SECONDS", 0.05)
    service, began = listening
    headers = {"Content-Length": str(length)} | ({"x-amz-sns-topic-arn": topic} if topic else {})
    assert service.ask("POST", "/ses-events", None, headers).status == status
    noted = service.store.ledger.now()
    if topic == TOPIC:
        until(lambda: _broken(service, began), 10, "the break is noted")
    else:
        until(lambda: _seen(service) > noted, 10, "the next note is written")
        assert not _broken(service, began)


def test_a_note_that_cannot_be_written_begins_a_new_stretch(
    listening: tuple[HttpStage, datetime], caplog: pytest.LogCaptureFixture
) -> None:
    """The database was away: so would have been the events of that time."""
    service, began = listening
    assert not _broken(service, began)
    service.execute("ALTER TABLE event_receivers RENAME TO elsewhere")
    until(lambda: "cannot be noted" in caplog.text, 10, "a note failed")
    service.execute("ALTER TABLE elsewhere RENAME TO event_receivers")
    until(lambda: _broken(service, began), 10, "the break is noted")


def test_an_event_that_cannot_be_read_begins_a_new_stretch(listening: tuple[HttpStage, datetime]) -> None:
    """It may be the Send event of a letter in doubt, whose absence would then be proven by its presence."""
    service, began = listening
    assert _post(service, _signed('{"eventType": "Send", "mail": {"timestamp": "yesterday"}}')).status == 200
    until(lambda: _broken(service, began), 10, "the break is noted")


def test_a_strangers_message_breaks_nothing(listening: tuple[HttpStage, datetime]) -> None:
    """What is refused is no event of ours."""
    service, began = listening
    forged = _signed(_event("Open")) | {"Message": _event("Send")}
    refused = [service.ask("POST", "/ses-events", b"{}").status, _post(service, forged).status]
    assert refused == [400, 403]
    noted = service.store.ledger.now()
    until(lambda: _seen(service) > noted, 10, "the next note is written")
    assert not _broken(service, began)


def _seen(service: HttpStage) -> datetime:
    return max(row.seen for row in service.store.event_route.listening().receivers)


def test_a_flood_of_made_up_certificates_holds_up_no_genuine_message(
    sqlite_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty wait for addresses that do not answer; a genuine message is taken, its certificate fetched."""
    stuck = threading.Event()

    def fetch(url: str) -> bytes:
        if url != CERTIFICATE:
            stuck.wait(20)
            raise Unavailable("404")
        return certificate.read_bytes()

    monkeypatch.setattr(
        "sendonce.entrypoints.http.ses_events.sns_verifier",
        lambda _settings: sns.SnsVerifier(frozenset({TOPIC}), fetch=fetch),
    )
    forged = [
        _signed("x") | {"SigningCertURL": CERTIFICATE.replace("0af9" * 8, f"{number:032x}")}
        for number in range(60)
    ]
    with (
        serving(sqlite_url, _environment(certificate)) as service,
        ThreadPoolExecutor(60) as strangers,
    ):
        assert _post(service, _signed(_event("Open"))).status == 200
        refused = [strangers.submit(_post, service, message) for message in forged]
        time.sleep(0.3)
        began = time.monotonic()
        assert _post(service, _signed(_event("Open"))).status == 200
        assert time.monotonic() - began < 15
        stuck.set()
        assert {each.result().status for each in refused} == {503}


def test_a_failing_database_makes_sns_try_again(service: HttpStage) -> None:
    """503, and when the database is back the same message is applied."""
    job = _sending_job(service)
    message = _signed(_event("Send", job.id, send={}))
    service.execute("ALTER TABLE delivery_events RENAME TO elsewhere")
    assert _post(service, message).status == 503
    service.execute("ALTER TABLE elsewhere RENAME TO delivery_events")
    assert _post(service, message).json == {"verdict": "applied"}


def test_concurrent_messages_share_commits_and_are_answered_after_them(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another writer holds the database nobody is answered; then all are, by a few commits."""
    service.stage.running(24)
    jobs = service.stage.claim().claimed
    assert _post(service, _signed(_event("Open"))).status == 200
    groups: list[int] = []
    together = service.store.events.record_all
    monkeypatch.setattr(
        service.store.events, "record_all", lambda events: groups.append(len(events)) or together(events)
    )
    with ThreadPoolExecutor(len(jobs)) as carriers:
        with service.store.database.writing():
            messages = [_signed(_event("Send", job.id, send={})) for job in jobs]
            posts = [carriers.submit(_post, service, message) for message in messages]
            until(lambda: groups, 10, "the first group waits for the database")
            assert not any(post.done() for post in posts)
            assert service.stage.state(jobs[0]) == JobState.SENDING
        answers = [post.result() for post in posts]
    assert {(answer.status, answer.json["verdict"]) for answer in answers} == {(200, "applied")}
    assert {service.stage.state(job) for job in jobs} == {JobState.SENT}
    assert sum(groups) == len(jobs)
    assert len(groups) < len(jobs) / 2


def test_messages_that_are_not_from_our_topic_are_refused(
    service: HttpStage, caplog: pytest.LogCaptureFixture
) -> None:
    """Forged, of another topic, raw, or no envelope at all: one answer; the cause is in the log."""
    good = _signed(_event("Send", send={}))
    refused = [
        _post(service, good | {"Message": _event("Send", "other", send={})}),
        _post(service, _signed("x", TopicArn=TOPIC + "-of-another")),
        _post(service, good | {"SigningCertURL": CERTIFICATE.replace("amazonaws", "evil")}),
        service.ask("POST", "/ses-events", good, {"x-amz-sns-rawdelivery": "true"}),
    ]
    assert {(a.status, a.body) for a in refused} == {(403, b'{"error": "The message was refused."}')}
    assert "wrong signature" in str([getattr(record, "fields", {}) for record in caplog.records])
    for body in (b"", b"{", b"[]", b'{"Type": NaN}', b"\xff", b"[" * 100_000):
        assert service.ask("POST", "/ses-events", body).status == 400


def test_strangers_cannot_fill_the_log(service: HttpStage, caplog: pytest.LogCaptureFixture) -> None:
    """After twenty refusals the answers stay and the lines stop; a genuine message still passes."""
    assert {service.ask("POST", "/ses-events", b"{}").status for _ in range(40)} == {400}
    assert 20 <= sum(record.message == "SNS message refused" for record in caplog.records) < 40
    assert _post(service, _signed(_event("Open"))).status == 200


def test_nothing_is_parsed_that_does_not_name_a_topic_of_ours(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 256 KB from a stranger only the bytes are looked at."""
    parsed: list[str] = []
    monkeypatch.setattr(sns, "strict_object", lambda _body, what: parsed.append(what) or {})
    padding = "x" * 200_000
    for body in (b"[" * 250_000, {"TopicArn": TOPIC[:-1], "Message": padding}, {"Message": padding}):
        assert service.ask("POST", "/ses-events", body).status in (400, 403)
    assert parsed == []
    assert service.ask("POST", "/ses-events", {"TopicArn": TOPIC}).status == 400
    assert parsed == ["The SNS message"]


def test_a_long_message_is_read_beside_the_loop(service: HttpStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signature and its two layers of JSON: nothing else waits for them."""
    steps: list[str] = []
    for kind, step in ((sns.SnsVerifier, "verify_now"), (SnsEnvelopes, "told_by")):
        real = getattr(kind, step)

        def do(*args: Any, real: Any = real, step: str = step) -> Any:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            steps.append(step)
            return real(*args)

        monkeypatch.setattr(kind, step, do)
    assert _post(service, _signed(_event("Open", padding="x" * 200_000))).status == 200
    assert steps == ["verify_now", "told_by"]


def test_a_flood_of_forged_messages_waits_and_genuine_ones_get_through(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After twenty refusals a peer's messages are looked at one by one, in a small share of the time.
    Where too many wait, 503 makes SNS bring them again."""
    forged = json.dumps(_signed(_event("Open")) | {"Signature": "AAAA"}).encode()
    assert {service.ask("POST", "/ses-events", forged).status for _ in range(25)} == {403}
    assert _post(service, _signed(_event("Open"))).status == 200
    slow = SlowLane.turn
    monkeypatch.setattr(SlowLane, "turn", lambda lane: setattr(lane, "_most_waiting", 0) or slow(lane))
    answered = _post(service, _signed(_event("Open")))
    assert (answered.status, answered.headers["retry-after"]) == (503, "20")


def test_messages_that_name_no_topic_of_ours_slow_down_nobody(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SNS may come from the same address, behind a proxy: only who knows a topic and forges is slowed."""
    stranger = {"TopicArn": f"{TOPIC[:-1]}-of-somebody-else", "Message": "x"}
    assert {service.ask("POST", "/ses-events", stranger).status for _ in range(25)} == {403}
    slowed: list[SlowLane] = []
    slow = SlowLane.turn
    monkeypatch.setattr(SlowLane, "turn", lambda lane: slowed.append(lane) or slow(lane))
    assert _post(service, _signed(_event("Open"))).status == 200
    assert slowed == []


def test_the_slow_lane_takes_a_small_share_of_the_time() -> None:
    """One at a time, and a rest after each that is many times as long as it took."""

    async def life() -> float:
        lane = SlowLane(share=0.1)
        running = 0

        async def work() -> None:
            nonlocal running
            async with lane.turn():
                running += 1
                assert running == 1
                await asyncio.sleep(0.01)
                running -= 1

        began = time.monotonic()
        await asyncio.gather(*[work() for _ in range(4)])
        return time.monotonic() - began

    assert asyncio.run(life()) > 3 * 0.01 / 0.1


def test_without_topics_everything_is_refused(sqlite_url: str, certificate: Path) -> None:
    """An empty SNS_ALLOWED_TOPIC_ARNS believes nobody."""
    with serving(sqlite_url, {"SNS_SIGNING_CERT_FILE": str(certificate)}) as service:
        assert _post(service, _signed(_event("Send", send={}))).status == 403


def test_a_subscription_is_confirmed_by_a_call_of_our_own(sqlite_url: str, certificate: Path) -> None:
    """ConfirmSubscription with the token goes to SNS; SubscribeURL is never opened."""
    with (
        ScriptedServer([answer(200, CONFIRMED)]) as endpoint,
        ScriptedServer() as trap,
        serving(sqlite_url, _environment(certificate, endpoint.url)) as service,
    ):
        told = _post(service, _signed("hello", "SubscriptionConfirmation", SubscribeURL=trap.url))
        assert (told.status, told.json) == (200, {"verdict": "confirmed"})
        (request,) = endpoint.requests
        assert b"Action=ConfirmSubscription" in request.body
        assert b"Token=a-token" in request.body
        assert trap.connections == 0


def test_an_unconfirmed_subscription_comes_again(sqlite_url: str, certificate: Path) -> None:
    """503 when SNS does not take the confirmation, so that it asks once more."""
    refusal: Step = answer(500, b"<Error><Code>InternalError</Code></Error>")
    with (
        ScriptedServer([refusal]) as endpoint,
        serving(sqlite_url, _environment(certificate, endpoint.url)) as service,
    ):
        assert _post(service, _signed("hello", "SubscriptionConfirmation")).status == 503


def test_the_end_of_a_subscription_is_only_noted(
    service: HttpStage, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning in the log, and nothing automatic."""
    answered = _post(service, _signed("bye", "UnsubscribeConfirmation"))
    assert (answered.status, answered.json) == (200, {"verdict": "noted"})
    assert "subscription was ended" in caplog.text
