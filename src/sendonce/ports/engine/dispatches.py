"""Dispatches, and the letters that their jobs are made from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.dispatches import Dispatch, DispatchResult, NewDispatch, NewJob
from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import DispatchId, TenantId


class Dispatches(Protocol):
    """Runs of message jobs that start, pause, cancel and end together."""

    def open(self, tenant_id: TenantId, new: NewDispatch) -> Dispatch:
        """A new dispatch, started and being planned. ``abandoned`` tells of it if that takes too long."""

    def plan(self, dispatch_id: DispatchId, jobs: Sequence[NewJob]) -> int:
        """Add scheduled jobs to it, also while it runs, and reopen one that is over; how many are new.

        A recipient who has a job in this dispatch gets no second one. Raises RefusedByRule for a cancelled
        dispatch, NotFound for an unknown one.
        """

    def run(self, dispatch_id: DispatchId) -> bool:
        """All is planned: its jobs may be claimed. False when it is not being planned."""

    def abandoned(self) -> Sequence[DispatchId]:
        """Dispatches that a door began to plan and has not touched for ``PLANNED_WITHIN``."""

    def get(self, dispatch_id: DispatchId) -> Dispatch | None: ...

    def running(self, after: str, limit: int) -> Sequence[DispatchId]:
        """Running dispatches in the order of their ids, from behind ``after`` on."""

    def to_finish(self, *, among: Sequence[DispatchId] = ()) -> Sequence[Dispatch]:
        """Running dispatches that may be over: nothing is scheduled, or they were cancelled.

        What else may have ended them (an event, an erasure) shows only for those ``among`` these, whose jobs
        are looked for.
        """

    def put_off_beyond(self, longest: timedelta, among: Sequence[DispatchId]) -> Sequence[DispatchId]:
        """Those of these that run and have a job that the engine put off for more than ``longest``.

        A due time that a door chose stands, however far ahead: see ``NewJob``.
        """

    def set_paused(self, dispatch_id: DispatchId, paused: bool) -> bool:
        """False when it is over, cancelled or not started."""

    def cancel(self, dispatch_id: DispatchId) -> bool:
        """Final: sets the flag, in the audit log too. The scheduled jobs are skipped by ``cancel_chunk``.

        What has not been started is over at once. False when it is over already.
        """

    def cancel_chunk(self, dispatch_id: DispatchId, size: int) -> int: ...

    def take_back(self, dispatch_id: DispatchId, job_ids: Sequence[str], reason: str) -> int:
        """scheduled → skipped for these jobs of a dispatch; how many. What is under way or settled stays."""

    def call_back_chunk(self, dispatch_id: DispatchId, longest: timedelta, size: int) -> int:
        """Jobs as in ``put_off_beyond`` are due now; how many of at most ``size``."""

    def complete(self, dispatch_id: DispatchId) -> DispatchResult | None:
        """running → over when nothing is scheduled or sending.

        In the same write the outbox gets an entry under ``<kind>.ended`` with the dispatch's id, its owner's
        and the result: so its door learns of the end. Where listings lag, a job that has just come in may be
        missed; then the claim that finds it opens the dispatch again, as ``plan`` would have done.
        """


class Hours(Protocol):
    """When the letters of a dispatch may leave."""

    def opens_in(self, job: ClaimedJob, now: datetime) -> timedelta:
        """How long the letter of a job has to wait; nothing where it may leave now."""


class Timetable(Protocol):
    """The hours that doors gave their dispatches."""

    def of(self, dispatch_id: DispatchId) -> Hours | None:
        """None where letters may leave at any time."""


class Letters(Protocol):
    """The letters that jobs are made from."""

    def put(self, tenant_id: TenantId, letter: Letter) -> str:
        """Keep a letter; its id."""

    def get(self, letter_id: str) -> Letter | None: ...
