"""Events fetched from SQS: what is believed, what is recorded, and what is deleted when."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from sendonce.adapters.aws.credentials import Credentials, StaticCredentials
from sendonce.adapters.doctor.queue import QueueProbe
from sendonce.adapters.events.sns import SnsVerifier
from sendonce.adapters.events.sns_envelopes import SnsEnvelopes
from sendonce.adapters.events.sqs import SqsQueue, SqsSettings
from sendonce.adapters.metrics import Metrics, NullMetrics
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.checks import Verdict
from sendonce.domain.engine.event_route import Coverage
from sendonce.domain.engine.events import DeliveryEvent, EventVerdict
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.errors import BadInput, Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.flows.engine.pull_events import EventPuller
from sendonce.flows.engine.take_events import EventIntake
from sendonce.ports.engine import Events
from sendonce.settings import load_settings
from sendonce.wiring.events import make_event_puller
from tests.adapters.doctor_stage import ask
from tests.adapters.sqs_server import ACCESS_KEY, SECRET_KEY, SqsServer
from tests.conformance.stage import Stage
from tests.crash.world import until

TOPIC = "arn:aws:sns:eu-central-1:123456789012:ses-events"
CERTIFICATE = f"https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{'0af9' * 8}.pem"
KEY = rsa.generate_private_key(65537, 2048)
STRANGER = rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    file = tmp_path_factory.mktemp("sns") / "sns.pem"
    file.write_bytes(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def sqs() -> Iterator[SqsServer]:
    with SqsServer() as server:
        yield server


def signed(message: str, kind: str = "Notification", key: rsa.RSAPrivateKey = KEY) -> dict[str, str]:
    fields = {
        "Type": kind,
        "MessageId": str(uuid4()),
        "TopicArn": TOPIC,
        "Message": message,
        "Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    if kind != "Notification":
        fields |= {"Token": "a-token", "SubscribeURL": "http://127.0.0.1:1/never"}
    text = "".join(f"{name}\n{fields[name]}\n" for name in sorted(fields))
    signature = base64.b64encode(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()
    return fields | {"SignatureVersion": "2", "SigningCertURL": CERTIFICATE, "Signature": signature}


def event(job: str, name: str = "Send", attempt: int = 1) -> str:
    mail = {
        "timestamp": "2026-03-04T05:06:07.000Z",
        "messageId": f"mid-{job}-{attempt}",
        "destination": ["user0000@example.com"],
        "tags": {"job": [job], "attempt": [str(attempt)]},
    }
    return json.dumps({"eventType": name, "mail": mail, name.lower(): {}})


class Desk:
    """A job that is on its way, and a puller that may learn what became of it."""

    def __init__(self, sqs: SqsServer, certificate: Path, events: Events | None = None) -> None:
        self.store = MemoryStore()
        self.stage = Stage(self.store)
        self.stage.running()
        self.job = self.stage.claim_one()
        self.confirmed: list[SnsMessage] = []
        self.queue = queue_of(sqs)
        self.puller = self.puller_of([self.queue], certificate, events or self.store.events)

    def puller_of(self, receivers: Sequence[SqsQueue], certificate: Path, events: Events) -> EventPuller:
        reader = SnsEnvelopes(SnsVerifier(frozenset({TOPIC}), certificate), self.confirmed.append)
        listener = Listener(self.store.event_route, {TOPIC}, durable=True)
        intake = EventIntake(events, listener, NullMetrics(), asyncio.to_thread)
        return EventPuller(receivers, reader, intake, listener)

    def pull(self) -> None:
        try:
            asyncio.run(self.puller.run_once())
        finally:
            self.queue.close()

    @property
    def drained(self) -> bool:
        """Whether the queue was ever noted as empty."""
        return bool(self.store.event_route.listening().receivers)

    @property
    def stretches(self) -> list[tuple[datetime, datetime]]:
        return [(row.since, row.seen) for row in self.store.event_route.listening().receivers]

    @property
    def state(self) -> JobState:
        return self.stage.state(self.job)


def queue_of(sqs: SqsServer, secret: str = SECRET_KEY, wait: int = 0, url: str | None = None) -> SqsQueue:
    credentials = StaticCredentials(Credentials(ACCESS_KEY, secret))
    return SqsQueue(SqsSettings(url or sqs.queue_url, "eu-central-1", credentials, wait))


@pytest.fixture
def desk(sqs: SqsServer, certificate: Path) -> Desk:
    return Desk(sqs, certificate)


def test_an_event_in_the_queue_settles_its_job_and_is_deleted(sqs: SqsServer, desk: Desk) -> None:
    """The queue is emptied, however many groups of ten that takes, over one connection."""
    sqs.put(*(signed(event(str(uuid4()))) for _ in range(24)), signed(event(desk.job.id)))
    desk.pull()
    assert (desk.state, sqs.left) == (JobState.SENT, 0)
    expected = ["ReceiveMessage", "DeleteMessageBatch"] * 3 + ["ReceiveMessage", "GetQueueAttributes"]
    assert sqs.calls == expected
    assert desk.drained


def test_a_message_that_comes_twice_changes_nothing(sqs: SqsServer, desk: Desk) -> None:
    """SQS promises at least once, no more."""
    message = signed(event(desk.job.id))
    sqs.put(message, message)
    desk.pull()
    assert (desk.state, sqs.left, len(desk.store.events.all())) == (JobState.SENT, 0, 1)


class _Broken:
    """A database that commits nothing, then one that does."""

    def __init__(self, behind: Callable[[], Events]) -> None:
        self._behind = behind
        self.broken = True

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        if self.broken:
            raise Unavailable("the database is away")
        return self._behind().record_all(events)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


def test_nothing_is_deleted_before_it_is_committed(sqs: SqsServer, certificate: Path) -> None:
    """The database is away: the message stays, comes again, and then counts."""
    events = _Broken(lambda: desk.store.events)
    desk = Desk(sqs, certificate, events)
    sqs.put(signed(event(desk.job.id)))
    with pytest.raises(Unavailable, match="the database is away"):
        desk.pull()
    assert (sqs.left, "DeleteMessageBatch" in sqs.calls) == (1, False)
    events.broken = False
    sqs.reappear()
    desk.pull()
    assert (desk.state, sqs.left) == (JobState.SENT, 0)


@pytest.mark.parametrize("kind", ["raw", "forged", "garbage"])
def test_what_sns_did_not_sign_is_refused_and_stays(
    sqs: SqsServer, desk: Desk, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """It moves no job; it is left to the dead-letter queue, and what is genuine beside it is seen to."""
    bodies: dict[str, Any] = {
        "raw": event(desk.job.id),
        "forged": signed(event(desk.job.id), key=STRANGER),
        "garbage": "\N{SNOWMAN}" * 10,
    }
    other = signed(event(str(uuid4())))
    sqs.put(bodies[kind], other)
    desk.pull()
    assert (desk.state, sqs.left) == (JobState.SENDING, 1)
    (refusal,) = [record for record in caplog.records if record.message == "SNS message refused"]
    assert refusal.levelno == logging.WARNING
    told = refusal.fields["error"]  # type: ignore[attr-defined]
    assert ("raw message delivery" in told) == (kind == "raw")


def test_what_is_genuine_and_cannot_be_read_is_kept_and_goes(
    sqs: SqsServer, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Coming again would not make it readable; events of no interest go without a word."""
    sqs.put(signed("{"), signed(event(desk.job.id, "Open")))
    desk.pull()
    assert sqs.left == 0
    (kept,) = desk.store.events.unreadable()
    assert (kept.raw, kept.source) == (b"{", TOPIC)
    assert [record.message for record in caplog.records] == ["unreadable SES event"]


