"""Campaigns on a database: who is written to, when, by whom, and when no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import time, timedelta
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.campaigns.brakes import Brake, Limits, Rule
from sendonce.domain.campaigns.campaigns import Campaign, CampaignStatus, NewCampaign, NewStep
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.forecast import Binding
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import ClaimedJob, Settlement
from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome, Refused
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.senders import HoldOrder
from sendonce.domain.people.directions import Basis, NewDirection, tenant_named
from sendonce.errors import RefusedByRule
from sendonce.flows.campaigns.create_campaign import create_campaign
from sendonce.flows.campaigns.forecast_campaign import forecast_campaign
from sendonce.flows.campaigns.keep_hours import CampaignTimetable
from sendonce.flows.campaigns.plan_letters import plan_letters
from sendonce.flows.campaigns.show_campaign import show_campaign
from sendonce.flows.campaigns.start_campaign import start_campaign
from sendonce.flows.campaigns.steer_campaign import (
    delete_campaign,
    pause_campaign,
    resume_campaign,
    stop_campaign,
)
from sendonce.flows.engine.build import ParcelBuilder
from sendonce.flows.engine.keep_time import boot_time
from sendonce.flows.people.add_client import put_direction, set_terms
from tests.conformance.campaign_stage import MONDAY, OFFICE, CampaignStage, Left
from tests.conformance.stage import LETTER, event_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SETTINGS = MessageSettings("a@one.example", None, None, "Riga", "http://x.example", "one.example", b"s")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def stage(request: pytest.FixtureRequest) -> Iterator[CampaignStage]:
    store = open_store(request.getfixturevalue(request.param))
    made = CampaignStage(store)
    made.client()
    yield made
    store.close()


def most_in(letters: Sequence[Left], stretch: timedelta) -> int:
    """The most letters that left in any stretch of this length."""
    times = sorted(letter.really_at for letter in letters)
    return max((sum(start <= at < start + stretch for at in times) for start in times), default=0)


def test_every_lead_gets_each_letter_once_in_a_thread(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.sender("b@two.example")
    stage.leads(20)
    campaign = stage.campaign(2 * DAY)
    left = stage.run(5 * DAY, every=2 * HOUR)
    assert Counter(Counter(letter.job.recipient for letter in left).values()) == {2: 20}
    senders: dict[str, set[str]] = {}
    for letter in left:
        senders.setdefault(letter.job.recipient, set()).add(letter.sender)
    assert {len(each) for each in senders.values()} == {1}, "a follow-up leaves from where the first did"
    threads = [letter.job.thread for letter in left if letter.job.thread]
    assert len(threads) == 20
    firsts = {f"<{letter.job.id}@{letter.sender.partition('@')[2]}>" for letter in left[:20]}
    assert {thread["in_reply_to"] for thread in threads} == firsts
    assert stage.get(campaign).status == CampaignStatus.FINISHED


def test_no_day_has_more_letters_than_a_sender_may_send(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=7)
    stage.leads(30)
    stage.campaign()
    left = stage.run(4 * DAY, every=2 * HOUR)
    assert len(left) > 20
    assert most_in(left, DAY) <= 7


@pytest.mark.parametrize(
    ("timezone", "planned_at", "leaves_at", "opens_in"),
    [
        (None, 10, 12, 0 * HOUR),
        (None, 10, 18, 15 * HOUR),
        ("Asia/Vladivostok", 3, 12, 11 * HOUR),
        ("America/New_York", 15, 18, 0 * HOUR),
    ],
)
def test_a_late_letter_waits_for_its_recipients_window(
    stage: CampaignStage, timezone: str | None, planned_at: int, leaves_at: int, opens_in: timedelta
) -> None:
    """However it came to be late, it uses up no try."""
    sender = stage.sender("a@one.example")
    stage.set(MONDAY.replace(hour=planned_at))
    stage.leads(1, timezone=timezone)
    stage.campaign(window=OFFICE)
    stage.round()
    (job,) = stage.claim(sender)
    timetable = CampaignTimetable(stage.store, CampaignClock(MONDAY), ZoneInfo("UTC"))
    builder = ParcelBuilder(stage.store.letters, SETTINGS, timetable)
    builder.load((job,))
    made = builder.build(job._replace(claimed_at=MONDAY.replace(hour=leaves_at)), boot_time())
    if opens_in:
        assert isinstance(made, Deferred)
        assert made.throttle
        assert made.retry_after == pytest.approx(opens_in.total_seconds(), abs=60)
    else:
        assert isinstance(made, Parcel)


def test_an_hour_has_its_limit_too(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=1000, per_hour=10)
    stage.leads(60)
    stage.campaign()
    left = stage.run(DAY)
    assert len(left) == 60
    assert most_in(left, HOUR) <= 10


@pytest.mark.parametrize("limit", ["day", "hour"])
def test_limits_hold_however_late_letters_leave(stage: CampaignStage, limit: str) -> None:
    """Workers are away for more than a stretch, again and again, and then all that waits leaves at once."""
    stretch, limits = (DAY, {"daily": 7}) if limit == "day" else (HOUR, {"daily": 1000, "per_hour": 10})
    stage.sender("a@one.example", **limits)
    stage.leads(100)
    stage.campaign()
    left: list[Left] = []
    while len(left) < 15:
        for _ in range(20):
            stage.round()
            stage.set(stage.now + stretch / 16)
        left += stage.work()
    assert most_in(left, stretch) in (7, 9)


def test_letters_that_a_stop_left_behind_count_until_they_are_settled(stage: CampaignStage) -> None:
    """One is on the wire while its campaign is stopped. It takes its place until its end, and not longer."""
    sender = stage.sender("a@one.example", daily=1)
    stage.leads(2)
    first = stage.campaign()
    stage.round()
    (job,) = stage.claim(sender)
    stop_campaign(stage.desk, first, None, "somebody")
    second = stage.campaign()
    stage.set(stage.now + 2 * DAY)
    assert stage.round() == 0
    stage.store.ledger.turn([Settlement(job.id, job.attempt, Accepted("m"))], None)
    stage.round()
    assert stage.round() == 0, "it left just now"
    stage.set(stage.now + DAY)
    assert stage.round() == 1
    assert stage.get(second).status == CampaignStatus.RUNNING


def test_who_answers_gets_no_letter_that_waits_already(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=500)
    stage.leads(1)
    campaign = stage.campaign(DAY)
    (first,) = stage.run(HOUR)
    stage.set(stage.now + 2 * DAY)
    assert stage.round() == 1
    answer(stage, first.job, EventKind.COMPLAINT)
    stage.round()
    assert stage.work() == []
    assert stage.get(campaign).status == CampaignStatus.FINISHED


def test_a_planner_that_lost_its_lease_plans_nothing(stage: CampaignStage) -> None:
    """It was stopped in the middle of a round, and another process plans by now."""
    stage.sender("a@one.example")
    stage.leads(50)
    campaign = stage.campaign()
    assert stage.round("another") > 0
    stage.set(stage.now + HOUR)
    assert plan_letters(stage.desk, stage.get(campaign), "test") == 0
    assert plan_letters(stage.desk, stage.get(campaign), "another") > 0


def test_a_tenant_has_a_day_of_its_own(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=50)
    stage.sender("b@two.example", daily=50)
    set_terms(stage.store, "acme", None, 7, "test")
    stage.leads(30)
    campaign = stage.campaign()
    left = stage.run(2 * DAY, every=3 * HOUR)
    assert len({letter.sender for letter in left}) == 2
    assert most_in(left, DAY) == 7
    stage.round()
    (limit,) = show_campaign(stage.desk, stage.get(campaign)).limits
    assert (limit.limit, limit.letters, limit.binds) == ("tenant acme", 7, True)
    assert forecast_campaign(stage.desk, stage.get(campaign)).binding == Binding.TENANT


def test_tenants_share_an_account_by_weight(stage: CampaignStage) -> None:
    """However many senders each has; and what one leaves is the other's."""
    stage.share_an_account(24)
    stage.client("other")
    set_terms(stage.store, "other", 3, None, "test")
    for name in ("a", "b", "c"):
        stage.sender(f"{name}@one.example", daily=50)
    stage.sender("d@two.example", daily=50, tenant="other")
    stage.leads(40)
    stage.leads(40, tenant="other")
    for tenant in ("acme", "other"):
        campaign = stage.campaign(tenant=tenant)
    assert forecast_campaign(stage.desk, campaign).binding == Binding.ACCOUNT
    left = stage.run(DAY, every=2 * HOUR)
    assert Counter(letter.job.dispatch_id in heavy_dispatches(stage, campaign) for letter in left) == {
        True: 18,
        False: 6,
    }
    stop_campaign(stage.desk, stage.get(campaign), None, "somebody")
    later = stage.run(2 * DAY, every=3 * HOUR)
    assert len(later) > 24
    assert most_in([*left, *later], DAY) <= 24


