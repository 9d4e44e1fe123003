"""The domains of senders, as a person at the command line and a worker meet them; DNS is on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.checks import Check, ok, stop
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.senders import BAD_DOMAIN, HoldOrder, SenderKeys
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import Unavailable
from sendonce.flows.engine.check_domains import check_domains
from sendonce.settings import load_settings
from sendonce.wiring.sender_domains import domain_chores
from tests.acceptance.test_held_sender import Desk
from tests.adapters.dns_server import DnsServer, Zone
from tests.nursery import run_program

KEY = '"v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ"'
WELL: dict[str, dict[str, list[str]]] = {
    "acme.example": {"MX": ["10 mx.acme.example."], "TXT": ['"v=spf1 mx ~all"']},
    "_dmarc.acme.example": {"TXT": ['"v=DMARC1; p=none"']},
    "google._domainkey.acme.example": {"TXT": [KEY]},
}
WITHOUT_SPF = {**WELL, "acme.example": {"MX": ["10 mx.acme.example."]}}
WITHOUT_DMARC = {name: records for name, records in WELL.items() if name != "_dmarc.acme.example"}
NULL_MX = {**WELL, "acme.example": {"MX": ["0 ."], "TXT": ['"v=spf1 mx ~all"']}}
WITHOUT_DKIM = {name: records for name, records in WELL.items() if "_domainkey" not in name}
POOL = ("--tenant=acme", "--direction=pumps", "--daily=50")
SMTP = ("jane@acme.example", "--host=smtp.acme.example")


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str) -> Desk:
    desk = Desk(tmp_path, sqlite_url)
    desk.environment["TRANSPORT"] = "maildir"
    desk.run("tenant", "add", "acme")
    desk.run("direction", "add", "--tenant=acme", "pumps", "--jurisdiction=DE", "--basis=consent")
    return desk


def added(desk: Desk, zone: Zone, *options: str, **trouble: bool) -> tuple[dict[str, Any], str]:
    """The sender as it was added, and what was said of it."""
    with DnsServer(zone, **trouble) as dns:
        desk.environment["DNS_SERVER"] = dns.address
        done = desk.run("sender", "add", *SMTP, *options, "--json")
        assert not dns.questions or "--no-dns" not in options
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        (WITHOUT_SPF, "acme.example has no SPF record. Publish one TXT record"),
        (WITHOUT_DMARC, "acme.example has no DMARC record"),
        (NULL_MX, "acme.example has a null MX"),
        ({}, "The domain acme.example does not exist"),
    ],
)
def test_a_sender_of_a_pool_whose_domain_fails_is_held(desk: Desk, zone: Zone, says: str) -> None:
    sender, said = added(desk, zone, *POOL)
    assert (sender["state"], sender["code"]) == ("held", "dns")
    assert says in sender["reason"]
    assert "jane@acme.example is held until its domain is in order." in said
    assert says in said


@pytest.mark.parametrize("zone", [WELL, WITHOUT_DKIM])
def test_a_domain_that_is_in_order_is_not_held(desk: Desk, zone: Zone) -> None:
    """A key under a name that nobody can guess may be there all the same."""
    sender, said = added(desk, zone, *POOL)
    assert (sender["state"], said) == ("ok", "")


def test_a_sender_of_mailouts_needs_no_more_than_the_environments_own(desk: Desk) -> None:
    """Its readers asked for its letters. What makes receivers refuse all of them holds it, too."""
    sender, _ = added(desk, WITHOUT_DMARC)
    assert sender["state"] == "ok"
    desk.run("sender", "remove", "jane@acme.example")
    sender, _ = added(desk, NULL_MX)
    assert sender["state"] == "held"


def test_dns_that_does_not_answer_holds_nobody(desk: Desk) -> None:
    sender, said = added(desk, WELL, *POOL, broken=True)
    assert sender["state"] == "ok"
    assert "could not be looked at; a worker tries again" in said


@pytest.mark.parametrize("way", ["option", "setting"])
def test_a_closed_network_can_do_without(desk: Desk, way: str) -> None:
    if way == "setting":
        desk.environment["SENDER_DNS_CHECKS"] = "false"
    sender, said = added(desk, {}, *POOL, *(["--no-dns"] if way == "option" else []))
    assert (sender["state"], said) == ("ok", "")


def said_by_doctor(desk: Desk, zone: Zone) -> list[str]:
    """Of added senders. What else stops this machine from sending is another matter."""
    with DnsServer(zone) as dns:
        environment = {**desk.environment, "DNS_SERVER": dns.address}
        checks = json.loads(run_program(["doctor", "--json"], environment, desk.folder).stdout)["checks"]
    return [check["what"] for check in checks if check["name"] == "senders"]


def test_doctor_names_the_domains_of_added_senders(desk: Desk) -> None:
    added(desk, WITHOUT_SPF, *POOL)
    assert "jane@acme.example: acme.example has no SPF record." in said_by_doctor(desk, WITHOUT_SPF)
    assert "1 domain of added senders: MX, SPF, DKIM and DMARC are there." in said_by_doctor(desk, WELL)


def test_a_worker_lets_a_sender_go_whose_domain_is_mended(desk: Desk) -> None:
    added(desk, WITHOUT_SPF, *POOL)
    with DnsServer(WELL) as dns, closing(open_store(desk.environment["DATABASE_URL"])) as store:
        settings = load_settings({**desk.environment, "DNS_SERVER": dns.address}, None)
        ((_, check),) = domain_chores(settings, store)
        assert len(store.sender_holds.all()) == 1
        check()
        assert store.sender_holds.all() == []


# -- every day -----------------------------------------------------------------------------------


class Everyday:
    """A sender, and what the DNS says when it is asked."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.asked = 0
        self.says: Check | None = ok("dns.domain", "It is well.")
        new = NewSender("jane@acme.example", "smtp", "smtp.acme.example")
        store.senders.add(DEFAULT_TENANT, new, "tests")

    def look(self, identity: SenderIdentity) -> list[Check]:
        self.asked += 1
        if self.says is None:
            raise Unavailable("DNS does not answer.")
        return [self.says]

    def round(self) -> str | None:
        """The code of the hold after it."""
        check_domains(self.store, self.look, lambda _: SenderKeys("key"))
        hold = self.store.sender_holds.get("key")
        return hold.code if hold else None

    def tomorrow(self) -> None:
        """No lease lasts until then."""
        with self.store.database.writing() as tx:
            rows = tx.exec_driver_sql("SELECT name, holder FROM leases").all()
        for name, holder in rows:
            self.store.leases.leave(name, holder)


