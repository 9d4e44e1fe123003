"""The doctor on what lies outside: SMTP, DNS, the unsubscribe link, and all of it hanging at once."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from sendonce.adapters.doctor.sender_domain import SenderDomainProbe
from sendonce.adapters.doctor.smtp import SmtpProbe
from sendonce.adapters.doctor.web import UnsubscribeProbe
from sendonce.adapters.web.dns_records import Records
from sendonce.domain.engine.checks import Check, Verdict
from tests.adapters.dns_server import DnsServer, Zone
from tests.adapters.doctor_stage import SES, TOPIC, WELL, Findings, adopt, ask, doctor
from tests.adapters.http_server import ScriptedServer, Step, answer
from tests.adapters.http_stage import serving
from tests.adapters.smtp_server import Do, SmtpServer, transport_to
from tests.nursery import run_program


@pytest.fixture
def database(sqlite_url: str) -> str:
    return adopt(sqlite_url)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


# -- SMTP ----------------------------------------------------------------------------------------


def by_smtp(answers: dict[str, Any] | None = None, **options: Any) -> tuple[Findings, SmtpServer]:
    server_options = {name: options.pop(name) for name in ("extensions", "tls") if name in options}

    async def main() -> tuple[list[Check], SmtpServer]:
        async with SmtpServer(answers, **server_options) as server:
            probe = SmtpProbe(transport_to(server, **options), "mail.example.com:587")
            return list(await probe.examine()), server

    checks, server = asyncio.run(main())
    return Findings(checks), server


def test_a_session_is_opened_and_no_letter_is_begun() -> None:
    """EHLO, AUTH and QUIT: no server ever hears MAIL, so nothing can be sent."""
    found, server = by_smtp(username="news", password="secret-word", extensions=("AUTH PLAIN",))
    assert found["smtp"].verdict is Verdict.OK
    assert [command.split()[0] for command in server.commands] == ["EHLO", "AUTH", "QUIT"]
    assert not server.letters


@pytest.mark.parametrize(
    ("answers", "options", "says", "fix"),
    [
        ({"GREETING": [b"554 go away"]}, {}, "554 go away", "Ask your mail provider"),
        ({}, {"security": "starttls"}, "does not offer STARTTLS", "SMTP_SECURITY=tls"),
        (
            {"AUTH": [b"535 5.7.8 wrong"]},
            {"username": "u", "password": "secret-word", "extensions": ("AUTH PLAIN",)},
            "535 5.7.8 wrong",
            "SMTP_PASSWORD",
        ),
        ({}, {"username": "u", "password": "secret-word"}, "no AUTH at all", "SMTP_USERNAME"),
        ({"GREETING": [b"HTTP/1.1 404 Not Found"]}, {}, "does not speak SMTP", "SMTP_PORT=587"),
        ({}, {"security": "tls"}, "does not begin with TLS", "SMTP_SECURITY=starttls"),
        ({"EHLO": [Do.CLOSE]}, {}, "closed", "Ask your mail provider"),
        ({"EHLO": [Do.SILENCE]}, {"command_timeout": 0.2}, "no reply within", "Ask your mail provider"),
    ],
)
def test_an_smtp_server_that_gives_no_session_is_a_stop(
    answers: dict[str, Any], options: dict[str, Any], says: str, fix: str
) -> None:
    """In its own words, with what to do, and without the password."""
    found, _ = by_smtp(answers, **options)
    assert found.stops() == {"smtp"}
    assert says in found.told("smtp")
    assert fix in found["smtp"].fix
    assert "secret-word" not in str(found.all)


# What a start of the command may take on a busy machine.
STARTING = 10
SIGN_IN = {"username": "u", "password": "secret-word", "extensions": ("AUTH PLAIN",)}


@pytest.mark.parametrize(
    ("answers", "options", "certain"),
    [
        ({"AUTH": [b"535 5.7.8 wrong"]}, SIGN_IN, True),
        ({}, {"security": "starttls"}, True),
        ({}, {"security": "tls"}, True),
        ({"EHLO": [Do.CLOSE]}, {}, False),
        ({"EHLO": [Do.SILENCE]}, {"command_timeout": 0.2}, False),
        ({"GREETING": [b"421 busy"]}, {}, False),
    ],
)
def test_only_a_server_that_will_refuse_every_letter_keeps_a_mailout_from_starting(
    answers: dict[str, Any], options: dict[str, Any], certain: bool
) -> None:
    """A wrong password stays wrong; a server that is down or busy may be up in a minute."""
    found, _ = by_smtp(answers, **options)
    assert found["smtp"].refuses_all is certain


def test_an_smtp_server_with_a_strange_certificate_is_a_stop(authority: trustme.CA) -> None:
    """Nobody trusts this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    found, _ = by_smtp(security="starttls", tls=context, extensions=("STARTTLS",))
    assert "no TLS with" in found.told("smtp")
    assert "SMTP_CA_FILE" in found["smtp"].fix


