"""Before a mailout starts the provider is asked whether it would refuse every letter."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.checks import Check, stop
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.sender_identities import NewSender
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.mailouts.mailouts import FetchedLetter, Mailout, MailoutStatus
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import SenderRefused
from sendonce.flows.engine.check_sender import ProviderCheck, Recipients, refuse_if_refused
from sendonce.flows.mailouts.prepare_mailouts import Preparer
from sendonce.flows.mailouts.start_mailout import StartOrder, page_mailout, start_mailout
from sendonce.settings import load_settings
from sendonce.wiring.sender_check import make_sender_check
from tests.adapters.doctor_stage import (
    ACCOUNT,
    DESTINATIONS,
    HEALTHY_ACCOUNT,
    IDENTITY,
    SES,
    SET,
    WELL,
    WELL_SES,
    FakeSes,
)
from tests.adapters.http_stage import HttpStage, serving
from tests.adapters.smtp_server import Answer as SmtpAnswer
from tests.adapters.smtp_server import Do, SmtpServer
from tests.conformance.stage import Stage

IDENTITIES = "/v2/email/identities"
SANDBOXED = {**HEALTHY_ACCOUNT, "ProductionAccessEnabled": False}
NO_LETTERS_LEFT = {"SendQuota": {"Max24HourSend": 10.0, "MaxSendRate": 1.0, "SentLast24Hours": 10.0}}
TROUBLES: dict[str, tuple[dict[str, Any], str]] = {
    "sandbox": ({ACCOUNT: SANDBOXED}, "in the SES sandbox"),
    "paused": ({ACCOUNT: {**HEALTHY_ACCOUNT, "SendingEnabled": False}}, "Sending is paused"),
    "wrong key": ({ACCOUNT: (403, {"__type": "InvalidClientTokenId"})}, "InvalidClientTokenId"),
    "identity": ({f"{IDENTITY}example.com": (404, {"__type": "NotFoundException"})}, "may not send as"),
    "set": ({SET: (404, {"__type": "NotFoundException"})}, "The configuration set sandbox"),
    "set paused": ({SET: {"SendingOptions": {"SendingEnabled": False}}}, "Sending is paused for the conf"),
}
NO_TROUBLES: dict[str, dict[str, Any]] = {
    "well": {},
    "not told": {ACCOUNT: (403, {"__type": "AccessDeniedException"})},
    "server error": {ACCOUNT: (500, {"__type": "InternalFailure"})},
    "quota used up": {ACCOUNT: {**HEALTHY_ACCOUNT, **NO_LETTERS_LEFT}},
    "no events": {DESTINATIONS: {"EventDestinations": []}},
}


@contextmanager
def ses(changes: dict[str, Any], within: float = 5.0) -> Iterator[tuple[ProviderCheck, FakeSes]]:
    with FakeSes({**WELL_SES, **changes}) as fake:
        settings = load_settings({**WELL, **SES, "AWS_ENDPOINT_URL_SESV2": fake.url}, dotenv=None)
        yield make_sender_check(settings, MemoryStore(), within), fake


def nobody() -> Sequence[str]:
    return ["somebody@example.org"]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_would_meet_every_letter_is_a_refusal(trouble: str) -> None:
    """Each is told with what to do."""
    changes, words = TROUBLES[trouble]
    with ses(changes) as (check, _):
        (refusal,) = check.refusals(OWN_SENDER, nobody)
    assert words in refusal.what
    assert refusal.fix


@pytest.mark.parametrize("trouble", NO_TROUBLES)
def test_what_is_not_certain_refuses_nobody(trouble: str) -> None:
    """What SES does not tell, a used-up quota and missing events do not keep a mailout from starting."""
    with ses(NO_TROUBLES[trouble]) as (check, _):
        assert check.refusals(OWN_SENDER, nobody) == []


def test_a_provider_that_does_not_answer_in_time_refuses_nobody() -> None:
    """Whoever asks is answered within the time they have."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = load_settings({**WELL, **SES, "AWS_ENDPOINT_URL_SESV2": url}, dotenv=None)
        began = time.monotonic()
        assert make_sender_check(settings, MemoryStore(), 0.3).refusals(OWN_SENDER, nobody) == []
    assert time.monotonic() - began < 8


def test_what_is_well_is_not_asked_again_at_once() -> None:
    """A second start costs nothing; trouble is asked for again each time, for somebody is mending it."""
    with ses({}) as (check, fake):
        assert check.refusals(OWN_SENDER, nobody) == []
        asked = len(fake.asked)
        assert check.refusals(OWN_SENDER, nobody) == []
        assert len(fake.asked) == asked
    changes: dict[str, Any] = {ACCOUNT: [SANDBOXED, HEALTHY_ACCOUNT]}
    with ses(changes) as (check, _):
        assert len(check.refusals(OWN_SENDER, nobody)) == 1
        assert check.refusals(OWN_SENDER, nobody) == []


