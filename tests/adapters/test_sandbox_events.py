"""What the sandbox tells about letters: signed notifications, and the ways in which they go astray."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from sendonce.sandbox import SandboxSettings
from sendonce.sandbox.events import Fate, fate_of
from tests.adapters.sandbox_stage import FAST, NO_QUESTIONS, RAW, Stage, exchange, signed_request


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "world")
    yield stage
    stage.close()


def is_genuine(envelope: dict[str, Any], certificate: bytes) -> bool:
    """Check an SNS signature by the documentation, on its own."""
    if envelope["Type"] == "Notification":
        names = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
    else:
        names = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    text = "".join(f"{name}\n{envelope[name]}\n" for name in names if name in envelope)
    key = x509.load_pem_x509_certificate(certificate).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    algorithm = {"1": hashes.SHA1(), "2": hashes.SHA256()}[envelope["SignatureVersion"]]
    key.verify(base64.b64decode(envelope["Signature"]), text.encode(), padding.PKCS1v15(), algorithm)
    return True


@pytest.mark.parametrize("version", [1, 2])
def test_events_are_signed_as_sns_signs(stage: Stage, version: int) -> None:
    """Envelope, headers, certificate address and signature are those of SNS."""
    sandbox, receiver = stage.listened(signature_version=version)
    client = sandbox.client()
    message_id = sandbox.send(client, "anna@example.org", job="job-7", attempt=2)
    client.close()
    assert sandbox.drain()["events"]["sent"] == 2
    certificate = Path(sandbox.addresses["certificate_file"]).read_bytes()
    for headers, envelope in receiver.posts:
        assert envelope["SignatureVersion"] == str(version)
        assert is_genuine(envelope, certificate)
        assert envelope["Subject"] == "Amazon SES Email Event Notification"
        assert headers["x-amz-sns-message-type"] == "Notification"
        assert headers["x-amz-sns-message-id"] == envelope["MessageId"]
        assert headers["x-amz-sns-topic-arn"] == envelope["TopicArn"] == sandbox.addresses["topic_arn"]
        assert headers["content-type"].startswith("text/plain")
        url = r"https://sns\.us-east-1\.amazonaws\.com(/SimpleNotificationService-[0-9a-f]{32}\.pem)"
        path = re.fullmatch(url, envelope["SigningCertURL"])
        assert path
        with urllib.request.urlopen(sandbox.endpoint + path[1]) as served:
            assert served.read() == certificate
    mail = next(event["mail"] for event in receiver.events() if event["eventType"] == "Send")
    assert mail["messageId"] == message_id
    assert mail["tags"]["job"] == ["job-7"]
    assert mail["tags"]["attempt"] == ["2"]
    assert mail["tags"]["ses:configuration-set"] == ["sandbox"]
    assert mail["destination"] == ["anna@example.org"]
    assert {"name": "Message-ID", "value": "<1@example.com>"} in mail["headers"]


FATES = [
    ("success@simulator.amazonses.com", ["Send", "Delivery"], None),
    ("bounce+x1@simulator.amazonses.com", ["Send", "Bounce"], ("Permanent", "General")),
    ("complaint@simulator.amazonses.com", ["Send", "Delivery", "Complaint"], None),
    ("ooto@simulator.amazonses.com", ["Send", "Delivery", "Bounce"], ("Transient", "General")),
    ("suppressionlist@simulator.amazonses.com", ["Send", "Bounce"], ("Permanent", "Suppressed")),
    ("anna+bounce@example.org", ["Send", "Bounce"], ("Permanent", "General")),
    ("anna+softbounce@example.org", ["Send", "Bounce"], ("Transient", "MailboxFull")),
    ("anna+complaint@example.org", ["Send", "Delivery", "Complaint"], None),
    ("anna+delay@example.org", ["Send", "DeliveryDelay", "Delivery"], None),
    ("anna+reject@example.org", ["Send", "Reject"], None),
    ("bounce@example.org", ["Send", "Delivery"], None),
]


def test_addresses_choose_their_fate(stage: Stage) -> None:
    """Simulator addresses and words after a plus decide which events follow, in SES's shapes."""
    sandbox, receiver = stage.listened()
    client = sandbox.client()
    for address, _kinds, _bounce in FATES:
        sandbox.send(client, address)
    client.close()
    sandbox.drain()
    for address, kinds, bounce in FATES:
        events = [event for event in receiver.events() if event["mail"]["destination"] == [address]]
        assert Counter(event["eventType"] for event in events) == Counter(kinds)
        details = {event["eventType"]: event for event in events}
        if bounce:
            body = details["Bounce"]["bounce"]
            assert (body["bounceType"], body["bounceSubType"]) == bounce
            assert body["bouncedRecipients"][0]["emailAddress"] == address
            assert body["feedbackId"]
    by_kind = {event["eventType"]: event for event in receiver.events()}
    assert by_kind["Send"]["send"] == {}
    assert by_kind["Reject"]["reject"] == {"reason": "Bad content"}
    assert by_kind["Delivery"]["delivery"]["recipients"]
    assert by_kind["Complaint"]["complaint"]["complainedRecipients"][0]["emailAddress"]
    assert by_kind["DeliveryDelay"]["deliveryDelay"]["expirationTime"]