def test_an_smtp_server_that_is_not_there_is_a_stop(database: str, tmp_path: Path) -> None:
    """By the settings of a user, from end to end."""
    smtp = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": "1", "SMTP_FROM_EMAIL": "news@example.com"}
    found = doctor(database, tmp_path, smtp)
    assert found.stops() == {"smtp"}
    assert "cannot reach 127.0.0.1:1" in found.told("smtp")


# -- DNS -----------------------------------------------------------------------------------------

KEY = '"v=DKIM1; k=rsa; p=" "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ"'
GOOD: dict[str, dict[str, list[str]]] = {
    "example.com": {
        "MX": ["10 mx.example.com."],
        "TXT": ['"unrelated"', '"v=spf1 include:amazonses.com " "~all"'],
    },
    "_dmarc.example.com": {"TXT": ['"v=DMARC1; p=quarantine; rua=mailto:d@example.com"']},
    "google._domainkey.example.com": {"TXT": [KEY]},
}


def resolved(zone: Zone, sender: str = "news@example.com", *, by_own_name: bool = True) -> Findings:
    with DnsServer(zone) as server:
        return ask(SenderDomainProbe(Records(server.address), sender, by_own_name=by_own_name))


def test_a_domain_that_is_well_has_spf_dkim_and_dmarc() -> None:
    """Records in several strings are one, and the parent's DMARC counts for a subdomain."""
    found = resolved(GOOD)
    assert {check.name: check.verdict for check in found.all} == dict.fromkeys(
        ("dns.domain", "dns.spf", "dns.dkim", "dns.dmarc"), Verdict.OK
    )
    assert "v=spf1 include:amazonses.com ~all" in found.told("dns.spf")
    assert "p=quarantine" in found.told("dns.dmarc")
    below = {**GOOD, "news.example.com": GOOD["example.com"]}
    assert "DMARC of example.com" in resolved(below, "a@news.example.com").told("dns.dmarc")