BAD = stop("dns.domain", "It has a null MX.", "Publish one.")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def everyday(request: pytest.FixtureRequest) -> Iterator[Everyday]:
    store = open_store(request.getfixturevalue(request.param))
    yield Everyday(store)
    store.close()


def test_a_sender_is_looked_at_once_a_day(everyday: Everyday) -> None:
    """Whoever asks: the lease is the database's."""
    everyday.round()
    everyday.round()
    assert everyday.asked == 1
    everyday.tomorrow()
    everyday.round()
    assert everyday.asked == 2


def test_a_hold_comes_and_goes_with_the_checks(everyday: Everyday) -> None:
    everyday.says = BAD
    assert everyday.round() == BAD_DOMAIN
    hold = everyday.store.sender_holds.get("key")
    assert hold is not None
    assert hold.reason == "It has a null MX. Publish one."
    everyday.tomorrow()
    everyday.says = None
    assert everyday.round() == BAD_DOMAIN, "silence ends no hold"
    everyday.tomorrow()
    everyday.says = ok("dns.domain", "It is well again.")
    assert everyday.round() is None


def test_silence_holds_nobody(everyday: Everyday) -> None:
    everyday.says = None
    assert everyday.round() is None


def test_the_hold_of_a_provider_stays(everyday: Everyday) -> None:
    """A domain that is in order says nothing of the account."""
    everyday.store.sender_holds.hold("key", HoldOrder("535", "wrong password", 60.0))
    assert everyday.round() == "535"
    everyday.tomorrow()
    everyday.says = BAD
    assert everyday.round() == "535"
