"""Erasing and showing a person whom prospecting found, a campaign wrote to, or a mailbox heard of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import campaign_leads, companies, letters, serp_results
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.campaigns.leads import NewLead
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor
from sendonce.domain.people.directions import tenant_named
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.flows.mailouts.show_person import show_person
from tests.conformance.campaign_stage import CampaignStage
from tests.conformance.stage import ACCEPTED, Stage
from tests.conformance.test_privacy import JANE, SECRET, everything, letter_to_jane
from tests.conformance.test_written_letters import Desk

ACME = tenant_named("acme")
OTHER_SPELLING = parse_address("jane.doe+work@example.com")
PRIVATE = "jd77@private.example"


@pytest.fixture
def campaigns(shared_store: SqlStore) -> CampaignStage:
    stage = CampaignStage(shared_store)
    stage.client()
    stage.sender("ann@acme.example")
    fields = {"first_name": "Jane-from-Riga"}
    jane = NewLead(JANE, "Jane D.", "Doe & Sons", None, "other", fields)
    colleague = NewLead(parse_address("bob@example.com"), "Bob", "Doe & Sons", None, "other")
    shared_store.leads.put(ACME, "pumps", [jane, colleague], "list.csv")
    return stage


def found_mail(stage: CampaignStage | Stage, job_id: str | None, sender: str) -> None:
    mail = FoundMail("<1@x>", MailKind.REPLY, job_id, sender, sender, reason=f"from {sender}")
    stage.store.mailbox_log.keep("me@acme.example", "INBOX", MailCursor(1, 1), [mail])


def test_a_lead_is_forgotten_and_its_campaign_goes_on(campaigns: CampaignStage) -> None:
    """Jane answered from a private address, which stopped Bob as well; the reason names her."""
    store = campaigns.store
    campaign = campaigns.campaign(timedelta(days=3))
    left = campaigns.run(timedelta(hours=2))
    (job,) = [letter.job for letter in left if letter.job.recipient == JANE.text]
    found_mail(campaigns, job.id, PRIVATE)
    campaigns.round()
    assert SECRET in everything(store)
    record = store.campaigns.record(campaign.id, 100)
    store.people.erase(OTHER_SPELLING, "operator")
    kept = everything(store)
    for name in (SECRET, "jane", PRIVATE):
        assert name not in kept
    assert store.campaigns.record(campaign.id, 100) == record, "its letter is counted as before"
    assert not store.people.erase(JANE, "operator").changed
    store.keys.rotate("operator")
    assert store.campaigns.record(campaign.id, 100) == record
    assert store.suppressions.covers(ACME, JANE) is not None


def test_nobody_writes_to_an_erased_lead(campaigns: CampaignStage) -> None:
    campaigns.campaign()
    campaigns.store.people.erase(JANE, "operator")
    left = campaigns.run(timedelta(days=1))
    assert {letter.job.recipient for letter in left} == {"bob@example.com"}
    with campaigns.store.database.reading() as tx:
        states = tx.execute(sa.select(campaign_leads.c.state, campaign_leads.c.reason)).all()
    assert ("stopped", "erased") in [tuple(row) for row in states]


def test_an_erased_person_who_is_imported_again_gets_no_letter(campaigns: CampaignStage) -> None:
    store = campaigns.store
    store.people.erase(JANE, "operator")
    store.leads.put(ACME, "pumps", [NewLead(JANE, "Jane", None, None, "other")], "again.csv")
    campaigns.campaign()
    left = campaigns.run(timedelta(days=1))
    assert {letter.job.recipient for letter in left} == {"bob@example.com"}


def test_erasing_again_after_another_import(campaigns: CampaignStage) -> None:
    """Whoever imports the address a second time makes a second row, and that can be erased, too."""
    store = campaigns.store
    for _ in range(2):
        store.leads.put(ACME, "pumps", [NewLead(JANE, "Jane", None, None, "other")], "again.csv")
        assert store.people.erase(JANE, "operator").changed
        assert "jane" not in everything(store)


def test_texts_of_others_lose_the_address(shared_store: SqlStore) -> None:
    """A search result, the facts of a company and a letter may quote it."""
    desk = Desk(shared_store)
    desk.company("firma.ru", "jane.doe@example.com")
    desk.write(auto=True)
    desk.plan()
    with shared_store.database.writing() as tx:
        fact = {"fact": "director", "value": f"write to {JANE.text}", "source": "https://firma.ru"}
        tx.execute(companies.update().values(facts=[fact]))
        tx.execute(letters.update().values(text=f"Dear <{JANE.text}>", html=JANE.text))
        assert tx.execute(sa.select(sa.func.count()).select_from(letters)).scalar_one() == 1
        assert tx.execute(sa.select(sa.func.count()).select_from(serp_results)).scalar_one() == 0
    shared_store.people.erase(JANE, "operator")
    assert SECRET not in everything(shared_store)


def test_show_tells_what_every_room_keeps(campaigns: CampaignStage) -> None:
    desk = Desk(campaigns.store)
    desk.company("example.com", JANE.text)
    desk.write()
    found_mail(campaigns, None, "JANE.DOE+home@example.com")
    report = show_person(campaigns.store, OTHER_SPELLING)
    assert report.known
    told = {(trace.kind, trace.tenant_id) for trace in report.file.traces}
    assert told == {
        ("lead", ACME),
        ("contact", DEFAULT_TENANT),
        ("written letter", DEFAULT_TENANT),
        ("mail", None),
    }
    (lead,) = [trace for trace in report.file.traces if trace.kind == "lead"]
    assert (lead.details["name"], lead.details["company"]) == ("Jane D.", "Doe & Sons")
    campaigns.store.people.erase(JANE, "operator")
    assert show_person(campaigns.store, JANE).file.traces == []


def test_mail_that_came_back_to_a_letter(stage: Stage) -> None:
    """Shown with whoever got the letter, and erased with them, from whatever address it came."""
    job = letter_to_jane(stage)
    stage.settle(stage.claim_one(), ACCEPTED)
    found_mail(stage, job.id, PRIVATE)
    (trace,) = stage.store.people.file_of(JANE).traces
    assert (trace.kind, trace.details["sender"]) == ("mail", PRIVATE)
    assert trace.at is not None
    assert trace.at <= datetime.now(UTC)
    stage.store.people.erase(JANE, "operator")
    assert PRIVATE not in everything(stage.store)
    (trace,) = stage.store.people.file_of(JANE).traces
    assert trace.details["kind"] == MailKind.REPLY
    assert not stage.store.people.erase(JANE, "operator").changed
