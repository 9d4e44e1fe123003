"""What changed since a letter was written or planned still keeps it back, on every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sendonce.adapters.stores.schema import company_marks
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor
from sendonce.domain.people.directions import Basis, NewDirection
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.tasks import dedupe_task
from sendonce.domain.prospecting.written_letters import KIND, WrittenLetter
from sendonce.errors import RefusedByRule
from sendonce.flows.prospecting.change_direction import change_direction
from sendonce.flows.prospecting.find_duplicates import find_all_duplicates
from sendonce.flows.prospecting.plan_written_letters import finish_half_planned
from sendonce.flows.prospecting.review_letter import approve_letter
from sendonce.settings import load_settings
from sendonce.wiring.mailbox import read_mailboxes
from tests.adapters.mailbox_stage import running_mailbox
from tests.conformance.prospecting_stage import NOW
from tests.conformance.test_written_letters import BRITISH, EUROPEAN, Desk, Dying, work


@pytest.fixture
def desk(shared_store: SqlStore) -> Desk:
    return Desk(shared_store)


def two_companies(desk: Desk) -> tuple[str, str]:
    """If they are one, the first is the primary: it was found a day before."""
    desk.prospects.find("first.ru", now=NOW - timedelta(days=1))
    return desk.company("first.ru"), desk.company("second.ru")


def merge(desk: Desk, *company_ids: str) -> None:
    """They show one tax number now."""
    mark = {"tenant_id": DEFAULT_TENANT, "kind": "inn", "value": "7707083893", "created_at": NOW}
    with desk.store.database.writing() as tx:
        tx.execute(company_marks.insert(), [{**mark, "company_id": it} for it in company_ids])
    desk.store.tasks.add([dedupe_task(DEFAULT_TENANT, it) for it in company_ids], NOW)
    find_all_duplicates(desk.store, "w", lambda: NOW)


def letter_to(desk: Desk, domain: str) -> WrittenLetter:
    (letter,) = (it for it in desk.all() if it.domain == domain)
    return letter


def kept_back(desk: Desk, domain: str) -> str | None:
    """Why nothing leaves to a company; None if it may."""
    letter = letter_to(desk, domain)
    if letter.status != "skipped":
        return None
    return letter.outcome.reason if letter.outcome else letter.made.note


# -- when it is planned ------------------------------------------------------------------------------------


def test_one_letter_to_companies_that_turned_out_to_be_one(desk: Desk, tmp_path: Path) -> None:
    first, second = two_companies(desk)
    desk.write()
    approve_letter(desk.letters, letter_to(desk, "second.ru"), "ann")
    desk.plan()
    desk.hurry()
    work(desk.store, tmp_path)
    merge(desk, first, second)
    approve_letter(desk.letters, letter_to(desk, "first.ru"), "ann")
    assert desk.plan() == 0
    assert kept_back(desk, "first.ru") == "a duplicate of the company has a letter of this direction"


def test_a_wish_of_a_duplicate_holds_before_it_was_passed_on(desk: Desk) -> None:
    first, second = two_companies(desk)
    merge(desk, first, second)
    desk.write(auto=True)
    desk.store.companies.opt_out(DEFAULT_TENANT, second, "a call", NOW)
    assert desk.plan() == 0
    assert kept_back(desk, "first.ru") == "the address is suppressed: unsubscribed"


def test_whose_mailbox_it_is_is_asked_again(desk: Desk) -> None:
    desk.direct(BRITISH)
    desk.company("firma.ru", "ivan.petrov@firma.ru", role="personal")
    desk.write(auto=True)
    desk.direct(EUROPEAN)
    assert desk.plan() == 0
    assert "needs consent" in (kept_back(desk, "firma.ru") or "")


@pytest.mark.parametrize(
    ("one", "other", "planned"),
    [
        ("firma@gmail.com", "f.irma@googlemail.com", 1),
        ("info@holding.ru", "info+b@holding.ru", 1),
        ("in.fo@holding.ru", "info@holding.ru", 2),
    ],
)
def test_a_mailbox_spelled_in_two_ways_gets_one_letter(
    desk: Desk, one: str, other: str, planned: int
) -> None:
    desk.company("first.ru", one)
    desk.company("second.ru", other)
    desk.write(auto=True)
    assert desk.plan() == planned


@pytest.mark.parametrize("change", ["opted out", "blocked", "erased"])
def test_what_was_left_half_planned_passes_the_gate_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    company_id = desk.company("firma.ru")
    desk.write(auto=True)
    with monkeypatch.context() as patched:
        patched.setattr(desk.store, "dispatches", Dying(desk.store.dispatches))
        with pytest.raises(KeyboardInterrupt):
            desk.plan()
    assert desk.states() == ["planned"]
    if change == "opted out":
        desk.store.companies.opt_out(DEFAULT_TENANT, company_id, "a call", NOW)
    elif change == "blocked":
        desk.direct(replace(BRITISH, jurisdiction="RU"))
    else:
        desk.store.people.erase(parse_address("info@firma.ru"), "ann")
    finish_half_planned(desk.store)
    assert (desk.states(), desk.one().job_id) == (["skipped"], None)


# -- when it is planned already ----------------------------------------------------------------------------


def test_a_company_that_opts_out_gets_no_planned_letter(desk: Desk, tmp_path: Path) -> None:
    company_id = desk.company("firma.ru")
    desk.company("other.ru")
    desk.write(auto=True)
    assert desk.plan() == 2
    desk.store.companies.opt_out(DEFAULT_TENANT, company_id, "a call", NOW)
    assert desk.plan() == 0
    desk.hurry()
    assert [it["To"] for it in work(desk.store, tmp_path)] == ["info@other.ru"]
    assert kept_back(desk, "firma.ru") == "the company does not want letters"


def test_an_opt_out_holds_at_once_without_another_planning(desk: Desk, tmp_path: Path) -> None:
    """The worker's own look at the suppression list is enough, also where a job was claimed and released."""
    first, second = two_companies(desk)
    desk.company("other.ru")
    merge(desk, first, second)
    desk.write(auto=True)
    desk.plan()
    desk.store.companies.opt_out(DEFAULT_TENANT, second, "a call", NOW)
    desk.hurry()
    assert [it["To"] for it in work(desk.store, tmp_path)] == ["info@other.ru"]
    assert "suppressed" in (kept_back(desk, "first.ru") or "")