def test_shares_of_fates_agree_between_runs(tmp_path: Path) -> None:
    """The seed and the address alone decide who bounces, and about the given share does."""
    settings = SandboxSettings(tmp_path, bounce_share=0.2, complaint_share=0.1)
    addresses = [f"u{number}@example.org" for number in range(2000)]
    fates = [fate_of(address, settings, seed=5) for address in addresses]
    assert fates == [fate_of(address.upper(), settings, seed=5) for address in addresses]
    assert 340 < fates.count(Fate.BOUNCE) < 460
    assert 150 < fates.count(Fate.COMPLAINT) < 250
    assert fates != [fate_of(address, settings, seed=6) for address in addresses]


def test_nothing_is_told_without_a_configuration_set(stage: Stage) -> None:
    """SES publishes events through configuration sets only."""
    sandbox, receiver = stage.listened()
    client = sandbox.client()
    request = {"Content": {"Raw": {"Data": RAW.replace(b"{to}", b"a@example.org")}}}
    client.send_email(**request)
    client.close()
    assert sandbox.drain()["accepted"] == 1
    assert receiver.posts == []


def test_confirmation_comes_first(stage: Stage) -> None:
    """Until ConfirmSubscription came nothing is delivered; a wrong token confirms nothing."""
    receiver = stage.receiver()
    asked = threading.Event()
    receiver.react = lambda _envelope: asked.set() or 200
    sandbox = stage.sandbox(**FAST, events_url=receiver.url)
    ses, sns = sandbox.client(), sandbox.client("sns")
    sandbox.send(ses, "anna@example.org")
    assert asked.wait(10)
    ((headers, envelope),) = receiver.posts
    assert headers["x-amz-sns-message-type"] == envelope["Type"] == "SubscriptionConfirmation"
    assert is_genuine(envelope, Path(sandbox.addresses["certificate_file"]).read_bytes())
    assert sandbox.get("stats")["events"]["pending"] == 2
    call = {"TopicArn": envelope["TopicArn"], "AuthenticateOnUnsubscribe": "true"}
    with pytest.raises(sns.exceptions.InvalidParameterException):
        sns.confirm_subscription(Token="wrong", **call)
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.confirm_subscription(**{**call, "TopicArn": "arn:aws:sns:us-east-1:1:x"}, Token=envelope["Token"])
    assert not sandbox.get("stats")["events"]["confirmed"]
    arn = sns.confirm_subscription(Token=envelope["Token"], **call)["SubscriptionArn"]
    assert arn.startswith(envelope["TopicArn"] + ":")
    assert sandbox.drain()["events"]["confirmed"]
    assert sorted(receiver.kinds()) == ["Delivery", "Send"]
    ses.close()
    sns.close()


def test_a_confirmed_subscription_outlives_a_restart(stage: Stage) -> None:
    """A restart asks no second time, and tells what the first run left untold, once."""
    receiver = stage.receiver()
    asked = threading.Event()
    receiver.react = lambda _envelope: asked.set() or 200
    sandbox = stage.sandbox(**FAST, events_url=receiver.url)
    assert asked.wait(10)
    sns = sandbox.client("sns")
    sns.confirm_subscription(TopicArn=sandbox.addresses["topic_arn"], Token=receiver.posts[0][1]["Token"])
    sns.close()
    exchange(sandbox, signed_request(sandbox, "told@example.org"))
    sandbox.drain()
    sandbox.post("pause_events")
    exchange(sandbox, signed_request(sandbox, "untold@example.org"))
    sandbox.kill()
    again = stage.sandbox(**FAST)
    assert again.drain()["events"]["sent"] == 2
    assert Counter(event["mail"]["destination"][0] for event in receiver.events()) == {
        "told@example.org": 2,
        "untold@example.org": 2,
    }
    assert [body["Type"] for _h, body in receiver.posts].count("SubscriptionConfirmation") == 1


def test_a_late_subscriber_hears_everything(stage: Stage) -> None:
    """Without a subscriber the events wait in the log."""
    sandbox, receiver = stage.sandbox(**FAST, **NO_QUESTIONS), stage.receiver()
    exchange(sandbox, signed_request(sandbox, "early@example.org"))
    assert sandbox.get("stats")["events"]["pending"] == 0
    sandbox.post("subscribe", {"url": receiver.url})
    sandbox.drain()
    assert sorted(receiver.kinds()) == ["Delivery", "Send"]


