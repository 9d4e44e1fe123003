"""SNS envelopes: the genuine ones, and what attackers make of them."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.aws.credentials import Credentials
from sendonce.adapters.events.sns import SnsVerifier
from sendonce.adapters.events.sns_certificates import fetch_certificate
from sendonce.adapters.events.sns_subscriptions import confirm_subscription
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.errors import BadInput, CertificateUnknown, NotGenuine, Unavailable
from tests.adapters.http_server import ScriptedServer, Step, answer

TOPIC = "arn:aws:sns:eu-central-1:123456789012:ses-events"
CERT_URL = f"https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{'0af9' * 8}.pem"
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SHA = {"1": hashes.SHA1, "2": hashes.SHA256}
SIGNED = {
    "Notification": ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
    "SubscriptionConfirmation": [
        "Message",
        "MessageId",
        "SubscribeURL",
        "Timestamp",
        "Token",
        "TopicArn",
        "Type",
    ],
}
SIGNED["UnsubscribeConfirmation"] = SIGNED["SubscriptionConfirmation"]

KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)


def _certificate(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, start: datetime, days: int = 365
) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(start).not_valid_after(start + timedelta(days=days))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


PEM = _certificate(KEY, NOW - timedelta(days=30))


def _fields(kind: str = "Notification", **changes: Any) -> dict[str, Any]:
    fields = {
        "Type": kind,
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": '{"eventType":"Send"}\nsecond line',
        "Timestamp": "2026-03-04T11:59:00.123Z",
        "SignatureVersion": "2",
        "SigningCertURL": CERT_URL,
    }
    if kind != "Notification":
        fields |= {"Token": "abc123", "SubscribeURL": "http://169.254.169.254/latest/meta-data"}
    return fields | changes


def _signed(fields: dict[str, Any], key: rsa.RSAPrivateKey = KEY, sha: str | None = None) -> dict[str, Any]:
    lines = [f"{name}\n{fields[name]}\n" for name in SIGNED[fields["Type"]] if name in fields]
    algorithm = SHA[sha or fields["SignatureVersion"]]()
    signature = key.sign("".join(lines).encode(), padding.PKCS1v15(), algorithm)
    return fields | {"Signature": base64.b64encode(signature).decode()}


@dataclass
class Aws:
    """Stands for the certificate's host and counts the visits."""

    pem: bytes | Exception = PEM
    fetched: list[str] = field(default_factory=list)

    def __call__(self, url: str) -> bytes:
        self.fetched.append(url)
        if isinstance(self.pem, Exception):
            raise self.pem
        return self.pem


def _verify(
    fields: dict[str, Any] | bytes,
    aws: Callable[[str], bytes] | None = None,
    topics: tuple[str, ...] = (TOPIC,),
) -> SnsMessage:
    verifier = SnsVerifier(frozenset(topics), fetch=aws or Aws(), now=lambda: NOW)
    return verifier.verify(fields if isinstance(fields, bytes) else json.dumps(fields).encode(), {})


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("kind", list(SIGNED))
@pytest.mark.parametrize("subject", [{}, {"Subject": "Amazon SES Email Event Notification"}])
def test_genuine_messages_are_read(version: str, kind: str, subject: dict[str, str]) -> None:
    """Both signature versions, all three types, with and without a subject."""
    message = _verify(_signed(_fields(kind, SignatureVersion=version, **subject)))
    assert (message.type, message.topic_arn, message.region) == (kind, TOPIC, "eu-central-1")
    assert message.message == '{"eventType":"Send"}\nsecond line'
    assert message.timestamp == datetime(2026, 3, 4, 11, 59, 0, 123000, UTC)
    assert message.token == (None if kind == "Notification" else "abc123")


def test_china_has_its_own_host() -> None:
    """Topics of aws-cn are signed from amazonaws.com.cn, and only those."""
    topic = "arn:aws-cn:sns:cn-north-1:123456789012:t"
    url = f"https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-{'0' * 32}.pem"
    assert _verify(_signed(_fields(TopicArn=topic, SigningCertURL=url)), topics=(topic,)).topic_arn == topic
    with pytest.raises(NotGenuine):
        _verify(_signed(_fields(SigningCertURL=CERT_URL.replace(".com/", ".com.cn/"))))