@pytest.mark.parametrize(
    ("name", "zone", "verdict", "says"),
    [
        ("dns.domain", {}, "stop", "does not exist"),
        ("dns.domain", {**GOOD, "example.com": {"MX": ["0 ."]}}, "stop", "null MX"),
        ("dns.domain", {**GOOD, "example.com": {"TXT": ['"x"']}}, "stop", "neither MX nor address"),
        ("dns.domain", {**GOOD, "example.com": {"A": ["192.0.2.1"]}}, "warning", "no MX record"),
        (
            "dns.spf",
            {**GOOD, "example.com": {"MX": ["1 mx.example.com."], "TXT": ['"v=spf1 ~all"', '"v=spf1 -all"']}},
            "stop",
            "2 SPF records",
        ),
        (
            "dns.spf",
            {**GOOD, "example.com": {"MX": ["1 mx.example.com."], "TXT": ['"v=spf1 -all"']}},
            "stop",
            "no server may send",
        ),
        (
            "dns.spf",
            {**GOOD, "example.com": {"MX": ["1 mx.example.com."], "TXT": ['"v=spf1 a +all"']}},
            "warning",
            "lets everybody send",
        ),
        ("dns.spf", {**GOOD, "example.com": {"MX": ["1 mx.example.com."]}}, "warning", "no SPF record"),
        ("dns.dkim", {**GOOD, "google._domainkey.example.com": {"TXT": ['"p="']}}, "warning", "No DKIM key"),
        ("dns.dmarc", {**GOOD, "_dmarc.example.com": {}}, "warning", "no DMARC record"),
        (
            "dns.dmarc",
            {**GOOD, "_dmarc.example.com": {"TXT": ['"v=DMARC1; p=none"', '"v=DMARC1; p=reject"']}},
            "warning",
            "none counts",
        ),
        ("dns.dmarc", {**GOOD, "_dmarc.example.com": {"TXT": ['"v=DMARC1;"']}}, "warning", "no policy"),
    ],
)
def test_what_the_domain_lacks_is_told(name: str, zone: Zone, verdict: str, says: str) -> None:
    """What makes receivers refuse is a stop; what makes them wonder is a warning."""
    found = resolved(zone)
    assert found[name].verdict == verdict
    assert says in found.told(name)
    assert found.stops() == ({name} if verdict == "stop" else set())


def test_a_free_mailbox_cannot_send_by_ses() -> None:
    """It is verified in a minute, and DMARC refuses every letter. By its own server it is fine."""
    assert (
        "Send from a domain of your own" in resolved({}, "me@gmail.com", by_own_name=False)["dns.domain"].fix
    )
    with_mail = {"gmail.com": GOOD["example.com"]}
    assert not resolved(with_mail, "me@gmail.com").stops()


def test_ses_sends_by_its_own_name_so_the_domain_may_say_that_nobody_does() -> None:
    """SPF is looked up for the envelope sender, which is Amazon's."""
    zone = {**GOOD, "example.com": {"MX": ["1 mx.example.com."], "TXT": ['"v=spf1 -all"']}}
    assert resolved(zone, by_own_name=False)["dns.spf"].verdict is Verdict.WARNING


@pytest.mark.parametrize("trouble", ["broken", "cut_off"])
def test_dns_that_does_not_answer_is_a_warning(trouble: str) -> None:
    """Nothing is known then, and nothing is claimed: also where every name is said not to exist."""
    with DnsServer(GOOD, **{trouble: True}) as server:
        found = ask(SenderDomainProbe(Records(server.address), "news@example.com", by_own_name=True))
    (check,) = found.all
    assert (check.name, check.verdict) == ("dns", Verdict.WARNING)
    assert check.what.startswith("DNS does not answer here")


# -- the unsubscribe link ------------------------------------------------------------------------


def test_the_real_service_answers_for_its_links(database: str, tmp_path: Path) -> None:
    """On loopback that is a warning: nobody else can open it."""
    with serving(database) as service:
        found = doctor(database, tmp_path, {"APP_BASE_URL": f"http://127.0.0.1:{service.port}"})
    assert found.told("unsubscribe").startswith("warning: ")
    assert "answers, on this machine only" in found.told("unsubscribe")


OURS = answer(200, {"status": "ok"})


def opened(step: Step, authority: trustme.CA, *, trusted: bool = True) -> Check:
    """A service behind https on a name that is not this machine's own, as far as its address tells."""
    server_side, client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server_side)
    if trusted:
        authority.configure_trust(client_side)
    with ScriptedServer([step], tls=server_side) as server:
        probe = UnsubscribeProbe(f"https://127.0.0.1:{server.port}/base", client_side, leaves=True)
        found = ask(probe)["unsubscribe"]
        assert not trusted or [request.path for request in server.requests] == ["/base/healthz"]
    return found


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (answer(302, Location="https://other.example"), "redirects (302)"),
        (answer(200, b"<h1>Welcome to nginx</h1>"), "not as sendonce does"),
        (answer(404), "answers 404"),
        (Step(b"", then="close"), "cannot be opened"),
        (Step(b"SSH-2.0-OpenSSH\r\n", then="close"), "cannot be opened"),
    ],
)
def test_a_link_that_leads_elsewhere_is_a_stop(step: Step, says: str, authority: trustme.CA) -> None:
    """A redirect, another program, nothing."""
    check = opened(step, authority)
    assert check.verdict is Verdict.STOP
    assert says in check.what


