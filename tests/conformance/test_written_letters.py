"""Letters to companies: written once, reviewed, given a slot, and sent once, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.metrics import Metrics
from sendonce.adapters.stores.schema import dispatches, job_states
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import FoundMail, MailCursor, answered_topic
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import Basis, Direction, NewDirection
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.domain.prospecting.companies import Findings
from sendonce.domain.prospecting.kept_contacts import ContactKind, SeenContact, Trouble
from sendonce.domain.prospecting.send_slots import WorkingHours
from sendonce.domain.prospecting.tasks import dedupe_task
from sendonce.domain.prospecting.written_letters import AUTOMATIC, KIND, LetterStatus, WrittenLetter
from sendonce.errors import BadInput, NotFound, RefusedByRule
from sendonce.flows.engine.tick import tick
from sendonce.flows.prospecting.find_duplicates import find_all_duplicates
from sendonce.flows.prospecting.plan_written_letters import SendingRules, plan_written_letters
from sendonce.flows.prospecting.review_letter import approve_letter, edit_letter, find_letter, reject_letter
from sendonce.flows.prospecting.write_letters import WritingRules, write_letters
from sendonce.settings import load_settings
from sendonce.wiring.worker import make_worker
from tests.conformance.backdoor import make_tenant
from tests.conformance.prospecting_stage import NOW, Prospects
from tests.conformance.test_privacy import everything

OFFER = {"name": "Торцевые уплотнения", "text": "Поставляем торцевые уплотнения со склада.", "sender": "Анна"}
CONSENT = NewDirection("default", "RU", Basis.CONSENT, "a form", "ru", offer=OFFER)
SEALS = {"name": "Mechanical seals", "text": "We deliver mechanical seals from stock.", "sender": "Ann"}
BRITISH = NewDirection("default", "GB", Basis.LEGITIMATE_INTEREST, "weighed on 1 March", "en", offer=SEALS)
EUROPEAN = replace(BRITISH, jurisdiction="NL")
# So that no test depends on the time of day.
ALWAYS = WorkingHours(time(0), time(23, 59, 59), UTC, frozenset(range(7)))


class Desk:
    """A direction with companies that were found and visited."""

    def __init__(self, store: SqlStore, direction: NewDirection = CONSENT) -> None:
        self.store = store
        self.prospects = Prospects(store)
        self.letters = store.written_letters
        self.direct(direction)

    def direct(self, direction: NewDirection) -> None:
        self.direction: Direction = self.store.directions.put(DEFAULT_TENANT, direction, "ann")

    def company(self, domain: str, *emails: str, role: str = "role", freemail: bool = False) -> str:
        company_id = self.prospects.find(domain).companies[domain]
        seen = [
            SeenContact(ContactKind.EMAIL, it, 1.0, "mailto", f"https://{domain}/contacts", role, freemail)
            for it in emails or (f"info@{domain}",)
        ]
        self.store.contacts.keep(DEFAULT_TENANT, company_id, seen, NOW)
        name = {domain.partition(".")[0]: Findings(has_contacts=True, name=f"ООО «{domain}»", city="Казань")}
        self.prospects.visit(**name)
        find_all_duplicates(self.store, "w", lambda: NOW)
        return company_id

    def write(self, *, auto: bool = False, **rules: Any) -> int:
        given = {"auto_approve": auto, "budget": 1.0, "model": None, **rules}
        return write_letters(self.store, DEFAULT_TENANT, self.direction, WritingRules(**given), 100).done

    def plan(self, limit: int = 100, hours: WorkingHours = ALWAYS) -> int:
        rules = SendingRules(limit, hours)
        return plan_written_letters(self.store, DEFAULT_TENANT, self.direction, rules).done

    def all(self) -> Sequence[WrittenLetter]:
        return self.letters.all(DEFAULT_TENANT)

    def one(self) -> WrittenLetter:
        (letter,) = self.all()
        return letter

    def states(self) -> list[str]:
        return [letter.status for letter in self.all()]

    def hurry(self) -> None:
        """The slots of all that is planned have come."""
        past = datetime.now(UTC) - timedelta(minutes=1)
        with self.store.database.writing() as tx:
            tx.execute(job_states.update().values(due_at=past))
            tx.execute(dispatches.update().values(due_from=past))


@pytest.fixture
def desk(shared_store: SqlStore) -> Desk:
    return Desk(shared_store)


def work(store: SqlStore, folder: Path) -> list[Any]:
    """A worker as it is wired for everybody, until nothing is due; the letters that left."""
    folders = {"TRANSPORT": "maildir", "MAILDIR_PATH": f"{folder}/mail", "STATE_DIR": f"{folder}/state"}
    message = {"MAIL_FOOTER_ADDRESS": "1 Example Street", "APP_BASE_URL": "http://127.0.0.1:1"}
    settings = load_settings({**folders, **message}, dotenv=None)
    asyncio.run(tick(make_worker(settings, store, Metrics()), 30))
    new = folder / "mail" / "new"
    files = sorted(new.iterdir()) if new.exists() else []
    return [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]


def test_from_a_company_to_its_inbox(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru")
    assert desk.write() == 1
    letter = desk.one()
    assert (letter.status, letter.made.written_by) == ("waiting", "template")
    assert "Нашли вас по запросу «производители насосов»." in letter.made.text
    assert desk.plan() == 0  # nobody has read it
    approve_letter(desk.letters, letter, "ann")
    assert desk.plan() == 1
    desk.hurry()
    (sent,) = work(desk.store, tmp_path)
    assert (sent["To"], sent["Subject"]) == ("info@firma.ru", letter.made.subject)
    assert sent["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = sent.get_content()
    assert sent.get_content_type() == "text/plain"
    assert "Если такие письма вам не нужны" in text
    assert "Отписаться: http://127.0.0.1:1/unsubscribe?token=" in text
    assert "1 Example Street" in text
    assert desk.states() == ["sent"]
    assert desk.letters.count(DEFAULT_TENANT) == {"sent": 1}


def test_a_company_gets_one_letter_in_a_direction_ever(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru")
    assert (desk.write(auto=True), desk.write(auto=True)) == (1, 0)
    assert (desk.plan(), desk.plan()) == (1, 0)
    desk.hurry()
    assert len(work(desk.store, tmp_path)) == 1
    assert (desk.write(auto=True), desk.plan()) == (0, 0)
    desk.company("second.ru")
    assert (desk.write(auto=True), desk.plan()) == (1, 1)  # the same dispatch, opened again
    desk.hurry()
    assert len(work(desk.store, tmp_path)) == 2
    assert len({letter.dispatch_id for letter in desk.all()}) == 1


def test_two_companies_with_one_mailbox_get_one_letter(desk: Desk) -> None:
    desk.company("firma.ru", "info@holding.ru")
    desk.company("other.ru", "Info@holding.ru")
    assert desk.write(auto=True) == 2
    assert desk.plan() == 1
    assert sorted(desk.states()) == ["scheduled", "skipped"]


def test_killed_between_noting_and_planning_it_is_planned_once(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru")
    desk.write(auto=True)
    real, desk.store.dispatches = desk.store.dispatches, Dying(desk.store.dispatches)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        desk.plan()
    desk.store.dispatches = real
    letter = desk.one()
    assert (letter.status, letter.job_id) == ("planned", None)
    assert desk.plan() == 0
    assert desk.states() == ["scheduled"]
    desk.plan()
    desk.hurry()
    assert len(work(desk.store, tmp_path)) == 1


class Dying:
    """Dispatches of a process that is killed before it plans its jobs."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def open(self, *given: Any) -> Any:
        return self._real.open(*given)

    def plan(self, *_: Any) -> Any:
        raise KeyboardInterrupt