VERIFIED = [
    {"IdentityName": "tester@example.org", "VerificationStatus": "SUCCESS"},
    {"IdentityName": "example.net", "VerificationStatus": "SUCCESS"},
    {"IdentityName": "pending.example", "VerificationStatus": "PENDING"},
]


@pytest.mark.parametrize(
    ("recipients", "refused"),
    [
        (["tester@example.org"], False),
        (["Tester@Example.org", "anybody@example.net", "success@simulator.amazonses.com"], False),
        (["tester@example.org", "other@example.org"], True),
        (["a@pending.example"], True),
        (["anybody@example.net"] * 201, True),
    ],
)
def test_an_account_in_the_sandbox_may_write_to_verified_addresses(
    recipients: list[str], refused: bool
) -> None:
    """To an address or a domain that is verified, and to Amazon's test mailbox; but not to a long list."""
    with ses({ACCOUNT: SANDBOXED, IDENTITIES: {"EmailIdentities": VERIFIED}}) as (check, _):
        assert bool(check.refusals(OWN_SENDER, lambda: recipients)) is refused


# -- SMTP ----------------------------------------------------------------------------------------------


def smtp_check(port: int, within: float = 5.0) -> ProviderCheck:
    smtp = {
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(port),
        "SMTP_SECURITY": "plain",
        "SMTP_USERNAME": "news",
        "SMTP_PASSWORD": "secret-word",
        "SMTP_FROM_EMAIL": "news@example.com",
    }
    return make_sender_check(load_settings({**WELL, **smtp}, dotenv=None), MemoryStore(), within)


def smtp_refusals(answers: dict[str, Sequence[SmtpAnswer]]) -> Sequence[Check]:
    async def main() -> Sequence[Check]:
        async with SmtpServer(answers, extensions=("AUTH PLAIN",)) as server:
            return await asyncio.to_thread(smtp_check(server.port).refusals, OWN_SENDER, nobody)

    return asyncio.run(main())


def test_a_wrong_smtp_password_is_a_refusal() -> None:
    (refusal,) = smtp_refusals({"AUTH": [b"535 5.7.8 wrong"]})
    assert "535 5.7.8 wrong" in refusal.what
    assert "SMTP_PASSWORD" in refusal.fix
    assert "secret-word" not in str(refusal)


@pytest.mark.parametrize(
    "answers",
    [{}, {"GREETING": [b"421 4.3.2 busy"]}, {"EHLO": [Do.CLOSE]}, {"AUTH": [b"454 4.7.0 later"]}],
    ids=["well", "busy", "closes", "sign-in not now"],
)
def test_an_smtp_server_that_may_recover_refuses_nobody(answers: dict[str, Sequence[SmtpAnswer]]) -> None:
    assert smtp_refusals(answers) == []