def test_a_certificate_that_nobody_trusts_is_a_stop(authority: trustme.CA) -> None:
    """Mail programs would not post to it."""
    assert "certificate verify failed" in opened(OURS, authority, trusted=False).what
    assert opened(OURS, authority).verdict is Verdict.WARNING  # it is this machine, after all


def test_a_link_to_nowhere_is_a_stop_only_where_letters_leave() -> None:
    """In a rehearsal the service may not be up yet."""
    assert ask(UnsubscribeProbe("http://127.0.0.1:1", leaves=True)).stops() == {"unsubscribe"}
    assert ask(UnsubscribeProbe("http://127.0.0.1:1", leaves=False))["unsubscribe"].verdict is Verdict.WARNING


# -- as a user runs it ---------------------------------------------------------------------------


def run_cli(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    given = {**kept, "HOME": str(folder), "STATE_DIR": str(folder / "state"), **environment}
    return run_program(["doctor", *arguments], given, folder)


def test_the_exit_code_tells_whether_there_is_a_stop(database: str, tmp_path: Path) -> None:
    """0 without one, 3 with one; --json prints nothing but JSON."""
    good = run_cli({**WELL, "DATABASE_URL": database}, tmp_path, "--json")
    assert good.returncode == 0, good.stderr
    told = json.loads(good.stdout)
    assert told["may_send"] is True
    assert {"name", "verdict", "what", "fix", "refuses_all"} == set(told["checks"][0])
    bad = run_cli({"DATABASE_URL": database, "UNSUBSCRIBE_SECRET": "short"}, tmp_path)
    assert bad.returncode == 3
    assert "stop     settings.unsubscribe-secret: UNSUBSCRIBE_SECRET has 5 characters" in bad.stdout
    assert "Do not send yet: 1 stop" in bad.stdout


def test_a_setting_that_cannot_be_read_is_a_stop_of_its_own(tmp_path: Path) -> None:
    """All of them, each on its line, in the doctor's own form."""
    done = run_cli({"PORT": "x", "AWS_REGION": "moon"}, tmp_path, "--json")
    assert done.returncode == 3
    checks = json.loads(done.stdout)["checks"]
    assert [(check["name"], check["what"].split()[0]) for check in checks] == [
        ("settings.values", "PORT"),
        ("settings.values", "AWS_REGION"),
    ]


def test_the_doctor_is_done_in_fifteen_seconds_though_everything_hangs(tmp_path: Path) -> None:
    """A database, an SES, a name server and a service that take connections and say nothing."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        database, ses, service = (one.getsockname()[1] for one in silent)
        names = stack.enter_context(DnsServer({}, silent=True))
        environment = {
            **WELL,
            **SES,
            "DATABASE_URL": f"postgresql://nobody@127.0.0.1:{database}/none",
            "AWS_ENDPOINT_URL_SESV2": f"http://127.0.0.1:{ses}",
            "APP_BASE_URL": f"http://127.0.0.1:{service}",
            "SES_EVENTS_QUEUE_URL": f"http://127.0.0.1:{service}/123456789012/events",
            "DNS_SERVER": names.address,
        }
        began = time.monotonic()
        done = run_cli(environment, tmp_path, "--json")
        took = time.monotonic() - began
    assert done.returncode == 3, done.stderr
    assert took < 15 + STARTING
    checks = {check["name"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert {name for name, verdict in checks.items() if verdict == "stop"} == {
        "database",
        "ses.account",
        "events.queue",
    }
    assert (checks["unsubscribe"], checks["dns"]) == ("warning", "warning")
    assert TOPIC in done.stdout
