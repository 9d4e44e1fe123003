"""Signing up and confirming, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.letters import Letter
from sendonce.domain.people.sign_ups import KIND, Confirmation, SignUp, SignUpWish
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.flows.mailouts.show_person import show_person
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import Stage

ANNA = parse_address("anna@example.com")
WISH = SignUpWish(ANNA, "Anna", "https://bakery.example/news", "Send me the letter of the week.")


def asked(stage: Stage, wish: SignUpWish = WISH) -> SignUp:
    sign_up = stage.store.sign_ups.ask(DEFAULT_TENANT, wish)
    assert sign_up is not None
    return sign_up


def status(stage: Stage) -> SubscriberStatus | None:
    found = stage.store.subscribers.find(DEFAULT_TENANT, ANNA)
    return found.status if found else None


def test_who_signs_up_is_pending_until_they_confirm(stage: Stage) -> None:
    """Nothing is sent to a pending person by any mailout; the consent has time, source and wording."""
    sign_up = asked(stage)
    assert status(stage) == SubscriberStatus.PENDING
    mailout = stage.mailout()
    stage.store.mailouts.start(mailout)
    stage.plan(mailout)
    assert stage.store.jobs.books(mailout).planned == 0
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.CONFIRMED
    person = stage.store.subscribers.find(DEFAULT_TENANT, ANNA)
    assert person is not None
    assert (person.status, person.name) == (SubscriberStatus.ACTIVE, "Anna")
    assert person.consent is not None
    assert "https://bakery.example/news" in person.consent
    assert "Send me the letter of the week." in person.consent
    assert f"{sign_up.requested_at:%Y-%m-%d}" in person.consent


def test_confirming_again_changes_nothing_and_an_unknown_link_nobody(stage: Stage) -> None:
    sign_up = asked(stage)
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.CONFIRMED
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.CONFIRMED
    assert stage.store.sign_ups.confirm("00000000-0000-7000-8000-000000000001") is None


def test_an_active_subscriber_is_not_written_to_again(stage: Stage) -> None:
    assert stage.store.sign_ups.confirm(asked(stage).id) == Confirmation.CONFIRMED
    assert stage.store.sign_ups.ask(DEFAULT_TENANT, WISH) is None


def test_confirming_lifts_an_unsubscription(stage: Stage) -> None:
    stage.store.suppressions.add(DEFAULT_TENANT, ANNA, SuppressionReason.UNSUBSCRIBED)
    sign_up = asked(stage)
    assert stage.store.suppressions.covers(DEFAULT_TENANT, ANNA) is not None
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.CONFIRMED
    assert stage.store.suppressions.covers(DEFAULT_TENANT, ANNA) is None
    assert status(stage) == SubscriberStatus.ACTIVE


def test_an_old_link_does_not_bring_back_who_left_later(stage: Stage) -> None:
    sign_up = asked(stage)
    stage.store.sign_ups.confirm(sign_up.id)
    stage.store.suppressions.add(DEFAULT_TENANT, ANNA, SuppressionReason.UNSUBSCRIBED)
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.LATE
    assert stage.store.suppressions.covers(DEFAULT_TENANT, ANNA) is not None


def test_nor_does_the_link_of_an_older_letter(stage: Stage) -> None:
    """Two letters came, the second was confirmed; the first is still unused when the person leaves."""
    first = asked(stage)
    pass_time(stage.store, 11 * 60)
    stage.store.sign_ups.confirm(asked(stage).id)
    stage.store.suppressions.add(DEFAULT_TENANT, ANNA, SuppressionReason.UNSUBSCRIBED)
    assert stage.store.sign_ups.confirm(first.id) == Confirmation.LATE
    assert stage.store.suppressions.covers(DEFAULT_TENANT, ANNA) is not None


def test_a_bounce_a_complaint_and_a_persons_word_stay(stage: Stage) -> None:
    """No letter goes out, and a link that is out already lifts none of them."""
    for number, reason in enumerate(set(SuppressionReason) - {SuppressionReason.UNSUBSCRIBED}):
        address = parse_address(f"who{number}@example.com")
        wish = SignUpWish(address, None, "form", "yes")
        sign_up = asked(stage, wish)
        stage.store.suppressions.add(DEFAULT_TENANT, address, reason)
        assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.HELD
        assert stage.store.suppressions.covers(DEFAULT_TENANT, address) is not None
        assert stage.store.sign_ups.ask(DEFAULT_TENANT, wish) is None


def test_what_holds_for_every_tenant_is_not_lifted(stage: Stage) -> None:
    sign_up = asked(stage)
    stage.store.suppressions.add(EVERYBODY, ANNA, SuppressionReason.UNSUBSCRIBED)
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.HELD
    assert status(stage) != SubscriberStatus.ACTIVE


def test_one_address_gets_few_letters(stage: Stage) -> None:
    """One in ten minutes, three a day, whoever asks."""
    for _ in range(3):
        asked(stage)
        assert stage.store.sign_ups.ask(DEFAULT_TENANT, WISH) is None
        pass_time(stage.store, 11 * 60)
    assert stage.store.sign_ups.ask(DEFAULT_TENANT, WISH) is None
    pass_time(stage.store, 24 * 3600)
    asked(stage)


def test_spellings_of_one_mailbox_share_its_letters(stage: Stage) -> None:
    """Or else tags and dots would let anybody fill a mailbox."""
    asked(stage, replace(WISH, address=parse_address("anna.b@gmail.com")))
    for spelling in ("Anna.B@gmail.com", "annab@gmail.com", "a.nnab+1@googlemail.com", "annab+2@gmail.com"):
        wish = replace(WISH, address=parse_address(spelling))
        assert stage.store.sign_ups.ask(DEFAULT_TENANT, wish) is None, spelling


def test_of_many_wishes_at_once_one_gets_a_letter(shared_stage: Stage) -> None:
    def ask(_: int) -> bool:
        return shared_stage.store.sign_ups.ask(DEFAULT_TENANT, WISH) is not None

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(ask, range(6))) == 1


def test_a_link_is_good_for_a_week(stage: Stage) -> None:
    sign_up = asked(stage)
    pass_time(stage.store, 7 * 24 * 3600 + 60)
    assert stage.store.sign_ups.confirm(sign_up.id) == Confirmation.LATE
    assert status(stage) == SubscriberStatus.PENDING


def test_a_letter_that_was_asked_for_passes_an_unsubscription_only(stage: Stage) -> None:
    """The letter of confirmation must reach who left and comes back. A bounce keeps it away all the same, and
    so does an unsubscription from every tenant."""
    bounced, left_all = parse_address("gone@example.com"), parse_address("never@example.com")
    stage.store.suppressions.add(DEFAULT_TENANT, ANNA, SuppressionReason.UNSUBSCRIBED)
    stage.store.suppressions.add(DEFAULT_TENANT, bounced, SuppressionReason.BOUNCE)
    stage.store.suppressions.add(EVERYBODY, left_all, SuppressionReason.UNSUBSCRIBED)
    letter = stage.store.letters.put(DEFAULT_TENANT, Letter("Confirm", "", "<p>Yes?</p>", "Yes?"))
    dispatch = stage.store.dispatches.open(DEFAULT_TENANT, NewDispatch(KIND, "1", letter, asked_for=True))
    stage.store.dispatches.plan(dispatch.id, [NewJob(ANNA), NewJob(bounced), NewJob(left_all)])
    stage.store.dispatches.run(dispatch.id)
    claimed = stage.claim().claimed
    assert [job.recipient for job in claimed] == [ANNA.text]
    assert stage.store.ledger.reaffirm(claimed[0].id, claimed[0].attempt)
    assert stage.store.jobs.books(dispatch.id).skipped == 2
    stage.store.suppressions.add(EVERYBODY, ANNA, SuppressionReason.UNSUBSCRIBED)
    assert not stage.store.ledger.reaffirm(claimed[0].id, claimed[0].attempt)


def test_show_has_the_letters_of_every_kind_of_dispatch(stage: Stage) -> None:
    """A person is shown all that was sent to them, not the mailouts alone."""
    letter = stage.store.letters.put(DEFAULT_TENANT, Letter("Confirm", "", "<p>Yes?</p>", "Yes?"))
    dispatch = stage.store.dispatches.open(DEFAULT_TENANT, NewDispatch(KIND, "1", letter, asked_for=True))
    stage.store.dispatches.plan(dispatch.id, [NewJob(ANNA)])
    (shown,) = show_person(stage.store, ANNA).mailouts
    assert (shown.mailout, shown.kind) == (None, KIND)
    assert shown.why == "not sent yet: waits for its turn"


def test_an_erased_person_leaves_no_sign_up(stage: Stage) -> None:
    sign_up = asked(stage)
    stage.store.people.erase(ANNA, "operator")
    assert stage.store.sign_ups.confirm(sign_up.id) is None