def test_a_wish_that_came_by_mail_holds_once_the_mailbox_was_read(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru", "info@firma.ru", "sales@firma.ru")
    desk.write(auto=True)
    desk.plan()
    (job,) = desk.store.jobs.list()
    wish = FoundMail("a wish", MailKind.OPT_OUT, job.id)
    desk.store.mailbox_log.keep("news@imap", "INBOX", MailCursor(1, 1), [wish], (KIND,))
    with running_mailbox() as mailbox:
        read_mailboxes(load_settings({**mailbox.environment(), "STATE_DIR": str(tmp_path)}), desk.store)
    assert {it.address for it in desk.store.suppressions.all()} == {"info@firma.ru", "sales@firma.ru"}
    desk.hurry()
    assert work(desk.store, tmp_path) == []


def test_a_duplicate_that_is_found_takes_its_letter_back_at_once(desk: Desk, tmp_path: Path) -> None:
    first, second = two_companies(desk)
    desk.write(auto=True)
    desk.plan()
    merge(desk, first, second)
    desk.hurry()
    assert [it["To"] for it in work(desk.store, tmp_path)] == ["info@first.ru"]
    assert kept_back(desk, "second.ru") == "the company is a duplicate of another"


def test_of_two_planned_letters_to_one_company_one_leaves(desk: Desk, tmp_path: Path) -> None:
    first, second = two_companies(desk)
    desk.write(auto=True)
    assert desk.plan() == 2
    merge(desk, first, second)
    desk.plan()
    desk.hurry()
    assert [it["To"] for it in work(desk.store, tmp_path)] == ["info@first.ru"]


def test_a_planned_letter_stays_when_a_duplicate_has_got_one(desk: Desk, tmp_path: Path) -> None:
    first, second = two_companies(desk)
    desk.write()
    for domain in ("second.ru", "first.ru"):
        approve_letter(desk.letters, letter_to(desk, domain), "ann")
        assert desk.plan() == 1
        if domain == "second.ru":
            desk.hurry()
            work(desk.store, tmp_path)
    merge(desk, first, second)
    desk.plan()
    assert kept_back(desk, "first.ru") == "a duplicate of the company has a letter of this direction"


def test_a_letter_taken_back_from_a_duplicate_makes_room_for_the_primary(desk: Desk) -> None:
    first, second = two_companies(desk)
    desk.write()
    approve_letter(desk.letters, letter_to(desk, "second.ru"), "ann")
    desk.plan()
    merge(desk, first, second)
    approve_letter(desk.letters, letter_to(desk, "first.ru"), "ann")
    assert desk.plan() == 1
    assert (letter_to(desk, "first.ru").status, letter_to(desk, "second.ru").status) == (
        "scheduled",
        "skipped",
    )


def test_a_direction_that_the_law_blocks_takes_its_letters_back(desk: Desk) -> None:
    desk.company("firma.ru")
    desk.write(auto=True)
    desk.plan()
    desk.direct(replace(BRITISH, jurisdiction="RU"))
    with pytest.raises(RefusedByRule):
        desk.plan()
    assert "38-FZ" in (kept_back(desk, "firma.ru") or "")


def test_a_direction_that_is_changed_takes_its_letters_back_at_once(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru")
    desk.write(auto=True)
    desk.plan()
    by_interest = NewDirection("default", "RU", Basis.LEGITIMATE_INTEREST)
    _, taken_back = change_direction(desk.store, DEFAULT_TENANT, by_interest, "ann")
    assert taken_back == 1
    desk.hurry()
    assert work(desk.store, tmp_path) == []
    assert "38-FZ" in (kept_back(desk, "firma.ru") or "")
