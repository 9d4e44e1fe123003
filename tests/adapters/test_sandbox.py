"""The sandbox as its users see it: an unmodified AWS client, a raw socket, and its files."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from botocore.exceptions import ClientError

from sendonce.errors import BadInput
from sendonce.sandbox import SandboxAddresses, SandboxSettings, run_sandbox
from tests.adapters.sandbox_stage import FAST, RAW, Sandbox, Stage, exchange, signed_request


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "world")
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the tests that use addresses of their own and leave no faults behind."""
    stage = Stage(tmp_path_factory.mktemp("shared"))
    yield stage.sandbox(**FAST, max_message_bytes=20_000)
    stage.close()


@pytest.fixture(scope="module")
def ses(shared: Sandbox) -> Iterator[Any]:
    client = shared.client()
    yield client
    client.close()


# SES: what it takes and what it refuses


def test_boto3_sends_raw_letters(shared: Sandbox, ses: Any) -> None:
    """A raw letter gets an id in SES's shape, a complete line in the log, and its text is kept."""
    before = time.time()
    message_id = shared.send(ses, "raw@example.org", job="01HX", attempt=3)
    assert re.fullmatch(r"0100[0-9a-f]{12}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-000000", message_id)
    (row,) = shared.logged("raw@example.org")
    assert before - 1 < row.pop("t") < time.time() + 1
    assert row == {
        "message_id": message_id,
        "to": ["raw@example.org"],
        "from": "news@example.com",
        "job": "01HX",
        "attempt": 3,
        "tags": {"job": "01HX", "attempt": "3"},
        "configuration_set": "sandbox",
        "message_id_header": "<1@example.com>",
        "subject": "Hello",
        "size": len(RAW.replace(b"{to}", b"raw@example.org")),
    }
    kept = (shared.directory / "messages" / f"{message_id}.eml").read_bytes()
    assert kept == RAW.replace(b"{to}", b"raw@example.org")


def test_boto3_sends_simple_letters(shared: Sandbox, ses: Any) -> None:
    """A simple letter is written out, Cc and Bcc count as recipients, and its subject is readable."""
    ses.send_email(
        FromEmailAddress="Новости <news@example.com>",
        Destination={"ToAddresses": ["simple@example.org"], "BccAddresses": ["hidden@example.org"]},
        Content={
            "Simple": {"Subject": {"Data": "Привет"}, "Body": {"Text": {"Data": "т"}, "Html": {"Data": "х"}}}
        },
    )
    (row,) = shared.logged("simple@example.org")
    assert row["subject"] == "Привет"
    assert row["to"] == ["simple@example.org", "hidden@example.org"]
    assert row["job"] is None


def test_boto3_looks_around(shared: Sandbox, ses: Any) -> None:
    """Account, identity, configuration set and event destination answer as doctor will ask them."""
    account = ses.get_account()
    assert account["SendQuota"]["MaxSendRate"] == 1e6
    assert account["SendingEnabled"]
    assert account["ProductionAccessEnabled"]
    date = parsedate_to_datetime(account["ResponseMetadata"]["HTTPHeaders"]["date"])
    assert abs(date.timestamp() - time.time()) < 60
    assert account["ResponseMetadata"]["RequestId"]
    assert ses.get_email_identity(EmailIdentity="example.com")["VerifiedForSendingStatus"]
    assert ses.get_configuration_set(ConfigurationSetName="sandbox")["ConfigurationSetName"] == "sandbox"
    (destination,) = ses.get_configuration_set_event_destinations(ConfigurationSetName="sandbox")[
        "EventDestinations"
    ]
    assert destination["SnsDestination"]["TopicArn"] == shared.addresses["topic_arn"]
    with pytest.raises(ses.exceptions.NotFoundException):
        ses.get_email_identity(EmailIdentity="someone@example.net")
    with pytest.raises(ses.exceptions.NotFoundException):
        ses.get_configuration_set(ConfigurationSetName="none/such")


TWICE = b"From: news@example.com\r\nSubject: a\r\nSubject: b\r\n\r\nx"
REFUSALS = [
    ({"Destination": {"ToAddresses": ["no@example.org"] * 51}}, "MessageRejected", "exceeds 50"),
    ({"FromEmailAddress": "me@example.net"}, "MessageRejected", "Email address is not verified"),
    ({"ConfigurationSetName": "other"}, "NotFoundException", "does not exist"),
    ({"EmailTags": [{"Name": "job", "Value": "a@b"}]}, "BadRequestException", "Invalid tag value <a@b>"),
    ({"EmailTags": [{"Name": "j" * 257, "Value": "1"}]}, "BadRequestException", "Invalid tag name"),
    ({"Content": {"Raw": {"Data": RAW + b"x" * 20_000}}}, "MessageRejected", "more than 20000 bytes"),
    ({"Content": {"Raw": {"Data": TWICE}}}, "BadRequestException", "Duplicate header 'Subject'"),
    ({"Destination": {"ToAddresses": ["no-domain"]}}, "BadRequestException", "@domain"),
    ({"Destination": {"ToAddresses": ["имя@example.org"]}}, "BadRequestException", "non-ASCII"),
]