# -- when the queue counts as drained --------------------------------------------------------------


def test_a_short_batch_is_not_the_end_of_the_queue(sqs: SqsServer, desk: Desk) -> None:
    """SQS may hand out fewer than ten while more wait: all come before the queue counts as drained."""
    sqs.batch = 3
    sqs.backwards = True
    sqs.put(signed(event(desk.job.id)), *(signed(event(str(uuid4()))) for _ in range(7)))
    desk.pull()
    assert (desk.state, sqs.left, desk.drained) == (JobState.SENT, 0, True)


def test_an_empty_poll_is_not_enough_while_messages_wait(sqs: SqsServer, desk: Desk) -> None:
    """The poll may have asked servers that have none."""
    sqs.put(signed(event(desk.job.id)))
    desk.store.event_route.subscribed(TOPIC)
    sqs.blind = 1
    desk.pull()
    assert not desk.drained
    desk.pull()
    assert (desk.state, desk.drained) == (JobState.SENT, True)


@pytest.mark.parametrize("where", ["in flight", "delayed"])
def test_messages_that_nobody_can_get_now_are_still_in_the_queue(
    sqs: SqsServer, desk: Desk, where: str
) -> None:
    """Another reader has them and may die with them, or they have not come up yet."""
    desk.store.event_route.subscribed(TOPIC)
    sqs.put(signed(event(desk.job.id)), delayed=where == "delayed")
    sqs.take()
    desk.pull()
    assert (desk.drained, desk.state) == (False, JobState.SENDING)
    sqs.reappear()
    desk.pull()
    assert (desk.drained, desk.state) == (True, JobState.SENT)