CERTIFICATE_PATH = f"SimpleNotificationService-{'0af9' * 8}.pem"


@pytest.mark.parametrize(
    "url",
    [
        "https://sns.eu-central-1.amazonaws.com.evil.com/x.pem",
        f"https://sns.eu-central-1.amazonaws.com.evil.com/{CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com@evil.com/{CERTIFICATE_PATH}",
        f"https://evil.com\\@sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://user@sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com:8443/{CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}\n",
        f"\nhttps://sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com/?Action=x&y={CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com/a/../{CERTIFICATE_PATH}",
        f"https://sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}?x=1",
        f"https://sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}#x",
        f"http://sns.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://sns.us-east-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://sns.s3-us-west-2.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://bucket.s3.eu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        f"https://snsxeu-central-1.amazonaws.com/{CERTIFICATE_PATH}",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0af9.pem",
        CERT_URL.replace("0af9", "0AF9"),
        CERT_URL.replace("0af9", "0٣f9"),
        "file:///etc/passwd",
    ],
)
@pytest.mark.parametrize("pinned", [False, True])
def test_a_certificate_from_elsewhere_is_never_fetched(url: str, pinned: bool, tmp_path: Path) -> None:
    """The whole URL must be the one that SNS uses in the topic's region, pinned certificate or not."""
    (tmp_path / "sns.pem").write_bytes(PEM)
    aws = Aws()
    verifier = SnsVerifier(
        frozenset({TOPIC}), tmp_path / "sns.pem" if pinned else None, fetch=aws, now=lambda: NOW
    )
    body = json.dumps(_signed(_fields(SigningCertURL=url))).encode()
    with pytest.raises(NotGenuine) as refusal:
        verifier.verify(body, {})
    assert (refusal.value.http_status, aws.fetched) == (403, [])


@pytest.mark.parametrize(
    ("topics", "sent"),
    [
        ((), TOPIC),
        (("",), ""),
        ((TOPIC,), TOPIC.replace("123456789012", "999999999999")),
        ((TOPIC,), f"{TOPIC}\n"),
        (("not-an-arn",), "not-an-arn"),
        (("arn:aws:sns:s3-x.evil.com/-1:123456789012:t",), "arn:aws:sns:s3-x.evil.com/-1:123456789012:t"),
    ],
)
def test_a_topic_that_is_not_ours_is_refused_before_any_fetch(topics: tuple[str, ...], sent: str) -> None:
    """A genuine signature of a stranger's topic is worth nothing; an empty list refuses everything."""
    aws = Aws()
    with pytest.raises(NotGenuine):
        _verify(_signed(_fields(TopicArn=sent)), aws, topics)
    assert aws.fetched == []


@pytest.mark.parametrize("name", ["Message", "MessageId", "Timestamp", "Subject"])
def test_a_changed_field_breaks_the_signature(name: str) -> None:
    """Any signed field that was touched is noticed."""
    fields = _signed(_fields(Subject="s"))
    fields[name] = "2026-03-04T11:59:01.123Z" if name == "Timestamp" else f"{fields[name]}x"
    with pytest.raises(NotGenuine, match="wrong signature"):
        _verify(fields)


@pytest.mark.parametrize(
    ("version", "sha"), [("1", "2"), ("2", "1"), ("3", "2"), ("", "2"), ("02", "2"), (2, "2")]
)
def test_the_signature_version_means_its_hash(version: Any, sha: str) -> None:
    """Version 1 is SHA1 and version 2 is SHA256; no other version, no other pairing."""
    with pytest.raises(NotGenuine):
        _verify(_signed(_fields(SignatureVersion=version), sha=sha))


def test_another_key_is_refused() -> None:
    """Signed by somebody, but not by the certificate's owner."""
    with pytest.raises(NotGenuine, match="wrong signature"):
        _verify(_signed(_fields(), OTHER_KEY))


