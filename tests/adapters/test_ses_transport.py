"""What the SES transport asks, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from sendonce.adapters.aws.credentials import Credentials
from sendonce.adapters.aws.sigv4 import sign
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.parcels import Quota
from sendonce.errors import BadInput, Unavailable
from tests.adapters.http_server import ScriptedServer, Step, accepted, answer
from tests.adapters.ses_tray import CLAIMED, KEYS, Tray, carry_by_script, raw_answer, ses_error, ses_transport


def test_a_letter_is_one_signed_request() -> None:
    """The request has the letter, its tags and its configuration set, signed with the time of the claim."""
    content = bytes(range(256)) * 50
    with ScriptedServer([accepted("0100-abc")]) as server:
        tray = Tray(content=content)
        asyncio.run(ses_transport(server.url).carry(tray, 1))
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v2/email/outbound-emails")
    assert base64.b64decode(request.json["Content"]["Raw"]["Data"]) == content
    assert {key: value for key, value in request.json.items() if key != "Content"} == {
        "FromEmailAddress": "from@example.org",
        "ConfigurationSetName": "events",
        "Destination": {"ToAddresses": ['to"x@example.com']},
        "EmailTags": [{"Name": "job", "Value": "job-0"}, {"Name": "attempt", "Value": "3"}],
    }
    signed = {name: request.headers[name] for name in ("Host", "Content-Type")}
    expected = sign(
        "POST",
        request.path,
        signed,
        request.body,
        credentials=KEYS,
        region="eu-central-1",
        service="ses",
        when=CLAIMED,
    )
    assert {name: request.headers[name] for name in expected} == expected
    assert request.headers["X-Amz-Date"] == "20260304T050607Z"
    assert tray.outcomes == {"job-0": Accepted("0100-abc")}


REFUSALS = ["MessageRejected", "BadRequestException"]


SIGNATURE_LATE = "Signature expired: 20260304T050607Z is now earlier than 20260304T060000Z (… - 5 min.)"


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        *((ses_error(400, code, "no"), Refused(code, f"{code}: no")) for code in REFUSALS),
        (
            ses_error(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
            Deferred(
                "TooManyRequestsException",
                "TooManyRequestsException: Maximum sending rate exceeded.",
                1,
                True,
            ),
        ),
        (answer(429), Deferred("http_429", "", 1, True)),
        (
            ses_error(400, "ThrottlingException"),
            Deferred("ThrottlingException", "ThrottlingException", 1, True),
        ),
        (
            ses_error(400, "ThrottlingException", "Daily message quota exceeded", "Message"),
            Deferred("ThrottlingException", "ThrottlingException: Daily message quota exceeded", 600, True),
        ),
        (
            ses_error(400, "LimitExceededException"),
            Deferred("LimitExceededException", "LimitExceededException", 60, True),
        ),
        (
            ses_error(403, "InvalidSignatureException", SIGNATURE_LATE),
            Deferred("signature_expired", f"InvalidSignatureException: {SIGNATURE_LATE}", 1, True),
        ),
        (ses_error(400, "RequestExpired"), Deferred("signature_expired", "RequestExpired", 1, True)),
        (ses_error(409, "ConflictException"), Deferred("ConflictException", "ConflictException")),
        (
            ses_error(400, "BadRequestException:http://internal.amazon.com/x/"),
            Refused("BadRequestException", "BadRequestException"),
        ),
        (
            answer(400, {"__type": "com.amazon.ses#MessageRejected", "message": "no"}),
            Refused("MessageRejected", "MessageRejected: no"),
        ),
    ],
)
def test_what_the_answers_of_ses_mean(step: Step, outcome: Outcome) -> None:
    """Each modelled error has its outcome, wherever the server writes its name."""
    assert carry_by_script([step]).outcome == outcome


UNVERIFIED = (
    "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: a@b.c"
)


@pytest.mark.parametrize(
    ("status", "code", "message", "fix"),
    [
        (404, "NotFoundException", "Configuration set <typo> does not exist.", "SES_CONFIGURATION_SET"),
        (400, "MailFromDomainNotVerifiedException", "", "Custom MAIL FROM"),
        (400, "MessageRejected", UNVERIFIED, "production access"),
        (400, "MessageRejected", "Sending paused for this account.", "why sending is paused"),
        (400, "AccountSuspendedException", "", "suspended"),
        (400, "SendingPausedException", "", "paused"),
        (403, "UnrecognizedClientException", "The security token is invalid.", "AWS credentials"),
        (400, "ExpiredTokenException", "The security token is expired.", "AWS credentials"),
        (403, "AccessDeniedException", "not authorized to perform ses:SendEmail", "ses:SendEmail"),
        (
            403,
            "SignatureDoesNotMatch",
            "does not match.\n\nx-amz-security-token:session-token",
            "credentials",
        ),
    ],
)
def test_a_refusal_of_the_sender_holds_it(status: int, code: str, message: str, fix: str) -> None:
    """The account, the identity, the configuration, the key: no letter is burnt, and the reason says what to
    do. A signature error does not repeat the session token."""
    outcome = carry_by_script([ses_error(status, code, message)]).outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.hold, outcome.throttle) == (code, True, True)
    assert fix in outcome.reason
    assert "session-token" not in outcome.reason


@pytest.mark.parametrize("status", [404, 405])
def test_an_endpoint_that_is_not_ses_holds_the_sender(status: int) -> None:
    """A web server that has no such page took no letter: a list is not put in doubt by a mistyped address."""
    outcome = carry_by_script([answer(status, b"<html>not found</html>")]).outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.hold, outcome.throttle) == (f"http_{status}", True, True)
    assert "AWS_ENDPOINT_URL_SESV2" in outcome.reason


def test_a_403_without_a_word_holds_the_sender() -> None:
    """A proxy or a policy on the way says so: nothing was taken, and every letter would hear the same."""
    outcome = carry_by_script([answer(403, b"<html>forbidden</html>")]).outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.hold, outcome.throttle) == ("http_403", True, True)
    assert "AWS credentials" in outcome.reason


def test_a_letter_that_is_rejected_holds_nobody() -> None:
    """MessageRejected is also said of bad content: that is the letter's own fault."""
    outcome = carry_by_script([ses_error(400, "MessageRejected", "Virus found in the attachment.")]).outcome
    assert outcome == Refused("MessageRejected", "MessageRejected: Virus found in the attachment.")