def test_a_deleted_message_may_come_again(sqs: SqsServer, desk: Desk) -> None:
    """It is a copy: nothing changes, and the queue is drained after it."""
    sqs.put(signed(event(desk.job.id)))
    sqs.copies = 1
    desk.pull()
    assert (desk.state, sqs.left, desk.drained) == (JobState.SENT, 0, True)


def test_a_refused_message_keeps_the_queue_from_being_drained(sqs: SqsServer, desk: Desk) -> None:
    """It may be an event that our own mistake keeps us from reading."""
    sqs.put(signed(event(str(uuid4()))), event(desk.job.id))
    desk.pull()
    began = desk.stretches
    desk.pull()
    assert (sqs.left, desk.stretches) == (1, began)


@pytest.mark.parametrize("kind", ["unreadable", "refused"])
def test_a_message_that_cannot_be_read_begins_a_new_stretch_at_once(
    sqs: SqsServer, desk: Desk, kind: str
) -> None:
    """It may be the Send event of a letter in doubt. Another reader of the queue must not go on as before."""
    sqs.put(signed(event(desk.job.id)))
    desk.pull()
    began = desk.store.event_route.listening().now
    sqs.put(signed("{") if kind == "unreadable" else event(desk.job.id))
    desk.pull()
    beside = Listener(desk.store.event_route, {TOPIC}, durable=True)
    now = desk.store.event_route.listening().now
    beside.attend()
    listening = desk.store.event_route.listening()
    assert (listening.covers(began, now), listening.covers(now, now)) == (Coverage.BROKEN, Coverage.WHOLE)


def test_a_queue_that_no_topic_delivers_to_is_not_listened_to(sqs: SqsServer, desk: Desk) -> None:
    """Empty it is; but nothing shows that events would come into it."""
    desk.pull()
    assert not desk.drained
    sqs.put(signed("Successfully validated SNS topic for Amazon SES event publishing."))
    desk.pull()
    assert desk.drained


def test_a_queue_that_does_not_tell_its_counts_is_not_drained(sqs: SqsServer, desk: Desk) -> None:
    desk.store.event_route.subscribed(TOPIC)
    sqs.refuse["GetQueueAttributes"] = (200, {"Attributes": {"ApproximateNumberOfMessages": "0"}})
    with pytest.raises(Unavailable, match="did not tell"):
        desk.pull()
    assert not desk.drained