def test_one_signed_text_has_one_reading() -> None:
    """A MessageId that swallowed the Subject has the same signed text; it must not pass as a new message."""
    genuine = _signed(_fields(Subject="hello"))
    forged = {name: value for name, value in genuine.items() if name != "Subject"}
    forged["MessageId"] = f"{genuine['MessageId']}\nSubject\nhello"
    with pytest.raises(NotGenuine, match="line end in MessageId"):
        _verify(forged)


@pytest.mark.parametrize(
    "name",
    [
        "Type",
        "MessageId",
        "TopicArn",
        "Message",
        "Timestamp",
        "SignatureVersion",
        "Signature",
        "SigningCertURL",
    ],
)
@pytest.mark.parametrize("value", [None, 7, ["x"], {"a": 1}, True, ""])
def test_fields_have_their_types(name: str, value: Any) -> None:
    """A missing or mistyped field is a refusal, not a crash."""
    with pytest.raises(NotGenuine):
        _verify(_signed(_fields()) | {name: value})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"Type": "\xc3("}',
        b'{"Type": NaN}',
        b'{"Type": 1e999}',
        b'{"Type": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b'{"Type": "Notification", "Type": "Notification"}',
        b" " * 262_145,
        json.dumps({"Type": "Notification", "TopicArn": "\ud800"}).encode(),
        json.dumps(_fields(Type="Other")).encode(),
    ],
)
def test_what_is_not_an_envelope_is_a_bad_request(body: bytes) -> None:
    """Broken, bottomless, ambiguous or oversized JSON is 400 or 403, and fetches nothing."""
    aws = Aws()
    with pytest.raises(NotGenuine) as refusal:
        _verify(body, aws)
    assert refusal.value.http_status in (400, 403)
    assert aws.fetched == []


def test_a_duplicate_key_is_refused_though_signed() -> None:
    """Which of the two would have been believed?"""
    body = json.dumps(_signed(_fields())).replace("{", '{"Message": "evil",', 1).encode()
    with pytest.raises(NotGenuine, match="twice"):
        _verify(body)


def test_raw_delivery_is_refused() -> None:
    """Without an envelope there is no signature; whatever the header says."""
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=Aws(), now=lambda: NOW)
    with pytest.raises(NotGenuine, match="Raw"):
        verifier.verify(json.dumps(_signed(_fields())).encode(), {"X-Amz-SNS-RawDelivery": "true"})


def test_old_evidence_counts_and_old_orders_do_not() -> None:
    """An event of last year is accepted; a confirmation of two hours ago is not."""
    assert _verify(_signed(_fields(Timestamp="2025-03-04T11:59:00.000Z"))).type == "Notification"
    for kind in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):
        with pytest.raises(NotGenuine, match="too old"):
            _verify(_signed(_fields(kind, Timestamp="2026-03-04T10:00:00.000Z")))


@pytest.mark.parametrize(
    "stamp", ["yesterday", "2026-13-04T11:59:00Z", "2026-03-04", "2026-03-04T11:59:00+00:00", "٢"]
)
def test_a_timestamp_has_the_form_of_sns(stamp: str) -> None:
    """Other forms are refused even when signed."""
    with pytest.raises(NotGenuine, match="Timestamp"):
        _verify(_signed(_fields(Timestamp=stamp)))


@pytest.mark.parametrize("start", [NOW + timedelta(days=1), NOW - timedelta(days=400)])
def test_a_certificate_outside_its_dates_is_refused(start: datetime) -> None:
    """Not yet valid, or expired."""
    with pytest.raises(NotGenuine, match="not now"):
        _verify(_signed(_fields()), Aws(_certificate(KEY, start)))


def test_certificates_are_fetched_once() -> None:
    """A good certificate is remembered by its URL."""
    aws = Aws()
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    for number in range(3):
        verifier.verify(json.dumps(_signed(_fields(MessageId=f"m-{number}"))).encode(), {})
    assert aws.fetched == [CERT_URL]