@pytest.mark.parametrize(("change", "code", "words"), REFUSALS)
def test_refusals(shared: Sandbox, ses: Any, change: dict[str, Any], code: str, words: str) -> None:
    """What SES refuses is refused with its error, and leaves no line in the log."""
    before = len(shared.log())
    with pytest.raises(ClientError, match=re.escape(words)) as caught:
        shared.send(ses, "no@example.org", **change)
    assert caught.value.response["Error"]["Code"] == code
    assert len(shared.log()) == before
    assert shared.get("stats")["refused"][code] >= 1


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"Content": 7}', b'{"Content": {"Raw": {"Data": "%"}}}']
)
def test_nonsense_is_refused(shared: Sandbox, body: bytes) -> None:
    """A body that is no SendEmail request is a 400, whatever it is."""
    status, _headers, _reply = exchange(shared, signed_request(shared, body=body))
    assert status == 400


@pytest.mark.parametrize(
    "noise", [b"EHLO there\r\n", b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"]
)
def test_noise_is_refused(shared: Sandbox, noise: bytes) -> None:
    """What is not plain HTTP/1.1 is a 400 and a close."""
    with socket.create_connection(("127.0.0.1", shared.port), 10) as wire:
        wire.sendall(noise)
        assert wire.recv(100).startswith(b"HTTP/1.1 400 ")


def test_rate_is_a_sliding_second(stage: Stage) -> None:
    """Above the rate SES answers 429, and no second of the log, wherever it begins, holds more."""
    sandbox = stage.sandbox(max_rate=3)
    client = sandbox.client()
    four = {"ToAddresses": [f"n{number}@example.org" for number in range(4)]}
    too_many = client.exceptions.TooManyRequestsException
    with pytest.raises(too_many, match="Maximum sending rate exceeded") as caught:
        sandbox.send(client, "to@example.org", Destination=four)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    client.close()
    while len(sandbox.log()) < 8:
        assert exchange(sandbox, signed_request(sandbox))[0] in (200, 429)
    times = [row["t"] for row in sandbox.log()]
    assert all(later - earlier > 0.99 for earlier, later in zip(times, times[3:], strict=False))


def test_daily_quota_outlives_a_restart(stage: Stage) -> None:
    """The day's recipients are counted over restarts; letters to the simulator are free."""
    for expected in (2.0, 2.0):
        sandbox = stage.sandbox(daily_quota=2, max_rate=1e6)
        client = sandbox.client()
        if not sandbox.log():
            sandbox.send(client, "one@example.org")
            sandbox.send(client, "two@example.org")
        sandbox.send(client, "success@simulator.amazonses.com")
        with pytest.raises(ClientError, match="Daily message quota exceeded") as caught:
            sandbox.send(client, "three@example.org")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert client.get_account()["SendQuota"]["SentLast24Hours"] == expected
        client.close()
        sandbox.stop()


def test_accounts_of_lesser_standing(stage: Stage) -> None:
    """Without production access only verified recipients and the simulator are written to."""
    sandbox = stage.sandbox(**FAST, production_access=False)
    client = sandbox.client()
    sandbox.send(client, "colleague@mail.example.com")
    sandbox.send(client, "bounce+7@simulator.amazonses.com")
    with pytest.raises(client.exceptions.MessageRejected, match=r"US-EAST-1: stranger@example\.org"):
        sandbox.send(client, "stranger@example.org")
    client.close()


# Signatures


def test_only_our_signature_is_good(shared: Sandbox) -> None:
    """No signature, another's key and a wrong secret are three kinds of 403."""
    unsigned = re.sub(rb"Authorization: [^\r]*\r\n", b"", signed_request(shared, "sig@example.org"))
    status, headers, _body = exchange(shared, unsigned)
    assert (status, headers["x-amzn-ErrorType"]) == (403, "MissingAuthenticationTokenException")
    for change, code in (
        ({"aws_secret_access_key": "wrong"}, "InvalidSignatureException"),
        ({"aws_access_key_id": "SOMEBODY"}, "UnrecognizedClientException"),
        ({"region_name": "eu-west-1"}, "InvalidSignatureException"),
    ):
        client = shared.client(**change)
        with pytest.raises(ClientError) as caught:
            shared.send(client, "sig@example.org")
        client.close()
        assert caught.value.response["Error"]["Code"] == code
    tampered = signed_request(shared, "sig@example.org").replace(b'"sandbox"', b'"Sandbox"')
    assert exchange(shared, tampered)[0] == 403
    assert not shared.logged("sig@example.org")


def test_an_old_signature_is_refused(stage: Stage) -> None:
    """A request signed longer ago than the window is not accepted, however it comes late."""
    sandbox = stage.sandbox(**FAST, signature_window=30)
    with time_machine.travel(time.time() - 60, tick=True):
        late = signed_request(sandbox, "late@example.org")
    with time_machine.travel(time.time() + 60, tick=True):
        early = signed_request(sandbox, "early@example.org")
    status, headers, body = exchange(sandbox, late)
    assert (status, headers["x-amzn-ErrorType"]) == (403, "InvalidSignatureException")
    assert re.match(r"Signature expired: \d{8}T\d{6}Z is now earlier than ", json.loads(body)["message"])
    assert b"Signature not yet current" in exchange(sandbox, early)[2]
    assert sandbox.log() == []
    assert exchange(sandbox, signed_request(sandbox, "in-time@example.org"))[0] == 200


def test_the_sandbox_has_a_clock_of_its_own(stage: Stage) -> None:
    """With its clock an hour ahead, Date says so and today's signatures have expired."""
    sandbox = stage.sandbox(**FAST, clock_offset=3600)
    status, headers, body = exchange(sandbox, signed_request(sandbox))
    assert status == 403
    assert b"Signature expired" in body
    assert parsedate_to_datetime(headers["Date"]).timestamp() > time.time() + 3500


# The log


def test_the_log_is_written_before_the_answer(stage: Stage) -> None:
    """Whoever has an answer finds his letter in the log at once, also when many send together."""
    sandbox = stage.sandbox(**FAST)

    def send_and_look(number: int) -> bool:
        _status, _headers, body = exchange(sandbox, signed_request(sandbox, f"n{number}@example.org"))
        return json.loads(body)["MessageId"].encode() in (sandbox.directory / "accepted.jsonl").read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(send_and_look, range(80)))
    assert len({row["message_id"] for row in sandbox.log()}) == 80