class _Slow:
    """A database that commits nothing before it may."""

    def __init__(self) -> None:
        self.may_commit = threading.Event()
        self.asked = threading.Event()
        self.behind: Events | None = None

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        self.asked.set()
        assert self.may_commit.wait(20)
        assert self.behind is not None
        return self.behind.record_all(events)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


def test_several_receivers_empty_a_full_queue_together(sqs: SqsServer, certificate: Path, desk: Desk) -> None:
    """Each deletes what it received, once that is committed; the look at the queue comes last and once."""
    sqs.put(*(signed(event(str(uuid4()))) for _ in range(64)), signed(event(desk.job.id)))
    receivers = [queue_of(sqs) for _ in range(4)]
    asyncio.run(desk.puller_of(receivers, certificate, desk.store.events).run_once())
    for queue in receivers:
        queue.close()
    assert (desk.state, sqs.left, len(desk.store.events.all(limit=100))) == (JobState.SENT, 0, 65)
    assert sqs.calls[-2:] == ["ReceiveMessage", "GetQueueAttributes"]
    assert (sqs.calls.count("GetQueueAttributes"), desk.drained) == (1, True)


def test_what_another_receiver_holds_keeps_the_queue_from_being_drained(
    sqs: SqsServer, certificate: Path, desk: Desk
) -> None:
    """SQS counts only about: what is in our own hands must not pass for an empty queue, whatever it says."""
    desk.store.event_route.subscribed(TOPIC)
    nothing = dict.fromkeys(("", "NotVisible", "Delayed"), "0")
    counts = {f"ApproximateNumberOfMessages{name}": count for name, count in nothing.items()}
    sqs.refuse["GetQueueAttributes"] = (200, {"Attributes": counts})
    sqs.put(*(signed(event(str(uuid4()))) for _ in range(14)))
    slow = _Slow()
    slow.behind = desk.store.events
    receivers = [queue_of(sqs) for _ in range(4)]
    puller = desk.puller_of(receivers, certificate, slow)  # type: ignore[arg-type]

    async def main() -> None:
        pulling = asyncio.create_task(puller.run_once())
        await asyncio.to_thread(slow.asked.wait, 20)
        await asyncio.to_thread(until, lambda: sqs.calls.count("ReceiveMessage") == 4, 20, "all have asked")
        assert not desk.drained
        slow.may_commit.set()
        await pulling

    asyncio.run(main())
    for queue in receivers:
        queue.close()
    assert (sqs.left, desk.drained) == (0, True)
    looked, *_ = (n for n, call in enumerate(sqs.calls) if call == "GetQueueAttributes")
    assert "DeleteMessageBatch" not in sqs.calls[looked:]


def test_control_messages_are_seen_to(sqs: SqsServer, desk: Desk) -> None:
    """A subscription across accounts is confirmed by our own call, and the message goes."""
    sqs.put(signed("welcome", "SubscriptionConfirmation"), signed("bye", "UnsubscribeConfirmation"))
    desk.pull()
    assert [message.token for message in desk.confirmed] == ["a-token"]
    assert sqs.left == 0


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (403, {"__type": "com.amazonaws.sqs#AccessDenied", "message": "no"}, "403 AccessDenied no"),
        (503, {}, "503"),
    ],
)
def test_a_queue_that_refuses_is_told_in_its_own_words(
    sqs: SqsServer, desk: Desk, status: int, answer: dict[str, Any], says: str
) -> None:
    """As Unavailable: the worker asks again later."""
    sqs.refuse["ReceiveMessage"] = (status, answer)
    with pytest.raises(Unavailable, match=says):
        desk.pull()


def test_wrong_keys_are_refused_and_the_answer_is_cut_before_it_repeats_our_headers(sqs: SqsServer) -> None:
    """Only the first line of a signature error is kept: the rest may hold the session token."""
    queue = queue_of(sqs, secret="other")
    with pytest.raises(Unavailable, match="InvalidSignatureException The request signature") as caught:
        queue.receive()
    queue.close()
    assert "Canonical" not in str(caught.value)