def test_opted_out_duplicate_and_suppressed_companies_get_none(desk: Desk, tmp_path: Path) -> None:
    out, double = desk.company("out.ru"), desk.company("double.ru")
    desk.company("late.ru")
    desk.store.suppressions.add(DEFAULT_TENANT, parse_address("info@known.ru"), SuppressionReason.MANUAL)
    desk.company("known.ru")
    desk.write(auto=True)
    desk.store.companies.opt_out(DEFAULT_TENANT, out, "a reply", NOW)
    desk.store.contacts.give_up(DEFAULT_TENANT, "info@double.ru", _bounced())
    assert desk.plan() == 1
    desk.store.suppressions.add(DEFAULT_TENANT, parse_address("info@late.ru"), SuppressionReason.UNSUBSCRIBED)
    desk.hurry()
    assert work(desk.store, tmp_path) == []
    assert desk.states() == ["skipped"] * 4
    assert {it.made.company_id for it in desk.all() if it.made.note and "bounced" in it.made.note} == {double}


def _bounced() -> Any:
    from sendonce.domain.prospecting.kept_contacts import Trouble

    return Trouble.BOUNCED


# -- the law -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("direction", "reason"),
    [
        (replace(BRITISH, jurisdiction="RU"), "38-FZ"),
        (replace(BRITISH, jurisdiction="DE"), "UWG"),
        (replace(BRITISH, note=None), "article 6"),
        (replace(BRITISH, jurisdiction="BR"), "not known here"),
    ],
)
def test_the_gate_blocks_by_default(desk: Desk, direction: NewDirection, reason: str) -> None:
    desk.company("firma.ru")
    desk.write(auto=True)
    desk.direct(direction)
    with pytest.raises(RefusedByRule, match=reason):
        desk.plan()
    with pytest.raises(RefusedByRule, match=reason):
        desk.write()
    assert desk.states() == ["approved"]


