"""Campaigns: the letters that the leads of a direction get, one after the other, until they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, NewType

from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.dispatches import Thread
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import DispatchId, TenantId

KIND = "campaign_step"
"""Of the dispatches of campaigns: one for each step and sender."""


TIMEZONE = "@timezone"
"""A field of a job: the time zone of its recipient, where it is known."""

CampaignId = NewType("CampaignId", str)
"""The handle of a campaign. Only a verb gives it that was told the tenant, or found what is at hand for the
person at the machine; a text from outside is none."""


class CampaignStatus(StrEnum):
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"


ARROWS: Mapping[CampaignStatus, frozenset[CampaignStatus]] = {
    CampaignStatus.READY: frozenset({CampaignStatus.RUNNING, CampaignStatus.STOPPED}),
    CampaignStatus.RUNNING: frozenset(
        {CampaignStatus.PAUSED, CampaignStatus.FINISHED, CampaignStatus.STOPPED}
    ),
    CampaignStatus.PAUSED: frozenset({CampaignStatus.RUNNING, CampaignStatus.STOPPED}),
    CampaignStatus.FINISHED: frozenset(),
    CampaignStatus.STOPPED: frozenset(),
}
"""Where a campaign may go from each status. Stopping is final."""


class Image(NamedTuple):
    """A picture of a letter, which is shown under its hash."""

    sha256: str
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class NewStep:
    letter: Letter
    after: timedelta
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class NewCampaign:
    name: str
    direction_id: str
    window: Window
    brakes: Limits
    steps: tuple[NewStep, ...]


class Step(NamedTuple):
    """Counted from one. ``after`` is the wait after the letter before it."""

    step: int
    letter_id: str
    after: timedelta


@dataclass(frozen=True, slots=True)
class Campaign:
    """``reason`` says why it is paused or stopped. ``judged_from`` is when a brake paused it last: once a
    person lets it go on, only later letters count for its brakes."""

    id: CampaignId
    tenant_id: TenantId
    direction_id: str
    name: str
    status: CampaignStatus
    reason: str | None
    window: Window
    brakes: Limits
    steps: tuple[Step, ...]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    judged_from: datetime | None = None

    def step(self, number: int) -> Step | None:
        return self.steps[number - 1] if number <= len(self.steps) else None


def owner_of(campaign_id: CampaignId, step: int) -> str:
    """What a dispatch of this step is known by."""
    return f"{campaign_id}/{step}"


def campaign_of(owner_id: str) -> str:
    return owner_id.partition("/")[0]


class DueLead(NamedTuple):
    """A lead whose next letter may leave. ``sender_id`` is None before the first.

    ``colleagues`` of the same ``company_key`` are being written to.
    """

    lead_id: str
    email: str
    fields: Mapping[str, str]
    timezone: str | None
    receiver: str
    step: int
    sender_id: str | None
    company_key: str
    colleagues: int


class ChosenLetter(NamedTuple):
    """A letter of a step to a lead, from a sender, at a time of the campaigns' clock."""

    lead_id: str
    email: str
    fields: Mapping[str, str]
    timezone: str | None
    receiver: str
    step: int
    sender_id: str
    dispatch_id: DispatchId
    slot_at: datetime


class LetterEnd(NamedTuple):
    """What became of a planned letter. ``timezone`` is its lead's own, where it is known."""

    lead_id: str
    step: int
    state: JobState
    settled_at: datetime | None
    reason: str | None
    bounced: bool
    complained: bool
    timezone: str | None


class Advance(NamedTuple):
    """A letter of a step is over. It left then, by the campaigns' clock, and the next one is due then; None:
    there is none."""

    lead_id: str
    step: int
    left_at: datetime
    due_at: datetime | None


class WaitingLetter(NamedTuple):
    """A letter that the engine has not begun to send."""

    lead_id: str
    dispatch_id: DispatchId
    job_id: str


class LeadStanding(NamedTuple):
    """How far a campaign got with a lead, for a report."""

    email: str
    company: str | None
    step: int
    state: str
    reason: str | None
    sender: str | None
    bounced: bool
    complained: bool


class Stop(NamedTuple):
    """No more letters to this lead."""

    lead_id: str
    reason: str


def end_of(letter: LetterEnd) -> str | None:
    """Why no more letters go to the lead of this one; None where the campaign goes on."""
    if letter.complained:
        return "complained"
    if letter.bounced:
        return "bounced"
    return {
        JobState.FAILED: "refused by its receiver",
        JobState.DEAD: "could not be delivered",
        JobState.SKIPPED: letter.reason or "skipped",
    }.get(letter.state)


def thread_of(message_ids: Sequence[str]) -> Thread | None:
    """The letters before, the first one first."""
    if not message_ids:
        return None
    return Thread(message_ids[-1], tuple(message_ids[:-1]))