def test_a_clock_that_is_ahead_rests_the_transport() -> None:
    """The letters wait until the clock is right; the sender is not to blame."""
    outcome = carry_by_script(
        [ses_error(403, "InvalidSignatureException", "Signature not yet current: …")]
    ).outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.retry_after, outcome.hold) == ("clock_ahead", 300, False)


@pytest.mark.parametrize(
    "step",
    [
        *(ses_error(status, "InternalFailure") for status in (500, 502, 503, 504)),
        answer(200, b'{"MessageId":"01'),
        answer(200, b'{"MessageId":7}'),
        answer(200, b"[" * 30_000),
        answer(204),
        answer(301, b"", Location="http://127.0.0.1/"),
        answer(400, b"<html>"),
        Step(then="close"),
        Step(then="reset"),
        raw_answer("HTTP/1.1 200 OK\nContent-Le"),
        raw_answer('HTTP/1.1 200 OK\nContent-Length: 50\n\n{"MessageId":"a"}'),
        raw_answer('HTTP/1.1 200 OK\nContent-Length: 50\n\n{"MessageId":"a"}', "reset"),
        raw_answer('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n11\n{"MessageId":"a"}\n'),
        raw_answer("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\n", "hang"),
        raw_answer("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 2\n\n{}", "hang"),
        raw_answer("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3\n\n{}", "hang"),
        raw_answer("HTTP/1.1 200 OK\nContent-Length: -2\n\n{}", "hang"),
        raw_answer("HTTP/1.1 200 OK\nContent-Length: 999999\n\n{}", "hang"),
        raw_answer("HTTP/1.1 200 OK\n folded: x\n\n", "hang"),
        raw_answer("SSH-2.0-OpenSSH\n\n", "hang"),
        raw_answer("HTTP/1.1 200 OK\nX: " + "x" * 70_000, "hang"),
    ],
)
def test_what_nobody_knows_is_in_doubt(step: Step) -> None:
    """A lost, truncated, unreadable or 5xx answer is doubt, and the request is never repeated."""
    tray = carry_by_script([step, accepted("second")])
    assert isinstance(tray.outcome, InDoubt), tray.outcome
    assert len(tray.server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n8;x=y\n{"Messag\n9\neId":"a"}\n0\nTrailer: 1\n\n',
        'HTTP/1.1 200\nContent-Length: 17\n\n{"MessageId":"a"}',
        'HTTP/1.0 200 OK\n\n{"MessageId":"a"}',
        'HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 17\n\n{"MessageId":"a"}',
    ],
)
def test_answers_come_in_several_wrappings(reply: str) -> None:
    """Chunked with extension and trailer, with a length, until the end, after a 100."""
    assert carry_by_script([raw_answer(reply)]).outcome == Accepted("a")