EC_KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    "pem", [Unavailable("no route"), b"", b"garbage", _certificate(EC_KEY, NOW - timedelta(days=1))]
)
def test_a_certificate_that_cannot_be_had_asks_sns_to_come_again(pem: bytes | Exception) -> None:
    """503, because SNS drops an event for ever on a 4xx; and the failure is remembered for some seconds."""
    aws = Aws(pem)
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    for _ in range(3):
        with pytest.raises(Unavailable):
            verifier.verify(json.dumps(_signed(_fields())).encode(), {})
    assert len(aws.fetched) == 1


# -- a stranger's flood ----------------------------------------------------------------------------


def _made_up(number: int) -> bytes:
    url = CERT_URL.replace("0af9" * 8, f"{number:032x}")
    return json.dumps(_signed(_fields()) | {"SigningCertURL": url}).encode()


@dataclass
class BusyAws(Aws):
    """Has the genuine certificate alone, and answers for others when it is told to."""

    may_answer: threading.Event = field(default_factory=threading.Event)

    def __call__(self, url: str) -> bytes:
        self.fetched.append(url)
        if url == CERT_URL:
            return PEM
        self.may_answer.wait(10)
        raise Unavailable("404")


GENUINE = json.dumps(_signed(_fields())).encode()


def test_a_genuine_certificate_is_fetched_after_any_number_of_made_up_ones() -> None:
    """No limit is used up by addresses that lead nowhere."""
    aws = BusyAws()
    aws.may_answer.set()
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    for number in range(200):
        with pytest.raises(Unavailable):
            verifier.verify(_made_up(number), {})
    assert verifier.verify(GENUINE, {}).topic_arn == TOPIC


def test_the_address_that_most_messages_ask_for_comes_first() -> None:
    """A thousand made-up ones wait, a few are under way; SNS's second try overtakes them all."""
    aws = BusyAws()
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    waits = [_unknown(verifier, _made_up(number)) for number in range(500)]
    for _ in range(2):
        learning = _unknown(verifier, GENUINE)
    waits += [_unknown(verifier, _made_up(number)) for number in range(500, 3000)]
    assert len(aws.fetched) <= 4
    aws.may_answer.set()
    learning.result(10)
    assert verifier.verify_now(GENUINE, {}).topic_arn == TOPIC
    assert aws.fetched.index(CERT_URL) <= 8
    for wait in waits:
        wait.result(10)


def _unknown(verifier: SnsVerifier, body: bytes) -> Future[None]:
    with pytest.raises(CertificateUnknown) as caught:
        verifier.verify_now(body, {})
    return caught.value.learning


def test_fetches_under_way_hold_up_nobody_whose_certificate_is_here() -> None:
    aws = BusyAws()
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    verifier.verify(GENUINE, {})
    for number in range(100):
        _unknown(verifier, _made_up(number))
    assert verifier.verify(GENUINE, {}).topic_arn == TOPIC
    forged = json.dumps(_signed(_fields()) | {"MessageId": "another"}).encode()
    with pytest.raises(NotGenuine):
        verifier.verify(forged, {})  # and a forged signature does not spoil the certificate
    assert verifier.verify(GENUINE, {}).topic_arn == TOPIC
    aws.may_answer.set()


def test_an_address_is_fetched_once_however_many_ask_at_the_same_time() -> None:
    aws = BusyAws()
    verifier = SnsVerifier(frozenset({TOPIC}), fetch=aws, now=lambda: NOW)
    with ThreadPoolExecutor(8) as pool:
        made_up = [pool.submit(verifier.verify, _made_up(1), {}) for _ in range(8)]
        while not aws.fetched:
            time.sleep(0.01)
        aws.may_answer.set()
        assert all(isinstance(each.exception(), Unavailable) for each in made_up)
    assert len(aws.fetched) == 1


def test_a_pinned_certificate_means_no_fetch_at_all(tmp_path: Path) -> None:
    """The file's certificate is the only one that counts."""
    (tmp_path / "sns.pem").write_bytes(PEM)
    aws = Aws()
    verifier = SnsVerifier(frozenset({TOPIC}), tmp_path / "sns.pem", fetch=aws, now=lambda: NOW)
    assert verifier.verify(json.dumps(_signed(_fields())).encode(), {}).topic_arn == TOPIC
    with pytest.raises(NotGenuine):
        verifier.verify(json.dumps(_signed(_fields(), OTHER_KEY)).encode(), {})
    assert aws.fetched == []