def test_a_delete_that_fails_is_logged_and_harmless(
    sqs: SqsServer, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The message comes again, and then it is a copy."""
    failed = {"Successful": [], "Failed": [{"Id": "0", "Code": "InternalError"}]}
    sqs.refuse["DeleteMessageBatch"] = (200, failed)
    sqs.put(signed(event(desk.job.id)))
    desk.pull()
    assert (desk.state, sqs.left) == (JobState.SENT, 1)
    assert "they come again" in caplog.text


def test_a_cancelled_puller_leaves_no_thread_that_waits(sqs: SqsServer, certificate: Path) -> None:
    """A worker that stops must not wait for the twenty seconds of a long poll."""
    desk = Desk(sqs, certificate)
    puller = desk.puller_of([queue_of(sqs, wait=20)], certificate, desk.store.events)

    async def main() -> None:
        task = asyncio.create_task(puller.run_once())
        await asyncio.to_thread(sqs.waiting.wait, 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    began = time.monotonic()
    asyncio.run(main())  # waits for the threads of the loop
    assert time.monotonic() - began < 15


def test_a_long_poll_gets_what_comes_meanwhile(sqs: SqsServer) -> None:
    """It does not wait for the end of the time."""
    queue = queue_of(sqs, wait=20)

    async def main() -> int:
        waiting = asyncio.create_task(asyncio.to_thread(queue.receive))
        await asyncio.to_thread(sqs.waiting.wait, 10)
        sqs.put("hello")
        return len(await waiting)

    assert asyncio.run(main()) == 1
    queue.close()


@pytest.mark.parametrize(
    "url", ["https://sqs.eu-central-1.amazonaws.com", "https://example.com/a/b/c", "ftp://x/1/q"]
)
def test_what_is_not_the_address_of_a_queue_is_refused(sqs: SqsServer, url: str) -> None:
    """The refusal names the variable and shows a good value."""
    with pytest.raises(BadInput, match="SES_EVENTS_QUEUE_URL"):
        queue_of(sqs, url=url)


def test_the_settings_make_a_puller_only_where_a_queue_is_set(sqs: SqsServer, certificate: Path) -> None:
    """From the environment to a settled job."""
    store = MemoryStore()
    stage = Stage(store)
    stage.running()
    job = stage.claim_one()
    environment = {
        "HOME": "/nowhere",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "SNS_ALLOWED_TOPIC_ARNS": TOPIC,
        "SNS_SIGNING_CERT_FILE": str(certificate),
    }
    assert make_event_puller(load_settings(environment, None), store, NullMetrics()) is None
    settings = load_settings({**environment, "SES_EVENTS_QUEUE_URL": sqs.queue_url}, None)
    puller = make_event_puller(settings, store, Metrics(store.jobs.count_by_state))
    assert puller is not None
    sqs.put(signed(event(job.id)))

    async def main() -> None:
        pulling = asyncio.create_task(puller.run_once())
        while sqs.left or sqs.calls.count("ReceiveMessage") < 2:
            await asyncio.sleep(0.01)
        pulling.cancel()
        await asyncio.gather(pulling, return_exceptions=True)

    asyncio.run(main())
    assert stage.state(job) == JobState.SENT


def test_the_doctor_looks_into_the_queue(sqs: SqsServer) -> None:
    """One that cannot be read is a stop, one that nobody empties a warning."""
    assert ask(QueueProbe(queue_of(sqs), sqs.queue_url)).told("events.queue").endswith("0 events wait in it.")
    sqs.put(*("x" for _ in range(1000)))
    assert ask(QueueProbe(queue_of(sqs), sqs.queue_url))["events.queue"].verdict is Verdict.WARNING
    lost = queue_of(sqs, url=sqs.queue_url + "-gone")
    found = ask(QueueProbe(lost, "gone"))
    assert found.stops() == {"events.queue"}
    assert "QueueDoesNotExist" in found.told("events.queue")
