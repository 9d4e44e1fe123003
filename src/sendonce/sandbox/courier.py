"""Carries notifications to the subscriber: over a few connections, until each got its 2xx.

The queue lives in memory and can be rebuilt: what was accepted is in ``accepted.jsonl``, what was
delivered in ``delivered.log``, and an event's SNS id is the same in every run.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sendonce.sandbox.acceptance import Acceptance
from sendonce.sandbox.events import Event, events_of
from sendonce.sandbox.faults import Dice
from sendonce.sandbox.progress import Progress
from sendonce.sandbox.settings import SandboxSettings, loopback_target
from sendonce.sandbox.sns import CONFIRMATION, NOTIFICATION, Envelope, Subscription, Topic, sns_headers
from sendonce.sandbox.webhook import WebhookConnection

_SIGNED_TOGETHER = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Courier:
    def __init__(
        self,
        settings: SandboxSettings,
        topic: Topic,
        subscription: Subscription,
        dice: Dice,
        progress: Progress,
        now: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._subscription = subscription
        self._dice = dice
        self._progress = progress
        self._now = now
        self._delivered_log = settings.directory / "delivered.log"
        self._delivered_fd = os.open(self._delivered_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._signer = ThreadPoolExecutor(1, "sns-signer")
        self._ready: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._has_listener = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.withheld: list[Event] = []
        self.paused = False
        self.pending = 0
        self.sent = 0
        self.dropped = 0
        self.answers: Counter[str] = Counter()  # what the receiver said, when it was not 2xx

    def start(self) -> None:
        for _ in range(self._settings.event_connections):
            self._spawn(self._carry())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._signer.shutdown()
        os.close(self._delivered_fd)

    def publish(self, acceptances: Iterable[Acceptance]) -> None:
        """Queue what is to be told about these letters. Without a subscriber the log alone keeps it."""
        if self._has_listener:
            for acceptance in acceptances:
                for event in events_of(acceptance, self._settings, self._dice.seed):
                    self._admit(event)

    def recover(self, acceptances: Iterable[Acceptance]) -> None:
        """Queue what an earlier run, or the time before the first subscriber, left untold."""
        if self._has_listener:
            return
        self._has_listener = True
        delivered = _delivered_ids(self._delivered_log)
        for acceptance in acceptances:
            for event in events_of(acceptance, self._settings, self._dice.seed):
                if event.sns_id not in delivered:
                    self._admit(event)

    def _admit(self, event: Event) -> None:
        faults = self._dice.plan.events
        if event.acceptance.job in faults.withhold_jobs or self._dice.happens(faults.withhold):
            self.withheld.append(event)
            return
        if self._dice.happens(faults.duplicate):
            event.copies = 2
        self._enqueue(event)
        if self._dice.happens(faults.republish):
            self._enqueue(Event(event.acceptance, event.kind, event.recipient, event.fate, edition=2))

    def _enqueue(self, event: Event) -> None:
        self.pending += event.copies
        low, high = self._dice.plan.events.late
        self._make_ready(event, self._dice.random.uniform(low, high) if high else 0.0)

    def _make_ready(self, event: Event, delay: float = 0.0) -> None:
        if delay > 0:
            asyncio.get_running_loop().call_later(delay, self._make_ready, event)
            return
        self._ready.append(event)
        self._wake.set()

    def release(self) -> int:
        """Send now what was withheld so far; returns how many."""
        released, self.withheld = self.withheld, []
        for event in released:
            self.pending += event.copies
            self._make_ready(event)
        return len(released)

    def set_paused(self, paused: bool) -> None:
        self.paused = paused
        self._wake.set()

    def subscription_changed(self) -> None:
        self._wake.set()

    async def _carry(self) -> None:
        """The life of one connection."""
        connection = WebhookConnection()
        try:
            while True:
                events = await self._take()
                await self._write_envelopes([event for event in events if not event.envelope])
                for event in events:
                    await self._deliver(connection, event)
        finally:
            await connection.close()

    async def _take(self) -> list[Event]:
        while self.paused or not self._ready or not self._subscription.open:
            self._wake.clear()
            await self._wake.wait()
        fair_part = len(self._ready) // self._settings.event_connections
        return [self._next() for _ in range(min(max(fair_part, 1), _SIGNED_TOGETHER))]

    def _next(self) -> Event:
        if self._dice.plan.events.shuffle:
            chosen = self._dice.random.randrange(len(self._ready))
            self._ready[0], self._ready[chosen] = self._ready[chosen], self._ready[0]
        return self._ready.popleft()

    async def _write_envelopes(self, events: list[Event]) -> None:
        envelopes = [self._topic.notification(event, self._now()) for event in events]
        for event, envelope, signature in zip(events, envelopes, await self._sign(envelopes), strict=True):
            event.envelope = envelope.sealed(signature)

    async def _sign(self, envelopes: list[Envelope]) -> list[str]:
        texts = [envelope.signed_text for envelope in envelopes]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._signer, self._topic.signatures, texts)

    async def _deliver(self, connection: WebhookConnection, event: Event) -> None:
        """Post until there is an answer; a 2xx ends it, anything else puts the event back for later."""
        headers = sns_headers(self._settings, NOTIFICATION, event.sns_id)
        tries = self._settings.event_attempts - event.attempts
        status, failures = await self._post_until_answered(connection, headers, event.envelope, tries)
        event.attempts += failures + (status > 0)
        if 200 <= status < 300:
            self._note_delivered(event)
        elif event.attempts >= self._settings.event_attempts:
            self.dropped += 1  # SNS gives up too, and nobody is told
            self.pending -= event.copies
        else:
            self.answers[str(status)] += 1
            self._make_ready(event, _pause(event.attempts))
        self._progress.changed()

    async def _post_until_answered(
        self, connection: WebhookConnection, headers: list[tuple[str, str]], body: bytes, tries: float
    ) -> tuple[int, int]:
        """The answer (0: none came), and how many tries got none.

        A receiver that is down holds up the connection, not the queue: it gets all of it later.
        """
        failures = 0
        while failures < tries:
            try:
                return await connection.post(loopback_target(self._subscription.url), headers, body), failures
            except OSError as exc:
                failures += 1
                self.answers[type(exc).__name__] += 1
                await asyncio.sleep(_pause(failures))
        return 0, failures

    def _note_delivered(self, event: Event) -> None:
        os.write(self._delivered_fd, event.sns_id.encode() + b"\n")
        self.sent += 1
        self.pending -= 1
        event.copies -= 1
        if event.copies:
            self._make_ready(event)

    def request_confirmation(self) -> None:
        """Send the SubscriptionConfirmation, in the background, until it is answered with a 2xx."""
        self._spawn(self._send_confirmation(self._subscription.token))

    async def _send_confirmation(self, token: str) -> None:
        connection = WebhookConnection()
        envelope = self._topic.confirmation(token, self._now())
        body = envelope.sealed((await self._sign([envelope]))[0])
        headers = sns_headers(self._settings, CONFIRMATION, envelope.fields["MessageId"])
        attempts = 0
        try:
            while token == self._subscription.token and not self._subscription.confirmed:
                status, _ = await self._post_until_answered(connection, headers, body, math.inf)
                if 200 <= status < 300:
                    return
                attempts += 1
                self.answers[str(status)] += 1
                await asyncio.sleep(_pause(attempts))
        finally:
            await connection.close()


def _pause(failures: int) -> float:
    return float(min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE))


def _delivered_ids(path: Path) -> set[str]:
    with path.open() as lines:
        return {line.rstrip("\n") for line in lines}