@pytest.mark.parametrize("content", [None, b"no pem"])
def test_a_bad_pinned_file_is_said_at_once(content: bytes | None, tmp_path: Path) -> None:
    """A missing or broken file names the setting."""
    if content is not None:
        (tmp_path / "sns.pem").write_bytes(content)
    with pytest.raises(BadInput, match="SNS_SIGNING_CERT_FILE"):
        SnsVerifier(frozenset({TOPIC}), tmp_path / "sns.pem")


def test_the_fetch_is_one_bounded_get(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A 200 of modest size is taken; redirects, errors, long answers and lost connections are Unavailable."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    redirect = answer(302, b"", Location="https://127.0.0.1/elsewhere.pem")
    script = [answer(200, PEM), redirect, answer(404), answer(200, b"x" * 20_000), Step(then="reset")]
    with ScriptedServer(script, context) as server:
        assert fetch_certificate(f"{server.url}/x.pem") == PEM
        for _ in script[1:]:
            with pytest.raises(Unavailable):
                fetch_certificate(f"{server.url}/x.pem")
    assert [request.path for request in server.requests] == ["/x.pem"] * 5


_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.dictionaries(st.sampled_from([*_fields(), "Subject", "Token"]), _json))
def test_any_input_is_refused_in_an_orderly_way(damage: bytes | dict[str, Any]) -> None:
    """Whatever comes, the answer is NotGenuine, and nothing is fetched unless the envelope is whole."""
    body = damage if isinstance(damage, bytes) else json.dumps(_fields() | damage).encode()
    with pytest.raises(NotGenuine):
        _verify(body)


CONFIRMED = (
    b"<ConfirmSubscriptionResponse><ConfirmSubscriptionResult>"
    b"<SubscriptionArn>arn:aws:sns:eu-central-1:123456789012:ses-events:1</SubscriptionArn>"
    b"</ConfirmSubscriptionResult></ConfirmSubscriptionResponse>"
)
ERROR = (
    b"<ErrorResponse><Error><Code>InvalidParameter</Code>"
    b"<Message>Invalid token\nmore</Message></Error></ErrorResponse>"
)


def test_a_subscription_is_confirmed_by_a_signed_call() -> None:
    """ConfirmSubscription goes to SNS with our credentials, never to the SubscribeURL of the message."""
    message = _verify(_signed(_fields("SubscriptionConfirmation")))
    with ScriptedServer([answer(200, CONFIRMED)]) as server:
        assert confirm_subscription(message, Credentials("AKID", "secret"), server.url).endswith(
            ":ses-events:1"
        )
    (request,) = server.requests
    assert parse_qs(request.body.decode()) == {
        "Action": ["ConfirmSubscription"],
        "Version": ["2010-03-31"],
        "TopicArn": [TOPIC],
        "Token": ["abc123"],
        "AuthenticateOnUnsubscribe": ["true"],
    }
    assert "/eu-central-1/sns/aws4_request" in request.headers["Authorization"]


def test_a_confirmation_that_fails_is_unavailable() -> None:
    """SNS's error is told; a notification confirms nothing."""
    message = _verify(_signed(_fields("SubscriptionConfirmation")))
    with (
        ScriptedServer([answer(400, ERROR)]) as server,
        pytest.raises(Unavailable, match=r"400 InvalidParameter Inv"),
    ):
        confirm_subscription(message, Credentials("AKID", "secret"), server.url)
    with pytest.raises(BadInput):
        confirm_subscription(_verify(_signed(_fields())), Credentials("AKID", "secret"), server.url)
    with pytest.raises(BadInput, match="AWS_ENDPOINT_URL_SNS"):
        confirm_subscription(message, Credentials("AKID", "secret"), "http://sns.example.com")