def test_an_smtp_server_that_is_down_refuses_nobody() -> None:
    """The mailout starts and waits: a server that is down may be up in a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert smtp_check(port).refusals(OWN_SENDER, nobody) == []


# -- senders that were added --------------------------------------------------------------------------


def check_added(secrets: dict[str, str], port: int = 1, *, removed: bool = False) -> Sequence[Check]:
    """The refusals of an added sender on SMTP, in an environment that writes files only."""
    store = MemoryStore()
    made = NewSender(
        "sales@example.com",
        "smtp",
        "127.0.0.1",
        port=port,
        security="plain",
        username="sales",
        secret_from="SENDER_SALES_PASSWORD",
    )
    sender = store.senders.add(DEFAULT_TENANT, made, "operator")
    if removed:
        store.senders.remove(sender.id, "operator")
    settings = load_settings({**WELL, "TRANSPORT": "maildir", **secrets}, dotenv=None)
    check = make_sender_check(settings, store, 5.0)
    assert check.refusals(OWN_SENDER, nobody) == []
    return check.refusals(sender.id, nobody)


def test_an_added_sender_is_asked_at_its_own_provider() -> None:
    """What to do is told of the sender itself: no variable of the environment is wrong."""

    async def main() -> Sequence[Check]:
        async with SmtpServer({"AUTH": [b"535 5.7.8 wrong"]}, extensions=("AUTH PLAIN",)) as server:
            return await asyncio.to_thread(check_added, {"SENDER_SALES_PASSWORD": "secret-word"}, server.port)

    (refusal,) = asyncio.run(main())
    assert "535 5.7.8 wrong" in refusal.what
    assert "sendonce sender add sales@example.com" in refusal.fix
    assert "SMTP_" not in refusal.fix


def test_a_secret_that_is_not_set_is_a_refusal() -> None:
    """Nobody has to ask a provider for that, and nobody says that the provider refused."""
    (refusal,) = check_added({})
    assert refusal.what.startswith("SENDER_SALES_PASSWORD is not set")
    with pytest.raises(SenderRefused, match="The sender cannot send from here, so nothing was started"):
        refuse_if_refused(Answer(refusal), "sales", nobody)


def test_a_sender_that_was_removed_is_a_refusal() -> None:
    (refusal,) = check_added({"SENDER_SALES_PASSWORD": "secret-word"}, removed=True)
    assert "The sender sales@example.com was removed" in refusal.what


# -- every way to start ------------------------------------------------------------------------------


@contextmanager
def service(database_url: str, changes: dict[str, Any]) -> Iterator[HttpStage]:
    with FakeSes({**WELL_SES, **changes}) as fake:
        environment = {**WELL, **SES, "AWS_ENDPOINT_URL_SESV2": fake.url}
        with serving(database_url, environment) as stage:
            yield stage


@pytest.mark.parametrize("how", [{}, {"is_test": True}, {"dry_run": True}])
def test_a_start_over_http_is_refused_with_the_reason(sqlite_url: str, how: dict[str, bool]) -> None:
    """409, what is wrong and what to do; the mailout stays ready, and starts once the cause is mended."""
    account: list[Any] = [SANDBOXED]
    with service(sqlite_url, {ACCOUNT: account}) as http:
        mailout_id = http.ready_mailout()
        refused = http.start(mailout_id, **how)
        assert refused.status == 409
        assert "in the SES sandbox" in refused.json["error"]
        assert "Request production access" in refused.json["error"]
        assert [m.status for m in http.store.mailouts.of_all_tenants()] == [MailoutStatus.READY]
        account[0] = HEALTHY_ACCOUNT
        assert http.start(mailout_id, **how).status == 200


class Answer:
    """A provider that would refuse everybody, or nobody."""

    def __init__(self, *found: Check) -> None:
        self.found = found
        self.recipients: list[str] = []

    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:
        self.recipients = list(recipients())
        return self.found


REFUSAL = stop("ses.sending", "Sending is paused.", "Answer Amazon's case.", refuses_all=True)
SETTINGS = MessageSettings(
    from_address="news@example.com",
    from_name=None,
    reply_to=None,
    footer_address="Riga",
    base_url="http://127.0.0.1",
    message_id_domain="example.com",
    unsubscribe_secret=b"secret",
)


class Page:
    """A page of Notion that is ready to be sent."""

    def __init__(self, *, is_test: bool = False) -> None:
        self.is_test = is_test

    def fetch(self, page_id: str) -> FetchedLetter:
        letter = Letter("Hello", "", "<p>Hello</p>", "Hello")
        return FetchedLetter(page_id, letter, (), self.is_test, MailoutStatus.READY, "ready")

    def take_back(self, page_id: str) -> None:
        """It is a draft again."""


def prepared(check: Answer, *, forced: bool = False, is_test: bool = False) -> list[Mailout]:
    """What became of a page that was started, and of its test, if it is marked as one."""
    store = MemoryStore()
    Stage(store).subscribe([1])  # type: ignore[arg-type,unused-ignore]
    mailout = page_mailout(store, DEFAULT_TENANT, "notion", "page")
    start_mailout(store, lambda: SETTINGS, StartOrder(mailout.id, DEFAULT_TENANT, force=forced))
    page = Page(is_test=is_test)
    preparer = Preparer(store, {"notion": page}, lambda: SETTINGS, ["tester@example.org"], check)
    preparer.run()
    preparer.run()
    return sorted(store.mailouts.of_all_tenants(), key=lambda each: each.is_test)


@pytest.mark.parametrize("is_test", [False, True])
def test_a_page_goes_back_to_ready_with_the_reason(is_test: bool) -> None:
    """Its author reads it on the page, of a test too; nothing is planned."""
    check = Answer(REFUSAL)
    mailouts = prepared(check, is_test=is_test)
    assert {(each.status, each.phase) for each in mailouts} == {(MailoutStatus.READY, None)}
    assert mailouts[0].reason is not None
    assert "Sending is paused. Answer Amazon's case." in mailouts[0].reason
    assert check.recipients == (["tester@example.org"] if is_test else ["user0001@example.com"])


@pytest.mark.parametrize("is_test", [False, True])
def test_a_page_is_sent_where_nothing_is_wrong_or_a_person_insists(is_test: bool) -> None:
    """The word of whoever started it is kept with the mailout: a worker heeds it."""
    assert prepared(Answer(), is_test=is_test)[-1].status == MailoutStatus.SENDING
    assert prepared(Answer(REFUSAL), forced=True, is_test=is_test)[-1].status == MailoutStatus.SENDING