def start_here(directory: Path, ready: asyncio.Future[SandboxAddresses]) -> asyncio.Task[None]:
    return asyncio.create_task(run_sandbox(SandboxSettings(directory, port=0), ready.set_result))


class HeldDisk:
    """Stands in for os.fdatasync: a flush that begins, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.error: OSError | None = None

    def __call__(self, _fd: int) -> None:
        self.begun.set()
        assert self.may_end.wait(10)
        if self.error:
            raise self.error


@pytest.mark.parametrize("broken", [False, True])
def test_no_answer_before_the_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    """Nobody is answered while the disk is busy; a flush that fails answers nobody and ends the world."""
    disk = HeldDisk()
    monkeypatch.setattr(os, "fdatasync", disk)

    async def run() -> bytes:
        ready: asyncio.Future[SandboxAddresses] = asyncio.get_running_loop().create_future()
        world = start_here(tmp_path, ready)
        addresses = await ready
        reader, writer = await asyncio.open_connection("127.0.0.1", addresses.endpoint.rpartition(":")[2])
        writer.write(signed_request(addresses))
        reply = asyncio.create_task(reader.read(12))
        assert await asyncio.to_thread(disk.begun.wait, 10)
        assert not reply.done()
        disk.error = OSError(errno.EIO, "the disk is gone") if broken else None
        disk.may_end.set()
        if not broken:
            await reply
            world.cancel()
        with pytest.raises(OSError if broken else asyncio.CancelledError):
            await world
        answer = await reply
        writer.close()
        await writer.wait_closed()
        return answer

    assert asyncio.run(run()) == (b"" if broken else b"HTTP/1.1 200")


def test_sigkill_loses_no_acceptance(stage: Stage) -> None:
    """After SIGKILL the log has every answered letter; a new run drops a torn line and goes on."""
    sandbox = stage.sandbox(**FAST)
    answered = [json.loads(exchange(sandbox, signed_request(sandbox))[2])["MessageId"] for _ in range(5)]
    sandbox.kill()
    assert [row["message_id"] for row in sandbox.log()] == answered
    with (sandbox.directory / "accepted.jsonl").open("ab") as log:
        log.write(b'{"t": 17')
    again = stage.sandbox(**FAST)
    assert again.get("stats")["accepted"] == 5
    assert again.addresses["seed"] == sandbox.addresses["seed"]
    exchange(again, signed_request(again))
    assert len({row["message_id"] for row in again.log()}) == 6


def test_a_directory_has_one_master(shared: Sandbox) -> None:
    """A second sandbox on the same directory is refused: two writers would spoil the log."""
    command = [sys.executable, "-m", "sendonce.sandbox", "--dir", str(shared.directory), "--port=0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith("Another sandbox writes ")


def test_duplicates_are_counted(shared: Sandbox, ses: Any) -> None:
    """A second letter of a job to the same recipient is a duplicate; another job's is not."""
    before = shared.get("stats")["duplicates"]
    for job, attempt in (("d1", 1), ("d2", 1), ("d1", 2)):
        shared.send(ses, "twice@example.org", job=job, attempt=attempt)
    assert shared.get("stats")["duplicates"] == before + 1
    assert [row["attempt"] for row in shared.get("accepted?job=d1")] == [1, 2]
    assert len(shared.get("accepted?to=twice@example.org")) == 3