def heavy_dispatches(stage: CampaignStage, campaign: Campaign) -> set[str]:
    return {dispatch_id for _, _, dispatch_id in stage.store.campaigns.dispatches(campaign.id)}


def test_a_new_sender_starts_with_few(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=50, ramp=(2, 4, 8))
    stage.leads(40)
    stage.campaign(window=OFFICE)
    days = Counter(letter.at.date() for letter in stage.run(3 * DAY, every=2 * HOUR))
    assert [days[day] for day in sorted(days)][:2] == [2, 4]
    assert all(count <= 8 for count in days.values())


def test_letters_keep_to_office_hours(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(30)
    stage.set(MONDAY - 2 * DAY)
    stage.campaign(window=OFFICE)
    left = stage.run(4 * DAY, every=2 * HOUR)
    assert len(left) > 20
    assert all(letter.at.weekday() < 5 and time(9) <= letter.at.time() < time(18) for letter in left)


@pytest.mark.parametrize(
    ("recipients", "windows", "kept"),
    [
        ("Asia/Vladivostok", "Europe/Berlin", "Asia/Vladivostok"),
        (None, "Asia/Vladivostok", "Asia/Vladivostok"),
        ("Asia/Atlantis", None, "UTC"),
        ("Asia/Atlantis", "Europe/Atlantis", "UTC"),
    ],
)
def test_letters_keep_to_the_recipients_clock(
    stage: CampaignStage, recipients: str | None, windows: str | None, kept: str
) -> None:
    """Else to the window's, else to the house's. A zone that the machine forgot stops nobody."""
    stage.sender("a@one.example")
    stage.leads(12, timezone=recipients)
    stage.campaign(window=replace(OFFICE, timezone=windows))
    left = stage.run(DAY, every=2 * HOUR)
    assert len(left) == 12
    assert all(time(9) <= letter.at.astimezone(ZoneInfo(kept)).time() < time(18) for letter in left)


def test_senders_share_by_what_they_may_send(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=60)
    stage.sender("b@two.example", daily=20)
    stage.leads(80)
    stage.campaign()
    counted = Counter(letter.sender for letter in stage.run(DAY))
    assert 2 <= counted["a@one.example"] / counted["b@two.example"] <= 4


def test_few_of_one_company_are_written_to_at_a_time(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(6, company="firm.example")
    stage.campaign(3 * DAY)
    assert len(stage.run(DAY, every=4 * HOUR)) == stage.desk.per_company
    assert len(stage.run(12 * DAY, every=6 * HOUR)) == 10


def answer(stage: CampaignStage, job: ClaimedJob, kind: EventKind) -> None:
    stage.store.events.record(event_of(job, kind))


@pytest.mark.parametrize("kind", [EventKind.BOUNCE, EventKind.COMPLAINT])
def test_who_bounces_or_complains_gets_no_follow_up(stage: CampaignStage, kind: EventKind) -> None:
    stage.sender("a@one.example")
    stage.leads(1)
    campaign = stage.campaign(DAY)
    (first,) = stage.run(HOUR)
    answer(stage, first.job, kind)
    assert stage.run(4 * DAY, every=8 * HOUR) == []
    assert stage.get(campaign).status == CampaignStatus.FINISHED


def test_letters_and_what_was_told_of_them_are_views(stage: CampaignStage) -> None:
    """The key of a letter is the rule that makes a second one impossible."""
    sender = stage.sender("a@one.example")
    stage.leads(2)
    campaign = stage.campaign()
    first, second = stage.run(HOUR)
    answer(stage, first.job, EventKind.BOUNCE)
    with stage.store.database.reading() as tx:
        letters = tx.exec_driver_sql("SELECT * FROM campaign_jobs ORDER BY scheduled_at").mappings().all()
        events = tx.exec_driver_sql("SELECT * FROM campaign_events").mappings().all()
    assert [str(letter["job_id"]) for letter in letters] == [first.job.id, second.job.id]
    assert {letter["status"] for letter in letters} == {"sent"}
    assert {str(letter["sender_id"]) for letter in letters} == {sender.id}
    assert len({letter["idempotency_key"] for letter in letters}) == 2
    assert all(letter["lead_id"] and letter["template_id"] for letter in letters)
    (told,) = events
    assert (str(told["job_id"]), told["event_type"]) == (first.job.id, "bounce")
    assert (str(told["campaign_id"]), told["tenant_id"]) == (campaign.id, "acme")
    assert told["provider_payload_ref"] == told["event_id"]


def test_a_bad_list_is_paused_with_its_numbers(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=1000)
    stage.leads(120)
    campaign = stage.campaign()

    def ends(job: ClaimedJob) -> Outcome:
        return Refused("550", "no such user") if job.recipient[1] in "2468" else Accepted("m")

    left = stage.run(DAY, outcome=ends)
    paused = stage.get(campaign)
    assert paused.status == CampaignStatus.PAUSED
    assert paused.reason is not None
    assert "letters bounced" in paused.reason
    assert len(left) < 100
    assert len(stage.alerts) == 1
    assert brake(stage, campaign, Rule.BOUNCE).tripped
    resume_campaign(stage.desk, paused, "somebody")
    assert not brake(stage, campaign, Rule.BOUNCE).tripped
    again = stage.run(2 * DAY, outcome=ends)
    assert 5 < len(again) < 100, "it goes on, and is paused again: a person's word does not mend the list"
    assert stage.get(campaign).status == CampaignStatus.PAUSED


def test_a_list_that_was_mended_goes_on(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=1000)
    stage.leads(100)
    campaign = stage.campaign()
    stage.run(DAY, outcome=lambda _job: Refused("550", "no such user"))
    pause = stage.get(campaign)
    assert pause.status == CampaignStatus.PAUSED
    resume_campaign(stage.desk, pause, "somebody")
    pause_campaign(stage.desk, stage.get(campaign), "for a moment", "somebody")
    resume_campaign(stage.desk, stage.get(campaign), "somebody")
    stage.run(3 * DAY)
    assert stage.get(campaign).status == CampaignStatus.FINISHED


def test_a_pause_by_hand_forgives_nothing(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=1000)
    stage.leads(100)
    campaign = stage.campaign()
    stage.round()
    stage.work(lambda _job: Refused("550", "no such user"))
    for _ in range(2):
        pause_campaign(stage.desk, stage.get(campaign), "for a moment", "somebody")
        resume_campaign(stage.desk, stage.get(campaign), "somebody")
    assert brake(stage, campaign, Rule.BOUNCE).count > 0


def brake(stage: CampaignStage, campaign: Campaign, rule: Rule) -> Brake:
    shown = show_campaign(stage.desk, stage.get(campaign)).brakes
    return next(each for each in shown if each.rule == rule)


def test_complaints_block_the_sender_and_nobody_else(stage: CampaignStage) -> None:
    bad, good = stage.sender("a@one.example", daily=100), stage.sender("b@two.example", daily=100)
    stage.leads(30)
    campaign = stage.campaign(DAY)
    while True:
        left = stage.run(HOUR)
        mine = [letter.job for letter in left if letter.sender == bad.address]
        for job in mine:
            answer(stage, job, EventKind.COMPLAINT)
        if stage.desk.hold_of(bad):
            break
    rest = stage.run(4 * DAY, every=2 * HOUR)
    assert {letter.sender for letter in rest} == {good.address}
    assert stage.get(campaign).status == CampaignStatus.FINISHED, "nobody waits for the blocked sender"
    hold = stage.desk.hold_of(bad)
    assert hold is not None
    assert hold.until_released
    assert "complained" in hold.reason
    assert stage.desk.hold_of(good) is None
    assert brake(stage, campaign, Rule.COMPLAINT).tripped
    stage.store.sender_holds.release(hold.key, "somebody")
    stage.leads(40)
    stage.campaign()
    rest = stage.run(DAY, every=2 * HOUR)
    assert {letter.sender for letter in rest} == {bad.address, good.address}, "a person's word was heard"


def test_who_is_held_by_hand_goes_on_where_it_was(stage: CampaignStage) -> None:
    """Its follow-ups wait for its release."""
    held = stage.sender("a@one.example", daily=100)
    stage.leads(4)
    campaign = stage.campaign(DAY)
    assert len(stage.run(4 * HOUR)) == 4
    key = stage.desk.keys_of(held).home
    stage.store.sender_holds.hold_by_hand(key, "the invoice is open", None, "somebody")
    assert stage.run(3 * DAY, every=6 * HOUR) == []
    stage.store.sender_holds.release(key, "somebody")
    assert len(stage.run(2 * DAY, every=2 * HOUR)) == 4
    assert stage.get(campaign).status == CampaignStatus.FINISHED


@pytest.mark.parametrize(("seconds", "planned"), [(60.0, False), (0.0, True)])
def test_a_held_sender_gets_letters_again_when_its_next_try_has_come(
    stage: CampaignStage, seconds: float, planned: bool
) -> None:
    """Without a letter nobody could try it, and its hold would never end."""
    sender = stage.sender("a@one.example")
    stage.leads(1)
    stage.campaign()
    stage.store.sender_holds.hold(stage.desk.keys_of(sender).home, HoldOrder("outage", "no answer", seconds))
    assert bool(stage.round()) == planned


def test_deferrals_slow_a_sender_down(stage: CampaignStage) -> None:
    slow = stage.sender("a@one.example", daily=500)
    stage.leads(100)
    stage.campaign()
    stage.run(6 * HOUR, outcome=lambda _job: Deferred("421", "slow down"))
    limits = stage.store.pools.get(slow.tenant_id, slow.id)
    assert limits is not None
    assert limits.pace < 1


def test_a_receiver_that_puts_letters_off_gets_probes_only(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=1000)
    stage.leads(150, receiver="google")
    stage.leads(150, receiver="yandex")
    stage.campaign()

    def slow(job: ClaimedJob) -> Outcome:
        return Deferred("421", "later") if "google" in job.recipient else Accepted("m")

    stage.run(HOUR, outcome=slow)
    later = stage.run(2 * HOUR, outcome=slow)
    google = [letter for letter in later if "google" in letter.job.recipient and letter.job.attempt == 1]
    assert 0 < most_in(google, timedelta(minutes=30)) <= 1
    assert any("yandex" in letter.job.recipient for letter in later)


def test_a_round_that_dies_between_choice_and_engine_plans_the_same_letter(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.sender("b@two.example")
    stage.leads(10)
    campaign = stage.campaign()

    class Dead(Exception):
        pass

    def die(*_: object) -> None:
        raise Dead

    plan, stage.store.dispatches.plan = stage.store.dispatches.plan, die  # type: ignore[method-assign,assignment]
    with pytest.raises(Dead):
        stage.round()
    stage.store.dispatches.plan = plan  # type: ignore[method-assign]
    chosen = {letter.lead_id: letter.sender_id for letter in stage.store.campaigns.chosen(campaign.id)}
    assert chosen
    left = stage.run(2 * DAY, every=4 * HOUR)
    assert Counter(Counter(letter.job.recipient for letter in left).values()) == {1: 10}


def test_one_process_at_a_time_plans(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(3)
    stage.campaign()
    assert stage.round("one") > 0
    stage.set(stage.now + HOUR)
    assert stage.round("another") == 0


def test_a_pause_holds_what_is_planned_and_a_stop_ends_it(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=500)
    stage.leads(10)
    campaign = stage.campaign()
    assert stage.round() > 0
    pause_campaign(stage.desk, campaign, "lunch", "somebody")
    assert stage.work() == []
    resume_campaign(stage.desk, stage.get(campaign), "somebody")
    assert len(stage.work()) > 0
    stop_campaign(stage.desk, stage.get(campaign), None, "somebody")
    assert stage.run(DAY) == []
    with pytest.raises(RefusedByRule, match="is stopped"):
        resume_campaign(stage.desk, stage.get(campaign), "somebody")


def test_a_campaign_that_never_started_can_be_deleted(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(1)
    new = NewCampaign("Autumn", "pumps", OFFICE, Limits(), (NewStep(LETTER, timedelta()),))
    created = create_campaign(stage.store, tenant_named("acme"), new, "test")
    with pytest.raises(RefusedByRule, match="delete that one with 'sendonce campaign delete'"):
        create_campaign(stage.store, tenant_named("acme"), new, "test")
    delete_campaign(stage.desk, created, "somebody")
    again = create_campaign(stage.store, tenant_named("acme"), new, "test")
    start_campaign(stage.desk, again, "somebody")
    with pytest.raises(RefusedByRule, match="its letters are part of the books"):
        delete_campaign(stage.desk, again, "somebody")


def test_a_lead_is_in_one_campaign_at_a_time(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(3)
    first = stage.campaign()
    with pytest.raises(RefusedByRule, match=f"3 of its leads are in the campaign '{first.name}'"):
        stage.campaign()


def test_nothing_starts_without_leads_or_senders(stage: CampaignStage) -> None:
    stage.leads(1)
    with pytest.raises(RefusedByRule, match="has no sender"):
        stage.campaign()
    stage.sender("a@one.example")
    stage.client("other")
    stage.sender("b@two.example", tenant="other")
    with pytest.raises(RefusedByRule, match="no leads to write to"):
        stage.campaign(tenant="other")


def test_a_direction_without_a_basis_sends_nothing(stage: CampaignStage) -> None:
    """Neither at the start, nor when it loses its basis on the way, with what is planned already."""
    stage.sender("a@one.example", daily=500)
    stage.leads(10)
    campaign = stage.campaign()
    assert stage.round() > 0
    lost = NewDirection("pumps", "RU", Basis.LEGITIMATE_INTEREST)
    put_direction(stage.store, tenant_named("acme"), lost, "test")
    assert stage.round() == 0
    assert stage.work() == []
    paused = stage.get(campaign)
    assert paused.status == CampaignStatus.PAUSED
    assert "In RU legitimate interest is no basis" in (paused.reason or "")
    stop_campaign(stage.desk, paused, None, "somebody")
    with pytest.raises(RefusedByRule, match="Nothing is sent in the direction pumps"):
        stage.campaign()


def test_a_campaign_brakes_sooner_than_the_house_never_later(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(1)
    loose = stage.campaign(brakes=Limits(bounce=0.5, complaint=0.0005))
    assert (loose.brakes.bounce, loose.brakes.complaint) == (0.05, 0.0005)


def test_no_person_gets_two_letters_on_a_day(stage: CampaignStage) -> None:
    stage.sender("a@one.example")
    stage.leads(5)
    stage.campaign(timedelta(minutes=30), timedelta(minutes=30))
    left = stage.run(5 * DAY, every=3 * HOUR)
    assert len(left) == 15
    days = Counter((letter.job.recipient, letter.at.date()) for letter in left)
    assert set(days.values()) == {1}


def test_a_day_is_the_recipients_own(stage: CampaignStage) -> None:
    """Midnight of the house is noon of Honolulu: the follow-up waits for tomorrow there."""
    stage.sender("a@one.example")
    stage.leads(5, timezone="Pacific/Honolulu")
    stage.campaign(timedelta(minutes=30), window=OFFICE)
    left = stage.run(4 * DAY, every=HOUR)
    assert len(left) == 10
    honolulu = ZoneInfo("Pacific/Honolulu")
    days = Counter((letter.job.recipient, letter.at.astimezone(honolulu).date()) for letter in left)
    assert set(days.values()) == {1}


def test_what_is_planned_is_only_a_little_ahead(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=24)
    stage.leads(50)
    stage.campaign()
    assert 0 < stage.round() <= 3


def test_a_forecast_counts_the_letters_that_are_still_to_come(stage: CampaignStage) -> None:
    stage.sender("a@one.example", daily=5)
    stage.leads(8)
    campaign = stage.campaign(3 * DAY)
    assert forecast_campaign(stage.desk, campaign).letters == 16
    sent = len(stage.run(DAY))
    told = forecast_campaign(stage.desk, stage.get(campaign))
    assert told.letters == 16 - sent
    assert sum(count for _, count in told.days) == told.letters
    stage.run(8 * DAY)
    assert stage.get(campaign).status == CampaignStatus.FINISHED
    assert forecast_campaign(stage.desk, stage.get(campaign)).letters == 0