def test_the_source_and_the_right_to_object_are_told_where_needed(desk: Desk, tmp_path: Path) -> None:
    desk.direct(BRITISH)
    desk.company("firma.ru")
    desk.write(auto=True)
    desk.plan()
    desk.hurry()
    (sent,) = work(desk.store, tmp_path)
    text = sent.get_content().replace("\r\n", "\n")
    assert "published at https://firma.ru/contacts" in text
    assert "\n\nRIGHT TO OBJECT: " in text


@pytest.mark.parametrize(
    ("direction", "role", "freemail", "status"),
    [
        (CONSENT, "personal", True, "waiting"),
        (EUROPEAN, "role", False, "waiting"),
        (EUROPEAN, "personal", False, "skipped"),
        (BRITISH, "personal", False, "waiting"),
        (BRITISH, "role", True, "skipped"),
    ],
)
def test_whose_mailbox_it_is_matters(
    desk: Desk, direction: NewDirection, role: str, freemail: bool, status: str
) -> None:
    desk.direct(direction)
    desk.company("firma.ru", role=role, freemail=freemail)
    desk.write()
    assert desk.states() == [status]


def test_a_direction_without_an_offer_writes_nothing(desk: Desk) -> None:
    desk.company("firma.ru")
    desk.direct(replace(CONSENT, offer=None))
    with pytest.raises(RefusedByRule, match="has no offer"):
        desk.write()


# -- review ----------------------------------------------------------------------------------------------


def test_a_person_decides_until_it_is_planned(desk: Desk) -> None:
    desk.company("firma.ru")
    desk.write()
    letters = desk.letters
    reject_letter(desk.store, desk.one(), "ann", "too early")
    assert (desk.one().status, desk.one().made.note) == ("rejected", "too early")
    approve_letter(letters, desk.one(), "ann")
    checks = edit_letter(letters, desk.one(), "Другая тема", "Другие слова, очень простые.", "ann")
    assert not all(check.ok for check in checks)
    edited = desk.one()
    assert (edited.status, edited.made.written_by, edited.made.subject) == (
        "waiting",
        "person",
        "Другая тема",
    )
    approve_letter(letters, edited, "ann")
    desk.plan()
    with pytest.raises(RefusedByRule, match="is scheduled"):
        approve_letter(letters, desk.one(), "ann")
    with pytest.raises(RefusedByRule):
        edit_letter(letters, desk.one(), "x", "y", "ann")


def test_a_planned_letter_is_rejected_until_it_leaves(desk: Desk, tmp_path: Path) -> None:
    desk.company("firma.ru")
    desk.company("other.ru")
    desk.write(auto=True)
    desk.plan()
    first, second = desk.all()
    reject_letter(desk.store, first, "ann", "a bad moment")
    desk.hurry()
    assert [it["To"] for it in work(desk.store, tmp_path)] == [second.made.recipient]
    taken_back = desk.all()[0]
    assert taken_back.outcome is not None
    assert (taken_back.status, taken_back.outcome.reason) == ("skipped", "rejected by ann: a bad moment")
    for letter, state in ((first, "skipped"), (second, "sent")):
        with pytest.raises(RefusedByRule, match=f"is {state}. It cannot be taken back"):
            reject_letter(desk.store, letter, "ann")
    assert desk.plan() == 0, "a company gets one letter in a direction, and this one was rejected"


@pytest.mark.parametrize(("subject", "text"), [("", "x"), ("x", " "), ("x" * 101, "x"), ("x", "{{ name }}")])
def test_what_cannot_be_a_letter_is_refused(desk: Desk, subject: str, text: str) -> None:
    desk.company("firma.ru")
    desk.write()
    with pytest.raises(BadInput):
        edit_letter(desk.letters, desk.one(), subject, text, "ann")


def test_letters_are_approved_by_themselves_only_if_all_checks_pass(desk: Desk) -> None:
    desk.direct(replace(CONSENT, offer={"name": "Уплотнения", "text": "Слово. " * 300}))
    desk.company("firma.ru")
    desk.write(auto=True)
    assert desk.states() == ["waiting"]  # far too long
    desk.direct(CONSENT)
    desk.company("other.ru")
    desk.write(auto=True)
    assert [(it.status, it.made.reviewer) for it in desk.all()][1] == ("approved", AUTOMATIC)


def test_another_tenant_sees_nothing(desk: Desk) -> None:
    desk.company("firma.ru")
    desk.write()
    make_tenant(desk.store, "other")
    other = TenantId("other")
    letter = desk.one()
    assert desk.letters.all(other) == []
    assert desk.letters.get(other, letter.id) is None
    assert desk.letters.unwritten(other, "default", of_any_search=True, limit=9) == []
    assert not desk.letters.review(other, letter.id, LetterStatus.APPROVED, "eve")
    with pytest.raises(NotFound):
        find_letter(desk.letters, other, letter.id)
    assert find_letter(desk.letters, DEFAULT_TENANT, letter.id[:20]).id == letter.id