class _Chain:
    """A credential source that fails first, then gives one key after the other."""

    def __init__(self, *keys: Credentials | None) -> None:
        self._keys = list(keys)

    def current(self) -> Credentials:
        key = self._keys.pop(0)
        if key is None:
            raise Unavailable("No AWS credentials were found.")
        return key


def test_missing_credentials_are_a_deferral() -> None:
    """Nothing to sign with: held, not failed, and asked again for the next letter."""
    tray = carry_by_script([accepted()], Tray(2), source=_Chain(None, KEYS))
    first = tray.outcomes["job-0"]
    assert isinstance(first, Deferred)
    assert (first.code, first.throttle) == ("no_credentials", True)
    assert tray.outcomes["job-1"] == Accepted("id-1")


def test_refused_credentials_are_read_anew() -> None:
    """After a 403 the chain is asked again: the role's keys may have changed."""
    chain = _Chain(Credentials("OLD", "s"), Credentials("NEW", "s"))
    tray = carry_by_script([ses_error(403, "ExpiredTokenException"), accepted()], Tray(2), source=chain)
    assert isinstance(tray.outcomes["job-0"], Deferred)
    used = [request.headers["Authorization"] for request in tray.server.requests]
    assert ["OLD" in used[0], "NEW" in used[1]] == [True, True]


ACCOUNT = {
    "SendingEnabled": True,
    "SendQuota": {"Max24HourSend": 200.0, "MaxSendRate": 1.0, "SentLast24Hours": 50.5},
}


UNLIMITED = {
    "SendingEnabled": False,
    "SendQuota": {"Max24HourSend": -1, "MaxSendRate": 14, "SentLast24Hours": 9},
}


@pytest.mark.parametrize(
    ("account", "quota"), [(ACCOUNT, Quota(1.0, 149, True, 50)), (UNLIMITED, Quota(14.0, None, False, 9))]
)
def test_the_quota(account: dict[str, Any], quota: Quota) -> None:
    """GetAccount tells the rate, what is left today, and whether sending is on."""
    with ScriptedServer([answer(200, account)]) as server:
        assert asyncio.run(ses_transport(server.url).quota()) == quota
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v2/email/account")


@pytest.mark.parametrize(
    "step",
    [
        ses_error(403, "AccessDeniedException", "no"),
        answer(200, b"{}"),
        answer(200, b"[]"),
        Step(then="close"),
    ],
)
def test_no_quota_is_unavailable(step: Step) -> None:
    """Whatever is wrong with the answer, the caller sees Unavailable."""
    with ScriptedServer([step]) as server, pytest.raises(Unavailable):
        asyncio.run(ses_transport(server.url).quota())


def test_the_servers_clock() -> None:
    """server_time() is the Date of a fresh answer; without one it is Unavailable."""
    with ScriptedServer(
        [answer(200, ACCOUNT, Date="Wed, 04 Mar 2026 05:06:07 GMT"), answer(200, ACCOUNT)]
    ) as server:
        transport = ses_transport(server.url)
        assert asyncio.run(transport.server_time()) == CLAIMED
        with pytest.raises(Unavailable, match="Date"):
            asyncio.run(transport.server_time())


def test_the_canary() -> None:
    """A canary goes to the simulator with its own tag, in the same configuration set, and no job tag."""
    with ScriptedServer([accepted("c1"), Step(then="close")]) as server:
        transport = ses_transport(server.url)
        assert asyncio.run(transport.send_canary("abc_1", "from@example.org")) == Accepted("c1")
        assert isinstance(asyncio.run(transport.send_canary("abc_2", "from@example.org")), InDoubt)
    sent = server.requests[0].json
    assert sent["Destination"] == {"ToAddresses": ["success@simulator.amazonses.com"]}
    assert (sent["EmailTags"], sent["ConfigurationSetName"]) == (
        [{"Name": "canary", "Value": "abc_1"}],
        "events",
    )
    for canary_id, sender in (("a b", "from@example.org"), ("a", "x@y.z\r\nBcc: everyone@example.org")):
        with pytest.raises(BadInput):
            asyncio.run(transport.send_canary(canary_id, sender))