# The door for people and programs


def test_the_page_tells_what_this_is(shared: Sandbox) -> None:
    """GET /sandbox/ is for reading."""
    with urllib.request.urlopen(shared.addresses["control"]) as page:
        text = page.read().decode()
    assert shared.endpoint in text
    assert "reset_after" in text


def test_web_pages_may_not_steer(shared: Sandbox) -> None:
    """A POST with an Origin comes from a browser and is refused."""
    request = urllib.request.Request(
        f"{shared.endpoint}/sandbox/faults", b'{"refuse": 1}', {"Origin": "http://evil.example"}
    )
    with pytest.raises(urllib.error.HTTPError, match="403") as caught:
        urllib.request.urlopen(request)
    caught.value.close()


def test_it_talks_to_this_machine_only(tmp_path: Path) -> None:
    """An address for events outside of loopback is refused, and so are settings that make no sense."""
    for url in ("https://127.0.0.1/x", "http://example.org/x", "http://10.0.0.1/", "ftp://localhost/", "x"):
        with pytest.raises(BadInput, match="this machine only"):
            SandboxSettings(tmp_path, events_url=url)
    for wrong in ({"signature_version": 3}, {"max_rate": 0}, {"bounce_share": 1.5}):
        with pytest.raises(BadInput):
            SandboxSettings(tmp_path, **wrong)


def test_run_sandbox_in_this_process(tmp_path: Path) -> None:
    """run_sandbox announces its addresses, serves, and ends when it is cancelled."""

    async def run() -> dict[str, str]:
        ready: asyncio.Future[SandboxAddresses] = asyncio.get_running_loop().create_future()
        task = start_here(tmp_path / "new", ready)
        addresses = await ready
        page = await asyncio.to_thread(_read, addresses.control)
        assert b"sendonce sandbox" in page
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return addresses.environment()

    environment = asyncio.run(run())
    assert set(environment) == {
        "AWS_ENDPOINT_URL_SESV2",
        "AWS_ENDPOINT_URL_SNS",
        "AWS_ENDPOINT_URL_S3",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "SES_FROM_EMAIL",
        "SES_CONFIGURATION_SET",
        "SNS_ALLOWED_TOPIC_ARNS",
        "SNS_SIGNING_CERT_FILE",
        "NOTION_API_URL",
        "NOTION_TOKEN",
        "NOTION_LETTERS_ID",
        "NOTION_ERRORS_ID",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "WEB_STAND_IN",
        "YANDEX_SEARCH_URL",
        "YANDEX_OPERATION_URL",
        "YANDEX_IAM_URL",
        "YANDEX_CLOUD_FOLDER_ID",
        "YANDEX_CLOUD_API_KEY",
        "SEARCH_WINDOW",
        "SEARCH_FIRST_POLL_SECONDS",
    }
    assert Path(environment["SNS_SIGNING_CERT_FILE"]).exists()


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url) as reply:
        content: bytes = reply.read()
        return content


def test_a_wrong_flag_is_explained(tmp_path: Path) -> None:
    """A setting that makes no sense ends the program with exit code 2 and a sentence."""
    command = [sys.executable, "-m", "sendonce.sandbox", "--dir", str(tmp_path), "--max-rate=0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "max_rate is 0.0: give a number of recipients above 0.\n"