@pytest.mark.parametrize("when", ["written", "planned", "sent"])
def test_an_erased_person_leaves_no_trace_in_letters_and_contacts(
    desk: Desk, tmp_path: Path, when: str
) -> None:
    desk.company("firma.ru", "Jane.Doe@firma.ru")
    desk.company("other.ru")
    desk.write(auto=True)
    if when != "written":
        desk.plan()
    if when == "sent":
        desk.hurry()
        work(desk.store, tmp_path)
    erasure = desk.store.people.erase(parse_address("jane.doe+tag@firma.ru"), "ann")
    assert erasure.changed
    assert "jane.doe" not in everything(desk.store)
    assert desk.store.people.erase(parse_address("jane.doe@firma.ru"), "ann").notes == 0
    desk.plan()
    desk.hurry()
    sent = work(desk.store, tmp_path)
    assert [it["To"] for it in sent].count("info@other.ru") == 1
    assert len(sent) == (2 if when == "sent" else 1)


# -- limits ------------------------------------------------------------------------------------------------


def test_no_more_than_the_limit_in_any_24_hours(desk: Desk, tmp_path: Path) -> None:
    for number in range(5):
        desk.company(f"firma{number}.ru")
    desk.write(auto=True)
    assert desk.plan(limit=2) == 2
    assert desk.plan(limit=2) == 0
    desk.hurry()
    assert len(work(desk.store, tmp_path)) == 2
    assert desk.plan(limit=2) == 0  # what left today counts, too
    assert desk.plan(limit=0) == 0
    assert desk.plan(limit=3) <= 1
    assert desk.letters.spent_since(datetime(2020, 1, 1, tzinfo=UTC)) == 0.0


def test_nobody_is_written_to_who_may_turn_out_to_be_a_duplicate(desk: Desk) -> None:
    """A company that was visited and not compared with the others yet waits for that."""
    company_id = desk.company("a.ru")
    desk.store.tasks.add([dedupe_task(DEFAULT_TENANT, company_id)], NOW)
    assert desk.write() == 0
    find_all_duplicates(desk.store, "w", lambda: NOW)
    assert desk.write() == 1


def answered(desk: Desk, kind: MailKind, bounce: str | None = None) -> None:
    """As the mailbox's reader notes what came back to the one letter."""
    (job,) = desk.store.jobs.list()
    mail = FoundMail(f"{kind} {bounce}", kind, job.id, bounce=bounce)
    desk.store.mailbox_log.keep("news@imap", "INBOX", MailCursor(1, 1), [mail], (KIND,))
    desk.plan()


def test_a_contact_that_bounces_gives_way_to_the_next(desk: Desk) -> None:
    company_id = desk.company("firma.ru", "info@firma.ru", "sales@firma.ru")
    desk.write(auto=True)
    assert desk.plan() == 1
    written_to = desk.one().made.recipient
    answered(desk, MailKind.BOUNCE, "soft")
    contacts = desk.store.contacts.of(DEFAULT_TENANT, [company_id])[company_id]
    assert [contact.trouble for contact in contacts] == [None, None]
    answered(desk, MailKind.BOUNCE, "hard")
    contacts = desk.store.contacts.of(DEFAULT_TENANT, [company_id])[company_id]
    troubles = {contact.seen.value: contact.trouble for contact in contacts}
    assert troubles.pop(written_to) == Trouble.BOUNCED
    assert set(troubles.values()) == {None}


def test_a_company_that_asks_to_be_left_alone_is(desk: Desk) -> None:
    company_id = desk.company("firma.ru")
    desk.write(auto=True)
    desk.plan()
    answered(desk, MailKind.REPLY)
    company = desk.store.companies.get(DEFAULT_TENANT, company_id)
    assert company is not None
    assert not company.opt_out
    answered(desk, MailKind.OPT_OUT)
    company = desk.store.companies.get(DEFAULT_TENANT, company_id)
    assert company is not None
    assert (company.opt_out, company.opt_out_reason) == (True, "asked to be left alone")
    assert desk.store.outbox.due(answered_topic(KIND), 10) == []


def test_planners_that_meet_keep_the_limit_together(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has looked before the other one planned."""
    for number in range(6):
        desk.company(f"firma{number}.ru")
    desk.write(auto=True)
    monkeypatch.setattr(desk.store.written_letters, "slots_taken", lambda *_: [])
    assert desk.plan(limit=3) > 0
    assert desk.plan(limit=3) >= 0
    assert desk.states().count("scheduled") <= 3