def test_an_unwilling_receiver_is_asked_again(stage: Stage) -> None:
    """An answer that is not 2xx brings the same notification again, until the attempts are used up."""
    sandbox, receiver = stage.listened(event_attempts=3)
    refusals = {"Send": 1, "Delivery": 99}

    def refuse(envelope: dict[str, Any]) -> int:
        kind = json.loads(envelope["Message"])["eventType"]
        refusals[kind] -= 1
        return 500 if refusals[kind] >= 0 else 200

    receiver.react = refuse
    exchange(sandbox, signed_request(sandbox))
    stats = sandbox.drain()["events"]
    assert (stats["sent"], stats["dropped"]) == (1, 1)
    assert Counter(receiver.kinds()) == {"Send": 2, "Delivery": 3}
    assert len({body["Signature"] for _h, body in receiver.posts}) == 2


def test_a_receiver_that_is_down_gets_all_later(stage: Stage) -> None:
    """Events wait for a receiver that refuses connections, and come when it is there."""
    receiver = stage.receiver()
    receiver.close()
    stage.receivers.remove(receiver)
    sandbox = stage.sandbox(**FAST, **NO_QUESTIONS, events_url=receiver.url)
    for _ in range(20):
        exchange(sandbox, signed_request(sandbox))
    living = stage.receiver()
    sandbox.post("subscribe", {"url": living.url})
    assert sandbox.drain()["events"]["sent"] == 40
    assert len({body["MessageId"] for _h, body in living.posts}) == 40


def test_events_come_twice(stage: Stage) -> None:
    """A duplicate is the same post again; a republished event has an id of its own and the same fact."""
    sandbox, receiver = stage.listened(faults={"events": {"duplicate": 1}})
    exchange(sandbox, signed_request(sandbox, "twice+bounce@example.org"))
    sandbox.drain()
    assert Counter(receiver.kinds()) == {"Send": 2, "Bounce": 2}
    assert len({json.dumps(body) for _h, body in receiver.posts}) == 2
    sandbox.post("faults", {"events": {"duplicate": 0, "republish": 1}})
    receiver.posts.clear()
    exchange(sandbox, signed_request(sandbox, "again+bounce@example.org"))
    sandbox.drain()
    assert len({body["MessageId"] for _h, body in receiver.posts}) == 4
    bounces = [event["bounce"] for event in receiver.events() if event["eventType"] == "Bounce"]
    assert len({bounce["feedbackId"] for bounce in bounces}) == 1


def test_events_are_withheld_and_released(stage: Stage) -> None:
    """The events of a job stay away while others come, and come when released."""
    sandbox, receiver = stage.listened(faults={"events": {"withhold_jobs": ["silent"]}})
    client = sandbox.client()
    sandbox.send(client, "a@example.org", job="silent")
    sandbox.send(client, "b@example.org", job="loud")
    client.close()
    stats = sandbox.drain()["events"]
    assert (stats["sent"], stats["withheld"]) == (2, 2)
    assert {event["mail"]["tags"]["job"][0] for event in receiver.events()} == {"loud"}
    assert sandbox.post("release_events") == {"released": 2}
    sandbox.drain()
    assert {event["mail"]["tags"]["job"][0] for event in receiver.events()} == {"loud", "silent"}
    sandbox.post("faults", {"events": {"withhold": 1, "withhold_jobs": []}})
    exchange(sandbox, signed_request(sandbox))
    assert sandbox.drain()["events"]["withheld"] == 2


def test_events_come_late_paused_and_shuffled(stage: Stage) -> None:
    """Late events take their time; paused ones wait for resume, and come in any order when shuffled."""
    sandbox, receiver = stage.listened(event_connections=1, seed=3)
    sandbox.post("faults", {"events": {"late": [0.3, 0.3]}})
    start = time.monotonic()
    exchange(sandbox, signed_request(sandbox))
    assert sandbox.get("stats")["events"]["pending"] == 2
    sandbox.drain()
    assert time.monotonic() - start >= 0.3
    sandbox.post("faults", {"events": {"late": [0, 0], "shuffle": True}})
    sandbox.post("pause_events")
    receiver.posts.clear()
    for number in range(20):
        exchange(sandbox, signed_request(sandbox, f"n{number}@example.org"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        sandbox.get("wait?events_pending=0&timeout=0.05")
    with caught.value as reply:
        assert json.load(reply)["reached"] is False
    assert receiver.posts == []
    sandbox.post("resume_events")
    sandbox.drain()
    order = [event["mail"]["messageId"] for event in receiver.events()]
    assert len(order) == 40
    assert order != sorted(order)
