"""The doctor on an SES account: each stop, made to appear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql import open_store
from sendonce.domain.engine.checks import Verdict
from sendonce.domain.engine.senders import HoldOrder
from tests.adapters.dns_server import DnsServer
from tests.adapters.doctor_stage import (
    ACCOUNT,
    DESTINATION,
    DESTINATIONS,
    HEALTHY_ACCOUNT,
    IDENTITY,
    SES,
    SET,
    VERIFIED,
    WELL_SES,
    FakeSes,
    Findings,
    adopt,
    doctor,
)
from tests.adapters.sandbox_stage import Stage as SandboxStage
from tests.conformance.stage import Stage

KEY = '"v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ"'


@pytest.fixture
def database(sqlite_url: str) -> str:
    return adopt(sqlite_url)


@pytest.fixture
def sandboxes(tmp_path: Path) -> Iterator[SandboxStage]:
    stage = SandboxStage(tmp_path / "sandbox")
    yield stage
    stage.close()


def sandbox_environment(sandboxes: SandboxStage, **settings: Any) -> dict[str, str]:
    environment: dict[str, str] = sandboxes.sandbox(**settings).addresses["environment"]
    return environment


def test_the_sandbox_passes_for_an_account_that_is_well(
    database: str, tmp_path: Path, sandboxes: SandboxStage
) -> None:
    """Signed requests to the whole of the API that is asked; the store's clock is held against SES's."""
    found = doctor(database, tmp_path, sandbox_environment(sandboxes))
    assert not found.stops()
    names = {"ses.account", "ses.production", "ses.sending", "ses.quota", "ses.rate", "ses.identity"}
    names |= {"ses.dkim", "ses.events", "clock"}
    assert {name for name in names if found[name].verdict is Verdict.OK} == names


def test_an_account_that_may_not_send_is_a_stop(
    database: str, tmp_path: Path, sandboxes: SandboxStage
) -> None:
    """In the SES sandbox, paused, without quota, as a stranger, with an unknown configuration set."""
    given = sandbox_environment(
        sandboxes,
        production_access=False,
        sending_enabled=False,
        daily_quota=0,
        identities="example.org",
    )
    found = doctor(database, tmp_path, {**given, "SES_CONFIGURATION_SET": "forgotten"})
    assert found.stops() == {
        "ses.production",
        "ses.sending",
        "ses.quota",
        "ses.identity",
        "ses.events",
    }
    assert "does not exist" in found.told("ses.events")
    assert "may not send as news@example.com" in found.told("ses.identity")


def test_keys_and_clocks_that_amazon_refuses_are_stops(
    database: str, tmp_path: Path, sandboxes: SandboxStage
) -> None:
    """A clock that is off is told as such, though SES only says that the signature is wrong."""
    given = sandbox_environment(sandboxes, clock_offset=-1000.0)
    found = doctor(database, tmp_path, given)
    assert {"ses.account", "clock"} <= found.stops()
    assert "ahead of Amazon's" in found.told("clock")
    wrong = doctor(database, tmp_path, {**given, "AWS_ACCESS_KEY_ID": "AKIAWRONG"})
    assert "ses.account" in wrong.stops()


def test_ses_that_does_not_answer_is_a_stop_and_told_once(database: str, tmp_path: Path) -> None:
    """Identity and events are not asked after."""
    found = doctor(database, tmp_path, {**SES, "AWS_ENDPOINT_URL_SESV2": "http://127.0.0.1:1"})
    assert found.stops() == {"ses.account"}
    assert "SES does not answer" in found.told("ses.account")


def by_fake(database: str, state: Path, changes: dict[str, Any], **environment: str) -> Findings:
    with FakeSes({**WELL_SES, **changes}) as ses:
        return doctor(database, state, {**SES, "AWS_ENDPOINT_URL_SESV2": ses.url, **environment})


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "says"),
    [
        ("ses.sending", {ACCOUNT: {**HEALTHY_ACCOUNT, "EnforcementStatus": "SHUTDOWN"}}, "stop", "SHUTDOWN"),
        (
            "ses.sending",
            {ACCOUNT: {**HEALTHY_ACCOUNT, "EnforcementStatus": "PROBATION"}},
            "warning",
            "review",
        ),
        ("ses.account", {ACCOUNT: (403, {"__type": "AccessDeniedException"})}, "warning", "AccessDenied"),
        ("ses.account", {ACCOUNT: (400, {"__type": "ExpiredTokenException"})}, "stop", "ExpiredToken"),
        (
            "ses.identity",
            {f"{IDENTITY}example.com": {**VERIFIED, "VerifiedForSendingStatus": False}},
            "stop",
            "not verified yet",
        ),
        (
            "ses.identity",
            {f"{IDENTITY}example.com": (403, {"__type": "AccessDeniedException"})},
            "warning",
            "does not tell",
        ),
        (
            "ses.dkim",
            {f"{IDENTITY}example.com": {**VERIFIED, "DkimAttributes": {"Status": "PENDING"}}},
            "warning",
            "DKIM PENDING",
        ),
        (
            "ses.mail-from",
            {
                f"{IDENTITY}example.com": {
                    **VERIFIED,
                    "MailFromAttributes": {
                        "MailFromDomain": "mail.example.com",
                        "MailFromDomainStatus": "FAILED",
                    },
                }
            },
            "warning",
            "mail.example.com is FAILED",
        ),
        ("ses.events", {SET: (404, {"__type": "NotFoundException"})}, "stop", "SES rejects all letters"),
        ("ses.events", {SET: (404, {"message": "Not there."})}, "stop", "Not there. SES rejects"),
        ("ses.events", {SET: (403, {"__type": "AccessDenied"})}, "warning", "does not tell"),
        ("ses.events", {SET: {"SendingOptions": {"SendingEnabled": False}}}, "stop", "paused"),
        ("ses.events", {DESTINATIONS: {"EventDestinations": []}}, "stop", "publishes no events"),
        (
            "ses.events",
            {DESTINATIONS: {"EventDestinations": [{**DESTINATION, "Enabled": False}]}},
            "stop",
            "publishes no events",
        ),
        (
            "ses.events",
            {DESTINATIONS: {"EventDestinations": [{**DESTINATION, "SnsDestination": {"TopicArn": "other"}}]}},
            "stop",
            "names another topic",
        ),
        (
            "ses.events",
            {DESTINATIONS: {"EventDestinations": [{**DESTINATION, "MatchingEventTypes": ["DELIVERY"]}]}},
            "stop",
            "does not publish SEND, BOUNCE, COMPLAINT",
        ),
        (
            "ses.events",
            {
                DESTINATIONS: {
                    "EventDestinations": [
                        {**DESTINATION, "MatchingEventTypes": ["SEND", "BOUNCE", "COMPLAINT"]}
                    ]
                }
            },
            "warning",
            "does not publish DELIVERY",
        ),
    ],
)
def test_what_ses_tells_is_judged(
    database: str, tmp_path: Path, name: str, changes: dict[str, Any], verdict: str, says: str
) -> None:
    """Each trouble alone, with its own verdict."""
    found = by_fake(database, tmp_path, changes)
    assert found.stops() == ({name} if verdict == "stop" else set())
    assert found[name].verdict == verdict
    assert says in found.told(name)


def test_a_list_beyond_the_quota_is_told_in_days_and_a_rate_beyond_theirs_is_told(
    database: str, tmp_path: Path
) -> None:
    """Both are kept to by the workers, so both are warnings."""
    store = open_store(database)
    Stage(store).subscribe(range(25))
    store.close()
    quota = {"Max24HourSend": 10.0, "MaxSendRate": 1.0, "SentLast24Hours": 5.0}
    found = by_fake(database, tmp_path, {ACCOUNT: {**HEALTHY_ACCOUNT, "SendQuota": quota}})
    assert not found.stops()
    assert "5 more letters of 10" in found.told("ses.quota")
    assert "it takes 3 days" in found.told("ses.quota")
    assert "SES takes 1 letters a second" in found.told("ses.rate")
    none_left = {ACCOUNT: {**HEALTHY_ACCOUNT, "SendQuota": {**quota, "SentLast24Hours": 10.0}}}
    assert by_fake(database, tmp_path, none_left).stops() == {"ses.quota"}


def test_ses_that_asks_for_patience_gets_it(database: str, tmp_path: Path) -> None:
    """Some calls are allowed once a second; each question is asked once, but for that."""
    too_many = (400, {"__type": "TooManyRequestsException"})
    with FakeSes({**WELL_SES, SET: [too_many, WELL_SES[SET]]}) as ses:
        found = doctor(database, tmp_path, {**SES, "AWS_ENDPOINT_URL_SESV2": ses.url})
    assert found["ses.events"].verdict is Verdict.OK
    assert ses.asked.count(SET) == 2
    assert ses.asked.count(ACCOUNT) == ses.asked.count(f"{IDENTITY}example.com") == 1


def test_the_keys_that_ses_names_are_looked_up(database: str, tmp_path: Path) -> None:
    """Through the setting DNS_SERVER, from end to end; a CNAME is followed."""
    zone = {
        "example.com": {"MX": ["1 mx.example.com."]},
        "tok2._domainkey.example.com": {"CNAME": ["tok2.dkim.amazonses.com."]},
        "tok2.dkim.amazonses.com": {"TXT": [KEY]},
    }
    with DnsServer(zone) as server:
        found = by_fake(database, tmp_path, {}, DNS_SERVER=server.address)
    assert found.told("dns.dkim") == "ok: DKIM: 1 key (tok2._domainkey.example.com)."


def test_a_held_sender_is_a_stop(database: str, tmp_path: Path) -> None:
    """With the provider's words, until when, and how to let it go."""
    with FakeSes(WELL_SES) as fake:
        environment = {**SES, "AWS_ENDPOINT_URL_SESV2": fake.url}
        assert doctor(database, tmp_path, environment)["sender"].verdict is Verdict.OK
        key = "ses/us-east-1/news@example.com"
        store = open_store(database)
        store.sender_holds.hold(key, HoldOrder("AccountSuspended", "The account is suspended.", 60.0))
        store.close()
        found = doctor(database, tmp_path, environment)
    assert found.stops() == {"sender"}
    assert "The account is suspended." in found.told("sender")
    assert found["sender"].fix.endswith(f"sendonce sender release {key}")
